"""How many points a kernel executes for given sizes: every value that its loops store or accumulate.

The operations of a program say nothing about cells that are filled with zeros, or visited in vain. Loops have exact
bounds, so the points that they execute are counted without executing them: a loop whose variable no bound and no test
inside mentions multiplies what is inside, the others are enumerated, vectorized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcdsl.ir.build import index, integer
from tcdsl.ir.expressions import Expr, Local, SizeValue, reads, substitute
from tcdsl.ir.interpreter.point_values import Array, PointValues
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Check,
    Define,
    Kernel,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    Procedure,
    ProcedureCall,
    Rounds,
    Store,
    Update,
)
from tcdsl.lowering.loopir.traversal import map_expressions, scalars_of, size_extents, sizes_of

__all__ = ["executed_points"]

_BLOCK = 1 << 20
_ENDLESS = 1 << 40


def executed_points(kernel: Kernel, sizes: Mapping[str, int]) -> int:
    """``executed_points(lower(matmul), {"N": 3, "K": 4, "M": 5})`` is 75: 15 zeros stored, 60 products added.

    What stands behind a condition on data counts as if the condition held (of two branches, the longer one), because
    its points are visited in any case. Loops of rounds have as many as they can have, or one if data alone says how
    many.
    """
    counter = _Counter(kernel, sizes)
    nothing = _Positions({}, np.ones(1, np.int64))
    nodes = tuple(_nodes(kernel.body))
    with np.errstate(all="ignore"):
        return counter.executed(nodes, nothing)


def _nodes(body: Sequence[Nest | Rounds]) -> Iterator[Node]:
    # The nodes of nests, with loops of rounds as loops.
    for each in body:
        if isinstance(each, Rounds):
            yield _loop(each, tuple(_nodes(each.body)))
        else:
            yield from each.body


def _loop(rounds: Rounds, nodes: tuple[Node, ...]) -> Loop:
    number: dict[Expr, Expr] = {SizeValue(rounds.number): index(rounds.number)}
    body = map_expressions(nodes, lambda expr: substitute(expr, number))
    count = rounds.count
    if any(True for _ in reads(count)):
        count = integer(1) if rounds.most is None else rounds.most
    return Loop(rounds.number, integer(0), count, 1, body)


class _OnData(Exception):  # noqa: N818  # an answer, not an error
    """The value depends on the contents of a buffer."""


@dataclass(slots=True)
class _Positions:
    """Where the loops around stand: values of scalars, of which those missing do not matter, and how often each
    combination occurs. ``None`` stands for a scalar that is data.
    """

    scalars: dict[str, Array | None]
    times: Array

    def at(self, chosen: Array | slice) -> _Positions:
        """Some of the combinations."""
        scalars = {name: None if value is None else value[chosen] for name, value in self.scalars.items()}
        return _Positions(scalars, self.times[chosen])


class _Counter:
    def __init__(self, kernel: Kernel, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._procedures = {each.name: (each, _with_sizes_as_scalars(each)) for each in kernel.procedures}
        self._steering: dict[int, frozenset[str]] = {}

    def executed(self, nodes: Sequence[Node], positions: _Positions) -> int:
        """How often the stores and accumulations among ``nodes`` are executed."""
        if not positions.times.any():
            return 0
        count = 0
        for node in nodes:
            match node:
                case Store() | Update() | Accumulate():
                    count += int(positions.times.sum())
                case Loop():
                    count += sum(self.executed(node.body, inside) for inside in self._iterations(node, positions))
                case Branch(condition=condition, body=body, otherwise=otherwise):
                    try:
                        holds = self._value(condition, positions).astype(bool)
                    except _OnData:
                        count += max(self.executed(body, positions), self.executed(otherwise, positions))
                    else:
                        count += self.executed(body, positions.at(holds))
                        count += self.executed(otherwise, positions.at(~holds))
                case Define(name=name, value=value):
                    try:
                        positions.scalars[name] = self._value(value, positions)
                    except _OnData:
                        positions.scalars[name] = None
                case ProcedureCall():
                    count += self._called(node, positions)
                case Check() | LocalBuffer():
                    pass
        return count

    def _called(self, call: ProcedureCall, positions: _Positions) -> int:
        # A procedure knows the extents of its views, and nothing of the loops around the call.
        procedure, body = self._procedures[call.procedure]
        sizes: dict[str, Array | None] = {
            _scalar(size): self._value(extent, positions) for size, extent in size_extents(procedure, call).items()
        }
        return self.executed(body, _Positions(sizes, positions.times))

    def _iterations(self, loop: Loop, positions: _Positions) -> Iterator[_Positions]:
        try:
            start, stop = self._value(loop.start, positions), self._value(loop.stop, positions)
        except _OnData:
            start = np.zeros(len(positions.times), np.int64)
            stop = start + 1
        trips = np.maximum(0, -((start - stop) // loop.step))
        trips = np.where(trips > _ENDLESS, 1, trips)
        if loop.variable not in self._steers(loop.body):
            some = trips > 0
            inside = positions.at(some)
            yield _Positions(inside.scalars, inside.times * trips[some])
            return
        ends = np.cumsum(trips)
        for begin in range(0, int(ends[-1]), _BLOCK):
            # The numbers of the iterations; each belongs to the first position whose iterations end behind it.
            number = np.arange(begin, min(begin + _BLOCK, int(ends[-1])))
            owner = np.searchsorted(ends, number, side="right")
            inside = positions.at(owner)
            inside.scalars[loop.variable] = start[owner] + loop.step * (number - (ends[owner] - trips[owner]))
            yield inside

    def _steers(self, nodes: tuple[Node, ...]) -> frozenset[str]:
        """The scalars that bounds and tests among ``nodes`` mention, from outside."""
        found = self._steering.get(id(nodes))
        if found is not None:
            return found
        needed: set[str] = set()
        for node in reversed(nodes):
            match node:
                case Loop():
                    needed |= (self._steers(node.body) - {node.variable}) | _scalars(node.start) | _scalars(node.stop)
                case Branch():
                    needed |= self._steers(node.body) | self._steers(node.otherwise) | _scalars(node.condition)
                case ProcedureCall():
                    for view in node.views:
                        needed.update(*(_scalars(extent) for extent in view.extents if extent is not None))
                case Define() if node.name in needed:
                    needed |= _scalars(node.value)
        self._steering[id(nodes)] = frozenset(needed)
        return self._steering[id(nodes)]

    def _value(self, expr: Expr, positions: _Positions) -> Array:
        for name in scalars_of(expr):
            if positions.scalars.get(name) is None:
                raise _OnData
        known = {name: value for name, value in positions.scalars.items() if value is not None}
        count = len(positions.times)
        return PointValues(known, count, self._sizes, _unread).of(expr, np.arange(count), {})


def _with_sizes_as_scalars(procedure: Procedure) -> tuple[Node, ...]:
    # They differ from call to call.
    scalars: dict[Expr, Expr] = {SizeValue(name): Local(_scalar(name), "int64") for name in sizes_of(procedure)}
    return map_expressions(procedure.body, lambda expr: substitute(expr, scalars))


def _scalar(size: str) -> str:
    return f"size {size}"  # no other scalar's name holds a blank


def _unread(tensor: str) -> Array:
    raise _OnData


def _scalars(expr: Expr) -> frozenset[str]:
    return frozenset() if any(True for _ in reads(expr)) else scalars_of(expr)
