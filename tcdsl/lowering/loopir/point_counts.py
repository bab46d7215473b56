"""How many points a kernel executes for given sizes: every value that its loops store or accumulate.

The operations of a program say nothing about cells that are filled with zeros, or visited in vain. Loops have exact
bounds, so the points that they execute are counted without executing them: a loop whose variable no bound and no test
inside mentions multiplies what is inside, the others are enumerated, vectorized.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

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

__all__ = ["Measure", "Work", "executed_by_nest", "executed_points"]

Work = Counter[tuple[str, str]]
"""What nodes do, by kind and by buffer, ``("read", "A")``; the buffer is empty for what is done to none."""

Measure = Callable[[Node], Mapping[tuple[str, str], int]]
"""What a store, an accumulation or a definition does each time."""

_POINT = ("points", "")
_BLOCK = 1 << 20
_ENDLESS = 1 << 40


def executed_points(kernel: Kernel, sizes: Mapping[str, int]) -> int:
    """``executed_points(lower(matmul), {"N": 3, "K": 4, "M": 5})`` is 75: 15 zeros stored, 60 products added.

    What stands behind a condition on data counts as if the condition held (of two branches, the longer one), because
    its points are visited in any case. Loops of rounds have as many as they can have, or one if data alone says how
    many.
    """
    counter = _Counter(kernel, sizes, _points)
    return counter.all_of(tuple(_nodes(kernel.body)))[_POINT]


def executed_by_nest(kernel: Kernel, sizes: Mapping[str, int], measure: Measure) -> list[tuple[Work, int]]:
    """What each nest does by ``measure``, and how often it runs: of loops of rounds all rounds that it has at most."""
    counter, runs = _Counter(kernel, sizes, measure), _Counter(kernel, sizes, _points)
    probe = (Store("", (), integer(0)),)
    return [
        (counter.all_of(around(tuple(nest.body))), runs.all_of(around(probe))[_POINT])
        for nest, around in _alone(kernel.body, tuple)
    ]


Around = Callable[[tuple[Node, ...]], tuple[Node, ...]]


def _alone(body: Sequence[Nest | Rounds], around: Around) -> Iterator[tuple[Nest, Around]]:
    # Each nest, with what puts its nodes into the loops of rounds around it.
    for each in body:
        if isinstance(each, Rounds):
            yield from _alone(each.body, partial(_inside, around, each))
        else:
            yield each, around


def _inside(around: Around, rounds: Rounds, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return around((_loop(rounds, nodes),))


def _points(node: Node) -> Mapping[tuple[str, str], int]:
    return {} if isinstance(node, Define) else {_POINT: 1}


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
    def __init__(self, kernel: Kernel, sizes: Mapping[str, int], measure: Measure) -> None:
        self._sizes = sizes
        self._measure = measure
        self._measured: dict[int, tuple[Node, Mapping[tuple[str, str], int]]] = {}
        self._procedures = {each.name: (each, _with_sizes_as_scalars(each)) for each in kernel.procedures}
        self._steering: dict[int, frozenset[str]] = {}

    def all_of(self, nodes: tuple[Node, ...]) -> Work:
        """What ``nodes`` do, run once."""
        with np.errstate(all="ignore"):
            return self.executed(nodes, _Positions({}, np.ones(1, np.int64)))

    def executed(self, nodes: Sequence[Node], positions: _Positions) -> Work:
        """What the stores and accumulations among ``nodes`` do."""
        done: Work = Counter()
        if not positions.times.any():
            return done
        for node in nodes:
            match node:
                case Store() | Update() | Accumulate():
                    self._add(done, node, positions)
                case Loop():
                    for inside in self._iterations(node, positions):
                        done.update(self.executed(node.body, inside))
                case Branch(condition=condition, body=body, otherwise=otherwise):
                    try:
                        holds = self._value(condition, positions).astype(bool)
                    except _OnData:
                        sides = [self.executed(each, positions) for each in (body, otherwise)]
                        done.update(max(sides, key=lambda side: sum(side.values())))
                    else:
                        done.update(self.executed(body, positions.at(holds)))
                        done.update(self.executed(otherwise, positions.at(~holds)))
                case Define(name=name, value=value):
                    self._add(done, node, positions)
                    try:
                        positions.scalars[name] = self._value(value, positions)
                    except _OnData:
                        positions.scalars[name] = None
                case ProcedureCall():
                    done.update(self._called(node, positions))
                case Check() | LocalBuffer():
                    pass
        return done

    def _add(self, done: Work, node: Node, positions: _Positions) -> None:
        known = self._measured.get(id(node))
        if known is None:
            known = self._measured[id(node)] = node, self._measure(node)
        if known[1]:
            times = int(positions.times.sum())
            for key, count in known[1].items():
                done[key] += count * times

    def _called(self, call: ProcedureCall, positions: _Positions) -> Work:
        # A procedure knows the extents of its views, and nothing of the loops around the call.
        procedure, body = self._procedures[call.procedure]
        sizes: dict[str, Array | None] = {
            _scalar(size): self._value(extent, positions) for size, extent in size_extents(procedure, call).items()
        }
        names = {own.name: view.buffer for own, view in zip(procedure.parameters, call.views, strict=True)}
        done: Work = Counter()
        for (kind, buffer), count in self.executed(body, _Positions(sizes, positions.times)).items():
            done[kind, names.get(buffer, buffer)] += count
        return done

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
