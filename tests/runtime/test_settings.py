"""Each setting does what it says, also in functions that have been compiled before; what explain() shows of it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.config import settings
from tcdsl.ir.build import integer
from tcdsl.runtime.calling.execution import Executable
from tcdsl.targets.cpu.compiled import CompiledKernel

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


def test_threads_is_the_most_that_a_call_may_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []
    launching = CompiledKernel._launching

    def watching(self: CompiledKernel) -> Any:
        launch = launching(self)

        def watched(plan: Any, inputs: Any, numbers: Any, threads: int, *more: Any) -> Any:
            seen.append(threads)
            return launch(plan, inputs, numbers, threads, *more)

        return watched

    monkeypatch.setattr(CompiledKernel, "_launching", watching)
    shifted.cache_clear()
    with tc.config(cache_dir=str(tmp_path)):
        shifted(x)
        seen.clear()
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
    with tc.config(check="nan"), pytest.raises(tc.NanError, match=r"`p` holds NaN at \(1,\)"):
        rooted(p)
    np.testing.assert_array_equal(p, x)
    rooted(np.ones(2))
    with tc.config(check="nan"):
        rooted(np.ones(2))


@pytest.mark.parametrize("names", ["bounds nan", "bounds,nan", "nan, bounds", ("bounds", "nan")])
def test_several_names_stand_with_spaces_or_commas(names: Any) -> None:
    with tc.config(check=names):
        assert settings().check == {"bounds", "nan"}


def test_cache_dir_holds_inside_its_block_for_compiled_functions_too(tmp_path: Path) -> None:
    shifted.cache_clear()  # what an earlier run has kept on disk is not compiled
    for name in ("one", "other"):
        with tc.config(cache_dir=str(tmp_path / name)):
            shifted(x)
        assert len(list((tmp_path / name).rglob("shifted_*.kernel"))) == 1


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


@pytest.fixture
def process_settings() -> Iterator[None]:
    """What the test sets for the process ends with it."""
    yield
    module = sys.modules["tcdsl.config"]  # the package's attribute of that name is the function
    module.PROCESS.__init__()


@pytest.mark.usefixtures("process_settings")
def test_a_plain_call_sets_for_the_process() -> None:
    tc.config(threads=1)
    tc.config(check="bounds")
    assert (settings().threads, settings().check) == (1, {"bounds"})
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(settings).result() == settings()
    for _ in range(100):
        change = tc.config(threads=3)
    assert repr(change) == "<config: threads=3>"
    assert (settings().threads, settings().check) == (3, {"bounds"})
    assert len(sys.modules["tcdsl.config"].PROCESS._changes) <= 3
    for options in ({"threads": 5, "check": "speed"}, {"optimise": False, "threads": 5}):
        with pytest.raises(tc.ConfigurationError):
            tc.config(**options)
    assert settings().threads == 3


@pytest.mark.usefixtures("process_settings")
def test_a_block_restores_what_held_before_it() -> None:
    tc.config(threads=1)
    with suppress(ZeroDivisionError), tc.config(threads=2, debug=True) as inside:
        assert inside == settings()
        tc.config(threads=3)
        assert (settings().threads, settings().debug) == (3, True)
        with tc.config(optimize=False):
            assert (settings().threads, settings().optimize) == (3, False)
            with ThreadPoolExecutor(1) as pool:
                # A block is of one thread.
                assert pool.submit(settings).result().threads == 1
        assert (settings().threads, settings().optimize) == (3, True)
        raise ZeroDivisionError
    assert (settings().threads, settings().debug) == (1, False)
    change = tc.config(threads=4)
    with change, change:
        assert settings().threads == 4
    assert settings().threads == 1


@pytest.mark.usefixtures("process_settings")
def test_blocks_of_several_threads_do_not_meet() -> None:
    barrier = threading.Barrier(4)

    def work(threads: int) -> None:
        for _ in range(200):
            with tc.config(threads=threads):
                assert settings().threads == threads
        barrier.wait()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, (1, 2, 3, 4)))
    assert settings().threads == 0


@pytest.mark.usefixtures("process_settings")
def test_calls_take_the_settings_of_the_process() -> None:
    np.testing.assert_array_equal(shifted(x), 2 * x - 1)
    tc.config(check="nan")
    for _ in range(2):
        with pytest.raises(tc.NanError, match="holds NaN"):
            shifted(np.full(3, np.nan))
    with tc.config(check=""):
        assert np.isnan(shifted(np.full(3, np.nan))).all()
    tc.config(check="")
    assert np.isnan(shifted(np.full(3, np.nan))).all()
