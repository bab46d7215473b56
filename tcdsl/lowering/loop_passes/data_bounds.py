"""Loops over what data exclude but for a range, between the ends of that range.

::

    for k in 0 .. K:                               low = min(max(row[i], 0), K)
        if k >= row[i] and k < row[i + 1]:         high = max(min(row[i + 1], K), low)
            acc += x[k]                            for k in low .. high:
                                                       acc += x[k]

The ends are read only if the loop has a point, because they stand in its condition. A cell that each step takes into a
scalar, and puts back, stays as it is where the condition does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tcdsl.ir.build import apply, cast, integer, truth
from tcdsl.ir.conjunctions import conjuncts
from tcdsl.ir.expressions import Expr, Local, Read, reads
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Branch, Define, Loop, Node, Store
from tcdsl.lowering.loopir.traversal import changed_names, rewritten, scalars_of
from tcdsl.simplification.data_ranges import DataEnd, data_ends

__all__ = ["within_data_ranges"]


def within_data_ranges(nodes: Iterable[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with loops that end where data say that no more points take part."""
    return rewritten(nodes, lambda node: _loop(node, names) if isinstance(node, Loop) else (node,))


def _loop(loop: Loop, names: FreshNames) -> tuple[Node, ...]:
    if loop.kind != "serial" or loop.step != 1 or loop.rounds or loop.condition is not None:
        return (loop,)
    before: tuple[Node, ...] = ()
    after: tuple[Node, ...] = ()
    match loop.body:
        case (Branch(otherwise=()) as branch,):
            pass
        case (Define() as taken, Branch(otherwise=()) as branch, Store() as put) if _puts_back(taken, put):
            before, after = (taken,), (put,)
        case _:
            return (loop,)
    changed = changed_names((loop,))
    ends = [end for end in data_ends(branch.condition, loop.variable) if _names(end.value).isdisjoint(changed)]
    if not any(any(reads(end.value)) for end in ends):
        return (loop,)
    low, high = Local(names.fresh("low"), "int64"), Local(names.fresh("high"), "int64")
    first, stop = loop.start, loop.stop
    for end in ends:
        if end.first:
            first = apply("max", first, _within(end, loop))
        else:
            stop = apply("min", stop, _within(end, loop))
    said = {end.condition for end in ends}
    rest = [each for each in conjuncts(branch.condition) if each not in said]
    body = (*before, *((Branch(_all(rest), branch.body),) if rest else branch.body), *after)
    nodes = (
        Define(low.name, first, index=True),
        Define(high.name, apply("max", stop, low), index=True),
        replace(loop, start=low, stop=high, body=body),
    )
    some = apply("lt", loop.start, loop.stop)
    return nodes if some == truth(True) else (Branch(some, nodes),)


def _puts_back(taken: Define, put: Store) -> bool:
    """Whether ``put`` stores the scalar that ``taken`` defines where that has read it."""
    cell, value = taken.value, put.value
    return (
        isinstance(cell, Read)
        and isinstance(value, Local)
        and value.name == taken.name
        and (cell.tensor, cell.indices) == (put.buffer, put.indices)
    )


def _within(end: DataEnd, loop: Loop) -> Expr:
    # What is beyond the loop's ends is at them, so that one step more overflows nothing.
    kind = end.value.dtype
    before = cast(apply("sub", loop.start, integer(1)), kind)
    value = cast(apply("min", apply("max", end.value, before), cast(loop.stop, kind)), "int64")
    return apply("add", value, integer(end.offset)) if end.offset else value


def _all(conditions: Iterable[Expr]) -> Expr:
    first, *others = conditions
    for each in others:
        first = apply("and_", first, each)
    return first


def _names(expr: Expr) -> frozenset[str]:
    return scalars_of(expr) | {read.tensor for read in reads(expr)}
