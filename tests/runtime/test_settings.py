"""Each setting does what it says, also in functions that have been compiled before; what explain() shows of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.codegen import CompiledKernel
from tcdsl.ir.build import integer
from tcdsl.runtime.execution import Executable

x = np.array([1.0, -2.0, 4.0])
factor = 2.0


@op
def shifted(x):
    y[i] = 2 * x[i]
    z[i] = y[i] - 1
    return z


@op
def scaled(x):
    return factor * x


@op
def strided(x, step):
    y[i] = x[step * i]
    return y


@cd
def rooted(p):
    p[i] = sqrt(p[i])


def test_optimize_decides_whether_statements_are_fused() -> None:
    np.testing.assert_array_equal(shifted(x), 2 * x - 1)
    assert shifted.explain("loops", x).count("nest_") == 1
    with tc.config(optimize=False):
        assert shifted.explain("loops", x).count("nest_") == 2
        np.testing.assert_array_equal(shifted(x), 2 * x - 1)
        assert shifted.explain("python", x).count("\ndef nest_") == 2
    assert shifted.explain("python", x).count("\ndef nest_") == 1


def test_threads_is_the_most_that_a_call_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    launch = CompiledKernel.launch
    shifted(x)

    def watched(self: CompiledKernel, plan: Any, inputs: Any, numbers: Any, pack: Any, threads: int, check: Any) -> Any:
        seen.append(threads)
        return launch(self, plan, inputs, numbers, pack, threads, check)

    monkeypatch.setattr(CompiledKernel, "launch", watched)
    for threads in (1, 3, 0):
        with tc.config(threads=threads):
            shifted(x)
    assert seen == [1, 3, 0]


def test_check_bounds_tests_every_access() -> None:
    np.testing.assert_array_equal(shifted(x), 2 * x - 1)
    assert "checked_buffer" not in shifted.explain("python", x)
    with tc.config(check="bounds"):
        np.testing.assert_array_equal(shifted(x), 2 * x - 1)
        assert "checked_buffer" in shifted.explain("python", x)


def test_check_ir_verifies_what_is_compiled() -> None:
    program = shifted.program(x)
    faulty = replace(program.statements[0], value=integer(1))
    broken = replace(program, statements=(faulty, *program.statements[1:]))
    with tc.config(check="ir"), pytest.raises(tc.TcdslError, match="the value has type int64, not float64"):
        Executable(broken).run([x])
    with tc.config(check="ir"):
        np.testing.assert_array_equal(Executable(program).run([x])[0], 2 * x - 1)


def test_check_nan_searches_results_and_changed_arguments() -> None:
    p = x.copy()
    with tc.config(check="nan"), pytest.raises(tc.ShapeError, match=r"`p` holds NaN at \(1,\)"):
        rooted(p)
    rooted(np.ones(2))
    with tc.config(check="nan"):
        rooted(np.ones(2))


def test_cache_dir_holds_inside_its_block_for_compiled_functions_too(tmp_path: Path) -> None:
    shifted(x)
    with tc.config(cache_dir=str(tmp_path)):
        shifted(x)
    assert len(list(tmp_path.rglob("shifted_*.py"))) == 1


def test_settings_are_those_of_the_block_around_them() -> None:
    from tcdsl.config import settings

    with tc.config(threads=1, check="nan"):
        with tc.config(check="ir"):
            assert (settings().threads, settings().check) == (1, {"ir"})
        assert (settings().threads, settings().check) == (1, {"nan"})


def test_explain_shows_the_program_that_was_staged_last(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (2.0, 3.0):
        monkeypatch.setitem(globals(), "factor", value)
        scaled.interpret(x)
        assert f"{value} * x" in scaled.explain("ir")
    for step in (2, 3):
        strided.interpret(x, step)
        assert f"x[{step} * i]" in strided.explain("ir")
    strided.cache_clear()
    with pytest.raises(tc.ConfigurationError, match="has not been staged yet"):
        strided.explain("ir")


def test_explain_shows_the_file_that_runs_for_the_layout_of_its_arguments() -> None:
    shifted(x)
    assert "'float64[::1]'" in shifted.explain("python", x)
    assert "'float64[:]'" in shifted.explain("python", x[::-1])
