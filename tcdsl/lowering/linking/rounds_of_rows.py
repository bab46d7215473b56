"""Rounds that go from row to row of the same arrays: all rounds of a row, then the next row.

::

    repeat k in 0 .. K:                            parallel for i in 0 .. N:
        parallel for i in 0 .. N:                      for k in 0 .. K:
            for j in 0 .. M:                               for j in 0 .. M:
                a[i, j] = 0.5 * x[i, j, k]                     a[i, j] = 0.5 * x[i, j, k]
        parallel for i in 0 .. N:                          for j in 0 .. M:
            for j in 0 .. M:                                   y[i, j, k] = a[i, j] + y[i, j, k - 1]
                y[i, j, k] = a[i, j] + y[i, j, k - 1]

What a row needs then stays in the nearest caches, and threads meet once. It can be so where no row touches another
one's cells, and nothing can fail: what fails first is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.expressions import Expr, Local, SizeValue, index_variables, reads, size_names, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.independent_rounds import independent
from tcdsl.lowering.loopir.loops import Branch, Check, Define, Loop, Nest, Node, Rounds, Step, Store, Update, spans_of
from tcdsl.lowering.loopir.traversal import map_expressions, own_expressions, renamed, scalars_of, serial, walk_nodes

__all__ = ["row_by_row"]

_INSIDE = Step("reorder", "rounds go inside of the loop over rows, of which none touches another one's cells")
_MOST_NODES = 256


def row_by_row(rounds: Rounds, names: FreshNames) -> Nest | None:
    """The loop ``rounds`` as one nest over the rows that all of its nests go over; ``None`` if it cannot be one."""
    nests = [each for each in rounds.body if isinstance(each, Nest) and each.bounds is None]
    if len(nests) < len(rounds.body) or rounds.swaps or any((rounds.condition, rounds.counter, rounds.begin)):
        return None
    loops = [node for nest in nests for node in nest.body]
    rows = [node for node in loops if isinstance(node, Loop) and _is_over_rows(node, rounds.number)]
    if not rows or len(rows) < len(loops) or len(list(walk_nodes(loops))) > _MOST_NODES:
        return None
    most = rounds.count if rounds.counted is None or rounds.most is None else rounds.most
    if any(reads(most)):
        return None  # arms of branches on data, and rounds that nothing bounds: work is a matter of sizes
    row = names.fresh(rows[0].variable)
    stop = reduce(partial(apply, "max"), dict.fromkeys(each.stop for each in rows))
    ahead: tuple[Node, ...] = ()
    count = rounds.count
    if rounds.counted is not None:
        end = Local(names.fresh(f"end_of_{rounds.number}"), "int64")
        ahead, count = (Define(end.name, plain_read(rounds.counted, (), "int64"), index=True),), end
    number: dict[Expr, Expr] = {SizeValue(rounds.number): index(rounds.number)}
    steps = map_expressions(_steps(rows, row, stop), lambda expr: substitute(expr, number))
    body = (*ahead, Loop(rounds.number, integer(0), count, 1, steps, rounds=rounds.label))
    if not independent(body, row, frozenset()):
        return None
    title = "\n".join(dict.fromkeys(line for nest in nests for line in nest.title.splitlines()))
    work = apply("mul", most, reduce(partial(apply, "add"), (nest.work for nest in nests)))
    schedule = (*dict.fromkeys(step for nest in nests for step in nest.schedule), _INSIDE)
    loop = Loop(row, integer(0), stop, 1, body, "parallel")
    return Nest(names.fresh(f"rows_of_{rounds.label}"), title, (loop,), work, schedule=schedule, spans=spans_of(nests))


def _is_over_rows(loop: Loop, number: str) -> bool:
    # Over the same rows in each round, which have loops along memory.
    if loop.start != integer(0) or loop.step != 1 or loop.rounds or number in size_names(loop.stop):
        return False
    if scalars_of(loop.stop) or any(reads(loop.stop)) or not all(isinstance(node, Loop) for node in loop.body):
        return False
    inside = list(walk_nodes(loop.body))
    if any(isinstance(node, Check) for node in inside):
        return False
    return not any(loop.variable in index_variables(last) for last in _along_memory(inside))


def _along_memory(nodes: Sequence[Node]) -> Iterator[Expr]:
    for node in nodes:
        if isinstance(node, Store | Update) and node.indices:
            yield node.indices[-1]
        for expr in own_expressions(node):
            yield from (read.indices[-1] for read in reads(expr) if read.indices)


def _steps(rows: Sequence[Loop], row: str, stop: Expr) -> Iterator[Node]:
    # What is done in a round for one row, which not all have.
    for each in rows:
        body = serial(renamed(each.body, {index(each.variable): index(row)}))
        if each.stop == stop:
            yield from body
        else:
            yield Branch(apply("lt", index(row), each.stop), body)
