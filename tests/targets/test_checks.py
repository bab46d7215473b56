"""Data that is out of range: the error names tensor, axis, value and place, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import DataIndexError, ShapeError, TcdslError
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Cast, Local
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loops import Check, Define, Kernel, Store
from tcdsl.lowering.lower import lower
from tcdsl.span import Span
from tcdsl.targets.cpu.compiled import CompiledKernel
from tcdsl.targets.protocol.target import Build
from tests.lowering.cases import CASES
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import I, J, M, N, P, loop, make, read


def gather(dtype: str = "int64") -> Kernel:
    """``E[i, j] = table[ids[i], j]``."""
    row = Local("row", "int64")
    ids = read("ids", I, dtype=dtype)
    inside = apply("and_", apply("ge", row, integer(0)), apply("lt", row, N))
    check = Check(inside, "table", 0, ids, N, Span("gather.py", 3, 14, 3, 20))
    value = ids if dtype == "int64" else Cast(ids, "int64")
    body = loop(
        "i", P, Define("row", value), check, loop("j", M, Store("E", (I, J), read("table", row, J))), parallel=True
    )
    inputs = {"table": ("float32", (N, M)), "ids": (dtype, (P,))}
    return make(inputs, {"E": ("float32", (P, M))}, [body], name="gather", work=apply("mul", P, M))


@pytest.fixture
def compiled(options: Build) -> CompiledKernel:
    return compile_kernel(gather(), contiguous=(True, True), options=options)


def sizes(table: np.ndarray, ids: np.ndarray) -> dict[str, int]:
    return {"N": table.shape[0], "M": table.shape[1], "P": len(ids)}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_gather(dtype: str, options: Build) -> None:
    table, ids = np.linspace(0, 1, 21, dtype=np.float32).reshape(7, 3), np.array([6, 0, 3, 3], dtype)
    kernel = compile_kernel(gather(dtype), contiguous=(True, True), options=options)
    (E,) = kernel.run([table, ids], sizes(table, ids))
    np.testing.assert_array_equal(E, table[ids])


@pytest.mark.parametrize("bad", [7, -1, 2**62, -(2**62)])
def test_out_of_range(bad: int, compiled: CompiledKernel) -> None:
    table, ids = np.zeros((7, 3), np.float32), np.array([6, 0, bad, 9])
    with pytest.raises(DataIndexError) as caught:
        compiled.run([table, ids], sizes(table, ids))
    message = str(caught.value)
    assert f"index {bad} is out of range for axis 0 of `table`, which has extent 7" in message
    assert "at i = 2" in message
    assert message.startswith("gather.py:3:")
    assert isinstance(caught.value, IndexError)
    # The next call starts afresh.
    fine = np.array([6, 0, 1, 2])
    np.testing.assert_array_equal(compiled.run([table, fine], sizes(table, fine))[0], table[fine])


def test_a_failed_call_changes_no_output(compiled: CompiledKernel) -> None:
    table, ids = np.ones((7, 3), np.float32), np.array([6, 0, 7])
    out = np.full((3, 3), 5, np.float32)
    with pytest.raises(DataIndexError):
        compiled.run([table, ids], sizes(table, ids), outputs=[out])
    assert (out == 5).all()
    ids[2] = 2
    (result,) = compiled.run([table, ids], sizes(table, ids), outputs=[out])
    assert result is out
    np.testing.assert_array_equal(out, table[ids])
    for wrong in (np.zeros((3, 3)), np.zeros((3, 2), np.float32)):
        with pytest.raises(ValueError, match="not float32"):
            compiled.run([table, ids], sizes(table, ids), outputs=[wrong])
    with pytest.raises(ValueError, match="1 outputs, not 0"):
        compiled.run([table, ids], sizes(table, ids), outputs=[])


def test_an_empty_table_has_no_valid_index(compiled: CompiledKernel) -> None:
    table, ids = np.zeros((0, 3), np.float32), np.array([0])
    with pytest.raises(DataIndexError, match="extent 0"):
        compiled.run([table, ids], sizes(table, ids))
    assert compiled.run([table, ids[:0]], sizes(table, ids[:0]))[0].shape == (0, 3)


def test_the_first_fault_is_reported_whatever_the_threads(compiled: CompiledKernel) -> None:
    table, ids = np.zeros((7, 16), np.float32), np.zeros(50_000, np.int64)
    ids[[31_000, 1_000, 49_999]] = [99, 77, 88]
    for threads in (1, 2, 3, 2, 2):
        with pytest.raises(DataIndexError, match=r"index 77 .*\n.*at i = 1000"):
            compiled.run([table, ids], sizes(table, ids), threads=threads)


def test_a_cell_written_twice(options: Build) -> None:
    program = parse_program("""
program scatter
input X: float32[N]
input ids: int64[N_1]
assert N == N_1, "lengths"
tensor Y: float32[N]
Y[ids[i]] = X[i]  for [i]: 0 <= i < N  with unique
return Y
""")
    compiled = compile_kernel(lower(program), contiguous=(True, True), options=options)
    n = 40_000
    ids = np.arange(n)[::-1].copy()
    X = np.linspace(0, 1, n, dtype=np.float32)
    sizes = {"N": n, "N_1": n}
    np.testing.assert_array_equal(compiled.run([X, ids], sizes)[0], X[::-1])
    ids[30_000] = ids[17]
    with pytest.raises(ShapeError, match=r"a cell of `Y` is written twice\n.*at i = 30000"):
        compiled.run([X, ids], sizes)


def test_debug_finds_accesses_out_of_range(options: Build) -> None:
    # What lowering must never produce: here it does.
    body = loop("i", N, Store("Y", (I,), read("X", apply("add", I, integer(1)))))
    kernel = make({"X": ("float32", (N,))}, {"Y": ("float32", (N,))}, [body])
    checked = Build((), checked=True, cache_dir=options.cache_dir)
    X = np.zeros(5, np.float32)
    compiled = compile_kernel(kernel, contiguous=(True,), options=checked)
    with pytest.raises(TcdslError, match="read or wrote X at 5 along axis 0, whose extent is 5"):
        compiled.run([X], {"N": 5})
    assert compiled.run([X[:0]], {"N": 0})[0].shape == (0,)
    strided = compile_kernel(kernel, contiguous=(False,), options=checked)
    with pytest.raises(TcdslError, match="read or wrote X at 5"):
        strided.run([np.zeros(10, np.float32)[::-2]], {"N": 5})


def test_llvm_says_nothing_of_tested_accesses(options: Build, capfd: pytest.CaptureFixture[str]) -> None:
    program = parse_program(CASES["matmul"].text)
    checked = Build((), checked=True, cache_dir=options.cache_dir)
    compile_kernel(lower(program), contiguous=(True, True), options=checked)
    assert capfd.readouterr() == ("", "")


def test_the_place_is_given_in_the_variables_of_the_statement(options: Build) -> None:
    # The scatter is split into blocks of columns, which are nobody's business.
    program = parse_program("""
program scatter
input X: float32[N, M]
input ids: int64[N_1]
assert N == N_1, "lengths"
tensor Y: float32[5, M]
Y[ids[row], d] += X[row, d]  for [row, d]: 0 <= row < N and 0 <= d < M
return Y
""")
    compiled = compile_kernel(lower(program), contiguous=(True, True), options=options)
    X, ids = np.ones((3, 2), np.float32), np.array([0, 4, 5])
    with pytest.raises(DataIndexError, match=r"index 5 is out of range for axis 0 of `Y`.*\n    at row = 2\n"):
        compiled.run([X, ids], {"N": 3, "M": 2, "N_1": 3})
