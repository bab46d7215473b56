"""Numba compiles what is printed, as it stands: programs give what they give on the CPU, with the same errors.

Numba takes up to a second for a nest that runs on threads, less than half of it for one that does not. So a dozen
programs run on threads here, all on one thread, and by hand all on threads: ``pytest -m long``.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.errors import TcdslError
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.targets.cpu.layout.frame import INTERRUPT_WORD
from tcdsl.targets.cpu.printing import language as in_python
from tcdsl.targets.protocol.target import Build
from tcdsl.targets.registry import target_named
from tests.lowering.cases import CASES
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of
from tests.targets import tiled_kernels

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(3)
SHORT = (
    *("cumulative_sum", "gather", "histogram", "lazy_gather", "lets_in_branches", "scalars", "sgd", "snapshot"),
    *("softmax", "start_from_value", "stencil_by_branches", "unique_store"),
)
BRIEF = (
    *("argmax_rows", "gather_rows", "log_sum_exp", "max_pool_up", "outer_difference", "pairwise_distance", "skipping"),
    *("trace", "upsample"),
)
REFUSED = {"half_precision": "arrays of float16"}
TOLERANCE = {2: 2e-3, 4: 1e-5, 8: 1e-12}


def loaded(name: str, target: str, options: Build) -> Any:
    program = parse_program(CASES[name].text)
    build = replace(options, contiguous=(True,) * len(program.inputs))
    kernel = lower(program, machine=target_named(target).machine)
    return target_named(target).load(kernel, target_named(target).generate(kernel, build), build)


def outcome(kernel: Any, arrays: list[np.ndarray], sizes: dict[str, int]) -> list[np.ndarray] | str:
    given = [array.copy() for array in arrays]
    try:
        return [*kernel.run(given, sizes), *given]
    except TcdslError as error:
        return str(error)


def agree(found: Any, wanted: Any) -> None:
    if isinstance(found, str) or isinstance(wanted, str):
        assert found == wanted
        return
    for mine, its in zip(found, wanted, strict=True):
        assert mine.dtype == its.dtype
        tolerance = TOLERANCE[mine.dtype.itemsize] if mine.dtype.kind == "f" else 0
        np.testing.assert_allclose(mine, its, rtol=tolerance, atol=tolerance)


def programs_agree(name: str, options: Build) -> None:
    if name in REFUSED:
        with pytest.raises(tc.TcdslError, match=REFUSED[name]):
            loaded(name, "numba", options)
        return
    kernels = [loaded(name, target, options) for target in ("numba", "cpu")]
    for sizes in CASES[name].sizes:
        arrays = [np.asarray(array) for array in CASES[name].inputs(*sizes)]
        bound = bind_sizes(kernels[0].kernel.program, [array.shape for array in arrays])
        agree(*(outcome(kernel, arrays, bound) for kernel in kernels))


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", 1)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", [name for name in CASES if name not in SHORT])
def test_programs(name: str, options: Build) -> None:
    programs_agree(name, options)


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in CASES]
)
def test_programs_on_threads(name: str, options: Build) -> None:
    programs_agree(name, options)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "program",
    [each if each.name in BRIEF else pytest.param(each, marks=pytest.mark.long) for each in PROGRAMS.values()],
    ids=str,
)
def test_characteristic_programs(program: CharacteristicProgram) -> None:
    for call in program.calls:
        arguments = arguments_of(program, call, "float32")
        wanted = np.asarray(program.function(*arguments, **program.options))
        with tc.config(target="numba"):
            found = np.asarray(program.function(*arguments, **program.options))
        np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=3e-6)


def test_products_are_no_tiles(options: Build) -> None:
    kernel = loaded("matmul", "numba", options)
    assert "panels" not in kernel.source
    assert "panels" in loaded("matmul", "cpu", options).source


def test_the_demonstration(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TCDSL_CACHE_DIR": str(tmp_path), "TCDSL_TARGET": "numba"}
    command = [sys.executable, "-m", "tcdsl", "demo", "--short", "--epochs", "2"]
    environment["NUMBA_NUM_THREADS"] = "1"
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "accuracy on held-out" in done.stdout
    assert "tcdsl.targets.numba.language" in "".join(path.read_text() for path in tmp_path.glob("modules/*.py"))


@tc.op
def rows(table, at):
    y[i, j] = table[at[i], j]
    return y


@tc.op
def energy(x):
    e[()] += tanh(x[i]) * x[i]
    return e


@tc.op
def orbit(x, n: int):
    s[()] = x[()]
    for _ in range(n):
        s[()] = 3.7 * s * (1.0 - s)
    return s


def test_gradients_strides_and_faults() -> None:
    x = RNG.normal(size=8)[::-2]
    wanted = tc.grad(energy)(x)
    with pytest.raises(tc.DataIndexError) as told:
        rows(np.zeros((3, 2)), np.array([0, 3]))
    with tc.config(target="numba"):
        np.testing.assert_allclose(tc.grad(energy)(x), wanted, rtol=1e-12)
        with pytest.raises(tc.DataIndexError) as found:
            rows(np.zeros((3, 2)), np.array([0, 3]))
    assert str(found.value) == str(told.value)


def test_what_numba_does_not_have_is_refused(options: Build) -> None:
    with tc.config(target="numba", check="bounds"), pytest.raises(tc.TcdslError, match="tested accesses") as told:
        rows(np.zeros((3, 2)), np.array([0, 1]))
    assert 'tc.config(target="cpu")' in str(told.value)
    with tc.config(target="numba"), pytest.raises(tc.TcdslError, match="arrays of float16"):
        energy(np.zeros(2, np.float16))
    with pytest.raises(tc.TcdslError, match="needs views, which Numba does not have"):
        target_named("numba").generate(tiled_kernels.matmul(), replace(options, contiguous=(True, True)))
    wide = lower(parse_program(CASES["matmul"].text), largest=2**63 - 1)
    with pytest.raises(tc.TcdslError, match="needs integers of more than 64 bits, which Numba does not have"):
        target_named("numba").generate(wide, replace(options, contiguous=(True, True)))


def test_threads_are_those_of_the_settings_and_numbas_own_afterwards(options: Build) -> None:
    import numba

    seen = []
    kernel = loaded("softmax", "numba", options)
    run, arguments = kernel._driven(kernel._begun([RNG.normal(size=(2, 3))], {"N": 2, "M": 3}, None), 1)
    before = numba.get_num_threads()
    run.func(1, lambda *_: seen.append(numba.get_num_threads()) or 0, *arguments)
    assert (seen, numba.get_num_threads()) == ([1], before)


def test_forked_processes_are_told_that_they_have_no_threads(options: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = loaded("softmax", "numba", options)
    monkeypatch.setattr("tcdsl.targets.numba.target._PROCESSES", {-1})
    with pytest.raises(tc.ConfigurationError, match=r"was forked from one that has used Numba's threads"):
        kernel.run([np.ones((2, 3), "float32")], {"N": 2, "M": 3})


def test_bound_kernels_run_again(options: Build) -> None:
    kernel = loaded("softmax", "numba", options)
    x = RNG.normal(size=(3, 5)).astype("float32")
    bound = kernel.bind([x], {"N": 3, "M": 5})
    for _ in range(2):
        x[...] = RNG.normal(size=x.shape)
        bound()
        np.testing.assert_allclose(bound.outputs[0].sum(1), np.ones(3), rtol=1e-5)


def test_compiled_modules_are_kept_on_disk(options: Build) -> None:
    loaded("snapshot", "numba", options)
    gc.collect()  # and so no longer in memory
    kernel = loaded("snapshot", "numba", options)
    assert kernel.from_disk
    assert kernel.path.read_text() == kernel.source
    agree(outcome(kernel, [np.ones(3, "float32")], {"N": 3}), [np.array([2, 4, 4], "float32"), np.ones(3, "float32")])


def functions_of(text: str, name: str, folder: Path) -> dict[str, Any]:
    """What a user has who saves the text as a file and imports it."""
    path = folder / f"{name}.py"
    path.write_text(text)
    module: dict[str, Any] = {"__name__": name}
    exec(compile(text, path, "exec"), module)
    return module


def test_the_text_can_be_taken_away(tmp_path: Path) -> None:
    x = np.float64(0.3)
    with tc.config(target="numba"):
        compiled = functions_of(str(orbit.explain("python", x, 5)), "compiled", tmp_path)
    plain = functions_of(str(orbit.explain("python", x, 5)), "plain", tmp_path)
    assert "rounds(frame, range(" in (tmp_path / "compiled.py").read_text()
    given, left = np.full((), 0.3), np.empty(())
    for module in (plain, compiled):
        [nest] = [value for name, value in module.items() if name.startswith("rounds_of")]
        left[...] = 0
        frame = in_python.frame_of(5, given, left)
        nest(0, 0, frame.ctypes.data)
        assert frame[0] == 0
        np.testing.assert_allclose(left, orbit(x, 5), rtol=1e-14)
    asked = []
    look = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda frame: asked.append(frame) or len(asked) // 3)
    frame = in_python.frame_of(10**12, given, left)
    frame[INTERRUPT_WORD] = ctypes.cast(look, ctypes.c_void_p).value
    left[...] = 7
    nest(0, 0, frame.ctypes.data)
    assert (len(asked), asked[0], left) == (3, frame.ctypes.data, 7)


def printed_names(module: Any) -> set[str]:
    rows = {row.code.partition("(")[0] for row in PRIMITIVES.values()}
    return {name for name in vars(module) if name in {*rows, *DTYPES, "bool_", *in_python.__all__}}


def test_there_is_a_name_for_all_that_is_printed() -> None:
    from tcdsl.targets.numba import language

    lacking = {"checked_buffer", "checked_local_buffer", "float16", "frame_of", "host_call", "procedure", "view"}
    assert printed_names(in_python) - printed_names(language) == lacking


@pytest.mark.long
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype not in ("bool", "float16")])
@pytest.mark.parametrize("name", [name for name, row in PRIMITIVES.items() if "(" in row.code])
def test_primitives(name: str, dtype: str) -> None:
    import numba

    from tcdsl.targets.numba import language

    row, floating = PRIMITIVES[name], dtype.startswith("f")
    if floating if row.kind in ("bits", "integer") else row.kind == "real" and not floating:
        pytest.skip("has no such type")
    source: list[Any] = [-np.inf, -2.5, -1, -0.0, 0.0, 0.3, 1, 3, 700, np.inf, np.nan]
    if not floating:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        source = [least, most, 0, 1, 2, 3, 100, *((-1, -2, -7) if least else ())]
    values = [np.dtype(dtype).type(value) for value in source]
    called = getattr(language, row.code.partition("(")[0])
    parameters = ", ".join("ab"[: row.arity])
    names = {"called": called}
    exec(f"def function({parameters}):\n    return called({parameters})", names)
    function = numba.njit(error_model="numpy")(names["function"])
    with np.errstate(all="ignore"):
        for given in [(a,) for a in values] if row.arity == 1 else [(a, b) for a in values for b in values]:
            found, wanted = function(*given), np.asarray(row.evaluate(*given)).astype(dtype)
            tolerance = (3e-6 if dtype == "float32" else 1e-12) if floating else 0
            np.testing.assert_allclose(np.asarray(found).astype(dtype), wanted, rtol=tolerance, err_msg=str(given))
            if wanted == 0 and floating:
                assert np.signbit(found) == np.signbit(wanted), given
