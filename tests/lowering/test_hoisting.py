"""Data indices that do not change in a loop are read and checked in front of it, if the loop has a point at all."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl import DataIndexError, op
from tcdsl.ir.build import index, integer
from tcdsl.ir.expressions import Boundary, Expr, Local, Read
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loop_passes.hoisting import hoisted
from tcdsl.lowering.loopir.loops import Accumulate, Check, Define, Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import check, staged

X = np.arange(20.0).reshape(4, 5) - 7
IDS, BAD = np.array([3, 0, 3, 2]), np.array([2, 0, 4, 1])


def fails(function: object, *arrays: np.ndarray) -> None:
    with pytest.raises(DataIndexError, match="index 4 is out of range for axis 0 of x, which has 4 cells"):
        execute(lower(staged(function, *arrays)), arrays)


def test_an_index_is_checked_if_any_loop_below_reads_it() -> None:
    @op
    def two(x: real[N, M], ids: int64[N], w: real[P, K]):
        y[i, j] >>= x[ids[i], j] * w[j, k]
        return y

    @op
    def three(x: real[N, M], ids: int64[N], w: real[P, K]):
        y[i, j] >>= x[ids[i], l] * w[j, k]
        return y

    w = np.array([[1.0, -2], [3, 0.5], [0, -1], [2, 2], [-4, 1]])
    check(two, X, IDS, w, wanted=((X[IDS][:, :, None] * w).max(axis=2),))
    check(three, X, IDS, w, wanted=((X[IDS][:, None, :, None] * w[:, None]).max(axis=(2, 3)),))
    fails(two, X, BAD, w)
    fails(three, X, BAD, w)
    # Nothing is read: no row has a term, or there is no row.
    nothing = np.full((4, 5), -np.inf)
    for function in (two, three):
        check(function, X, BAD, w[:, :0], wanted=(nothing,))
    check(three, X[:, :0], BAD, w, wanted=(nothing,))
    check(three, X, BAD, w[:0], wanted=(nothing[:, :0],))


def test_an_index_is_checked_if_the_range_of_a_loop_below_is_not_empty() -> None:
    @op
    def below(x: real[N, M], ids: int64[N], w: real[M, K]):
        y: real[N, M]
        y[i, j] >>= x[ids[i], k] * w[k, l], k < j
        return y

    w = np.ones((5, 2))
    wanted = np.full((4, 5), -np.inf)
    for j in range(1, 5):
        wanted[:, j] = X[IDS][:, :j].max(axis=1)
    check(below, X, IDS, w, wanted=(wanted,))
    fails(below, X, BAD, w)
    check(below, X[:, :1], BAD, w[:1], wanted=(wanted[:, :1],))
    check(below, X, BAD, w[:, :0], wanted=(np.full((4, 5), -np.inf),))


def test_an_index_of_all_iterations_of_a_parallel_loop() -> None:
    @op
    def f(x: real[N, N], ids: int64[N], w: real[N, K]):
        y[i] >>= x[ids[2], i] * w[i, k]
        return y

    x, w = X[:, :4], X[::-1]
    check(f, x, IDS, w, wanted=((x[3][:, None] * w).max(axis=1),))
    fails(f, x, BAD, w)
    check(f, x, BAD, w[:, :0], wanted=(np.full(4, -np.inf),))


def test_loops_whose_iterations_are_shared_begin_their_nests() -> None:
    @op
    def f(x: real[N, M], ids: int64[N]):
        y[i, j] = x[ids[0], j] * x[i, 0]
        return y

    check(f, X, IDS, wanted=(X[3] * X[:, :1],))
    (nest,) = lower(staged(f, X, IDS)).nests
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    assert loop.kind == "parallel"


def test_an_index_of_all_cells_is_checked_once_a_block() -> None:
    @op
    def f(x: real[N, M], row: int64[()], w: real[M]):
        y[j] = x[row, j] * w[j]
        return y

    wide = np.arange(4.0 * 5000).reshape(4, 5000)
    for x in (X, wide):
        check(f, x, np.array(3), x[0], wanted=(x[3] * x[0],))
        fails(f, x, np.array(4), x[0])
    check(f, X[:, :0], np.array(4), X[0, :0], wanted=(np.zeros(0),))
    (nest,) = lower(staged(f, X, np.array(3), X[0])).nests
    (blocks,) = nest.body
    assert isinstance(blocks, Loop)
    assert blocks.kind == "parallel"
    inner = [node for node in walk_nodes(blocks.body) if isinstance(node, Loop)]
    assert [any(isinstance(node, Check) for node in walk_nodes(loop.body)) for loop in inner] == [False]


def cell(buffer: str, position: Expr) -> Read:
    return Read(buffer, (position,), (Boundary.SKIP,), "int64")


FIRST = cell("q", integer(0))
WRITTEN = Store("y", (index("i"),), Local("p", "int64"))


@pytest.mark.parametrize(
    ("stays", "changed"),
    [
        (FIRST, Store("z", (index("i"),), integer(1))),
        (FIRST, Store("q", (index("i"),), integer(1))),
        (FIRST, Update("q", (index("i"),), "add", integer(1))),
        (cell("q", Local("n", "int64")), Define("m", integer(1))),
        (cell("q", Local("n", "int64")), Define("n", integer(1))),
        (cell("q", Local("n", "int64")), Accumulate("n", "add", integer(1))),
        (FIRST, Define("p", integer(1))),
        (FIRST, Accumulate("p", "add", integer(1))),
    ],
)
def test_only_what_no_iteration_changes_is_moved(stays: Expr, changed: Node) -> None:
    define = Define("p", stays)
    rest = (WRITTEN, Loop("j", integer(0), integer(4), 1, (changed,)))
    loop = Loop("i", integer(0), integer(4), 1, (define, *rest))
    harmless = changed in (Store("z", (index("i"),), integer(1)), Define("m", integer(1)))
    moved = (define, Loop("i", integer(0), integer(4), 1, rest))
    assert hoisted((loop,), FreshNames(())) == (moved if harmless else (loop,))
