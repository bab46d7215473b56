"""The characteristic programs against NumPy, in both floating types, down to extents 1 and 0."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tests.programs.table import LARGE, PROGRAMS, CharacteristicProgram, arguments_of

TOLERANCE = {"float32": {"rtol": 3e-5, "atol": 3e-6}, "float64": {"rtol": 1e-12, "atol": 1e-13}}

programs = pytest.mark.parametrize("program", PROGRAMS.values(), ids=str)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@programs
@dtypes
def test_values_agree_with_numpy(program: CharacteristicProgram, dtype: str) -> None:
    for call in program.calls:
        arguments = arguments_of(program, call, dtype)
        before = [array.copy() for array in arguments]
        found = program.function(*arguments, **program.options)
        wanted = np.asarray(program.reference(np, *arguments, **program.options))
        assert isinstance(found, np.ndarray | np.generic)
        assert found.shape == wanted.shape, call
        assert found.dtype == (dtype if program.smooth else wanted.dtype)
        np.testing.assert_allclose(found, wanted, **TOLERANCE[dtype], err_msg=str(call))
        for array, original in zip(arguments, before, strict=True):
            np.testing.assert_array_equal(array, original)


@programs
@dtypes
@pytest.mark.parametrize("threads", [1, 0], ids=["one thread", "all threads"])
def test_large_values_agree_with_numpy(program: CharacteristicProgram, dtype: str, threads: int) -> None:
    arguments = arguments_of(program, LARGE[program.name], dtype)
    with tc.config(threads=threads):
        found = program.function(*arguments, **program.options)
    wide = [array.astype("float64") if array.dtype.kind == "f" else array for array in arguments]
    wanted = np.asarray(program.reference(np, *wide, **program.options))
    assert found.shape == wanted.shape
    loose = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-10, "atol": 1e-11}
    np.testing.assert_allclose(found, wanted, **loose)


@programs
@dtypes
def test_interpreter_agrees_with_numpy(program: CharacteristicProgram, dtype: str) -> None:
    for call in program.calls:
        if sum(np.prod(shape) for shape in call) > 800:
            continue
        arguments = arguments_of(program, call, dtype)
        found = program.function.interpret(*arguments, **program.options)
        wanted = np.asarray(program.reference(np, *arguments, **program.options))
        assert found.shape == wanted.shape, call
        assert found.dtype == (dtype if program.smooth else wanted.dtype)
        np.testing.assert_allclose(found, wanted, **TOLERANCE[dtype], err_msg=str(call))


@programs
def test_strided_and_read_only_arguments(program: CharacteristicProgram) -> None:
    arguments = arguments_of(program, program.calls[0], "float64")
    wanted = program.function(*arguments, **program.options)
    fortran = [np.asfortranarray(array) for array in arguments]
    backwards = [np.ascontiguousarray(array[::-1])[::-1] for array in arguments]
    for array in fortran:
        array.flags.writeable = False
    for changed in (fortran, backwards):
        np.testing.assert_allclose(program.function(*changed, **program.options), wanted, rtol=1e-12, atol=1e-13)


@programs
@dtypes
def test_one_program_and_one_kernel_serve_every_shape(program: CharacteristicProgram, dtype: str) -> None:
    program.function.cache_clear()
    larger = tuple(tuple(tuple(n + 1 for n in shape) for shape in call) for call in program.calls)
    for call in (*program.calls, *larger):
        program.function(*arguments_of(program, call, dtype), **program.options)
    info = program.function.cache_info()
    # It may be on disk already, for a test that has run before, and gives way to the program itself where a call needs
    # a nest that was not compiled.
    kept = len(program.function.calls.served)
    assert info.programs == info.kernels <= 1 + kept <= 2
    assert info.misses == info.programs - kept
    assert info.hits == 2 * len(program.calls) - info.misses
