"""Sums over ranges that data give cost what the ranges hold, in values and in derivatives."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import tcdsl
from tcdsl import DataIndexError, op
from tcdsl.autodiff import adjoint, tangent
from tcdsl.ir.build import integer
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.lowering.loopir.loops import Branch, Buffer, Loop, Nest, Node, Store, Update
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import staged

RNG = np.random.default_rng(3)
STEP = Update("steps", (), "add", integer(1))


@op
def sparse(val, col, row, x):
    y[i] = sum(val[k] * x[col[k]] for k in range(row[i], row[i + 1]))
    return y


@op
def rows_of(table, row, ids):
    y[i, c] = sum(table[k, c] for k in range(row[ids[i]], row[ids[i] + 1]))
    return y


@op
def largest(x, row):
    y[i] = max(x[k] ** 2 for k in range(row[i], row[i + 1]))
    return y


@op
def within(x, low, high):
    y[i] = sum(x[k] for k in range(low[i], high[i]))
    return y


@op
def between(x, low, high):
    y[i] += x[k], k > low[i], high[i] >= k
    return y


@op
def rounds(x, row):
    y[i] = 0.0 * row[i]
    for i in range(row.shape[0] - 1):
        y[i] += sum(x[k] for k in range(row[i], row[i + 1]))
    return y


@op
def guarded(x, row, ids, valid):
    y[i] += x[k], valid[i] > 0, k >= row[ids[i]], k < row[ids[i] + 1]
    return y


@op
def nested(x, row, off):
    y[i] = sum(sum(x[k] for k in range(row[j], row[j + 1])) for j in range(off[i], off[i + 1]))
    return y


@op
def blocks(table, row, col):
    y[i, j] = sum(table[k, l] for k in range(row[i], row[i + 1]) for l in range(col[j], col[j + 1]))
    return y


@op
def scattered(x, row):
    z = 0.0 * x
    z[k] += x[k] * i, k >= row[i], k < row[i + 1]
    return z


@op
def in_place(x, row):
    z = 2.0 * x
    for i in range(row.shape[0] - 1):
        z[k] *= z[k] + i, k >= row[i], k < row[i + 1]
    return z


def sparse_arrays(rows: int) -> list[np.ndarray]:
    row = np.concatenate([[0], np.cumsum(np.arange(rows) % 5)])
    return [RNG.normal(size=row[-1]), RNG.integers(0, rows, row[-1]), row, RNG.normal(size=rows)]


def counted(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    out: list[Node] = []
    for node in nodes:
        match node:
            case Loop():
                out.append(replace(node, body=(STEP, *counted(node.body))))
            case Branch():
                out.append(replace(node, body=counted(node.body), otherwise=counted(node.otherwise)))
            case _:
                out.append(node)
    return tuple(out)


def steps(program: Program, arrays: list[np.ndarray]) -> int:
    """How many steps the loops of a program make."""
    kernel = lower(program)
    clear = Nest("clear", "", (Store("steps", (), integer(0)),), integer(1))
    kernel = kernel.with_nests(replace(nest, code=counted(nest.body)) for nest in kernel.nests)
    buffers = (*kernel.buffers, Buffer("steps", "int64", (), "output", ()))
    outputs = (*kernel.outputs, "steps")
    found = execute(replace(kernel, body=(clear, *kernel.body), buffers=buffers, outputs=outputs), arrays)
    for mine, its in zip(found.outputs, interpret(program, arrays).outputs, strict=False):
        np.testing.assert_allclose(mine, its, rtol=1e-12, atol=1e-12)
    return int(found.outputs[-1])


@pytest.mark.parametrize("derive", ["value", "adjoint by val", "adjoint by x", "tangent"])
def test_steps_are_linear_in_what_the_ranges_hold(derive: str) -> None:
    found = []
    for rows in (100, 200):
        arrays = sparse_arrays(rows)
        program = staged(sparse, *arrays)
        if derive == "tangent":
            program = tangent(program, ["val", "x"])
            arrays += [RNG.normal(size=arrays[0].shape), RNG.normal(size=rows)]
        elif derive != "value":
            program = adjoint(program, [derive.removeprefix("adjoint by ")])
            arrays.append(RNG.normal(size=rows))
        found.append(steps(program, arrays))
    assert found[1] < 2.3 * found[0]


def test_rounds_change_in_place_what_the_ranges_hold() -> None:
    found = []
    for rows in (100, 200):
        x, _, row, _ = sparse_arrays(rows)
        found.append(steps(staged(in_place, x, row), [x, row]))
    assert found[1] < 2.3 * found[0]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8, np.uint64])
def test_ranges_have_any_integer_type(dtype: type) -> None:
    val, col, row, x = sparse_arrays(30)
    wanted = sparse.interpret(val, col, row, x)
    np.testing.assert_allclose(sparse(val, col, row.astype(dtype), x), wanted, rtol=1e-13)


def test_ends_may_lie_anywhere() -> None:
    val, col, row, x = sparse_arrays(30)
    row[3], row[8], row[9], row[20], row[-1] = -5, 2**63 - 1, -(2**63), 7, 2**62
    np.testing.assert_allclose(sparse(val, col, row, x), sparse.interpret(val, col, row, x), rtol=1e-13)
    low, high = np.array([-(2**63), 2**63 - 1, 3, 5]), np.array([2, 2**63 - 1, 2**63 - 1, 4])
    np.testing.assert_allclose(between(x, low, high), [x[:3].sum(), 0, x[4:].sum(), 0], rtol=1e-13)


@pytest.mark.parametrize("far", [2**63 - 1, 2**63, 2**63 + 3, 2**64 - 1])
def test_ends_of_uint64_are_the_numbers_that_they_are(far: int) -> None:
    x = np.arange(5.0)
    low, high = np.array([0, 3, far, 1], np.uint64), np.array([far, far, far, 4], np.uint64)
    for function, wanted in ((within, [10, 7, 0, 6]), (between, [10, 4, 0, 9])):
        np.testing.assert_array_equal(function(x, low, high), wanted)
        np.testing.assert_array_equal(function.interpret(x, low, high), wanted)


def test_kinds_of_ranges_agree_with_the_interpreter() -> None:
    row = np.concatenate([[0], np.cumsum(1 + np.arange(40) % 4)])
    x, ids = RNG.normal(size=row[-1]), RNG.integers(0, 40, 17)
    np.testing.assert_allclose(largest(x, row), np.maximum.reduceat(x**2, row[:-1]))
    table = RNG.normal(size=(row[-1], 3))
    np.testing.assert_allclose(rows_of(table, row, ids), np.add.reduceat(table, row[:-1])[ids])
    np.testing.assert_allclose(rounds(x, row)[:-1], np.add.reduceat(x, row[:-1]))
    assert not between(x[:0], row[:3], row[:3]).any()


@pytest.mark.parametrize("seed", range(4))
def test_ranges_in_any_order_behind_guards_and_in_ranges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, row, off = rng.normal(size=12), rng.integers(-2, 15, 6), np.array([0, 2, 3, 5])
    spans = [slice(max(a, 0), max(b, 0)) for a, b in pairwise(row)]
    sums = np.array([x[span].sum() for span in spans])
    np.testing.assert_allclose(nested(x, row, off), np.add.reduceat(sums, off[:-1]))
    # An index out of range behind a condition that does not hold is not read.
    ids, valid = np.array([3, 99, 0]), np.array([1, 0, 1])
    np.testing.assert_allclose(guarded(x, row, ids, valid), [sums[3], 0, sums[0]])
    table = rng.normal(size=(12, 12))
    np.testing.assert_allclose(blocks(table, row, row), [[table[a, b].sum() for b in spans] for a in spans], atol=1e-14)
    wanted = np.zeros(12)
    for i, span in enumerate(spans):
        wanted[span] += x[span] * i
    np.testing.assert_allclose(scattered(x, row), wanted)


def test_gradients_of_ranges() -> None:
    tcdsl.check_grads(sparse, sparse_arrays(30))
    row = np.concatenate([[0], np.cumsum(1 + np.arange(20) % 4)])
    tcdsl.check_grads(rows_of, (RNG.normal(size=(row[-1], 3)), row, RNG.integers(0, 20, 9)), order=2)
    tcdsl.check_grads(largest, (RNG.normal(size=row[-1]), row), modes=("fwd", "rev"))


def test_indices_are_checked_within_the_range_alone() -> None:
    val, col, row, x = sparse_arrays(30)
    row[:4] = row[4]
    col[0] = 99  # no range holds it
    np.testing.assert_allclose(sparse(val, col, row, x), sparse.interpret(val, col, row, x))
    col[row[6]] = 99
    with pytest.raises(DataIndexError, match="index 99 is out of range for axis 0 of `x`, which has extent 30"):
        sparse(val, col, row, x)
