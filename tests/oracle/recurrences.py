"""Which cells a statement writes and which cells of its own target it reads, point by point: no recurrence is silent.

Conditions on data count as true here, and of branches that data decides both count as taken: what may be written counts
as written, and what may be read as read. But for the statements that follow a cell that data may have left out does not
count as written, nor does one whose place depends on data.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.oracle.accesses import AxisAccess
from tests.oracle.kinds import is_bool
from tests.oracle.nodes import (
    Axis,
    Cell,
    Fold,
    Node,
    Operation,
    free_variables,
    has_data,
    variables_of,
    walk,
)
from tests.oracle.ranges import candidates, explicit_ranges
from tests.oracle.reader import Statement
from tests.oracle.values import OutOfRangeError, Values

__all__ = ["Traffic", "conjuncts", "reads_itself", "restarted_cells", "traffic"]

Place = tuple[int, ...]
Point = Mapping[str, int]


def reads_itself(statement: Statement) -> bool:
    """Whether a statement reads cells of its own target."""
    nodes = (node for part in (*statement.conditions, statement.value) for node in walk(part))
    return any(isinstance(node, Cell) and node.tensor == statement.target for node in nodes)


@dataclass(frozen=True)
class Traffic:
    """``written`` and ``read`` by the points that touch each cell; ``anywhere`` if data decides what is written.

    ``certain`` unless conditions on data may leave cells out.
    """

    written: Mapping[Place, set[int]]
    read: Mapping[Place, set[int]]
    anywhere: bool
    certain: bool

    def recurs(self, before: np.ndarray) -> bool:
        """Whether a point reads a cell that another one writes and that is not among those written ``before``."""
        if self.anywhere:
            return False
        return any(
            not before[place] and self.written.get(place, set()) - {point}
            for place, points in self.read.items()
            for point in points
        )

    def after(self, before: np.ndarray) -> np.ndarray:
        """The cells that are surely written once the statement has run."""
        found = np.array(before)
        for place in self.written if self.certain and not self.anywhere else ():
            found[place] = True
        return found


def traffic(
    statement: Statement, values: Values, shape: tuple[int, ...], points: Sequence[Point], before: Values
) -> Traffic:
    """What the ``points`` of ``statement`` write and read; ``before`` evaluates what has no data in it."""
    written: dict[Place, set[int]] = {}
    read: dict[Place, set[int]] = {}
    walker = _Walker(statement, values, shape, before)
    own = reads_itself(statement)
    for number, point in enumerate(points):
        try:
            if not all(walker.holds(condition, point) for condition in (*statement.conditions, *walker.brackets())):
                continue
            parts = (*statement.conditions, statement.value) if own else ()
            cells = [cell for part in parts for cell in walker.reads(part, point)]
        except OutOfRangeError:
            continue
        for cell in cells:
            read.setdefault(cell, set()).add(number)
        if not walker.anywhere:
            written.setdefault(walker.target(point), set()).add(number)
    return Traffic(written, read, walker.anywhere, not any(map(has_data, own_conditions(statement))))


@dataclass(frozen=True)
class _Walker:
    statement: Statement
    values: Values
    shape: tuple[int, ...]
    plain: Values

    @property
    def anywhere(self) -> bool:
        return any(map(has_data, self.statement.indices))

    def target(self, point: Point) -> Place:
        return tuple(
            self.plain.place(index, extent, point)
            for index, extent in zip(self.statement.indices, self.shape, strict=True)
        )

    def brackets(self) -> list[Node]:
        # In a sum a bracket equals a condition.
        value = self.statement.value
        if self.statement.accumulate not in ("+", "-") or not isinstance(value, Operation) or value.name != "product":
            return []
        return [factor for factor in value.arguments if is_bool(self.values.kind(factor))]

    def holds(self, node: Node, point: Point) -> bool:
        """Whether a condition may hold."""
        if isinstance(node, Operation) and node.name == "and":
            return all(self.holds(part, point) for part in node.arguments)
        return has_data(node) or bool(self.plain.at(node, point))

    def fails(self, node: Node, point: Point) -> bool:
        return has_data(node) or not self.plain.at(node, point)

    def reads(self, node: Node, point: Point) -> Iterator[Place]:
        """The cells of the target that the value of ``node`` at ``point`` may be made of."""
        match node:
            case Cell():
                yield from self._cell(node, point)
            case Fold():
                yield from self._fold(node, point)
            case Operation(name="if" | "where", arguments=(test, body, other)):
                yield from self.reads(test, point)
                if self.holds(test, point):
                    yield from self._branch(body, point, test)
                if self.fails(test, point):
                    yield from self._branch(other, point, test)
            case Operation(name="and" | "or" as name, arguments=arguments):
                for argument in arguments:
                    yield from self.reads(argument, point)
                    if not (self.holds if name == "and" else self.fails)(argument, point):
                        return
            case Operation(name="product", arguments=factors):
                brackets = [factor for factor in factors if is_bool(self.values.kind(factor))]
                for bracket in brackets:
                    yield from self.reads(bracket, point)
                    if not self.holds(bracket, point):
                        return
                for factor in factors:
                    if factor not in brackets:
                        yield from self.reads(factor, point)
            case Operation(arguments=arguments):
                for argument in arguments:
                    yield from self.reads(argument, point)

    def _branch(self, node: Node, point: Point, test: Node) -> Iterator[Place]:
        try:
            yield from list(self.reads(node, point))
        except OutOfRangeError:
            if not has_data(test):
                raise

    def _cell(self, node: Cell, point: Point) -> Iterator[Place]:
        extents = self.values.arrays[node.tensor].shape
        for axis in node.axes:
            yield from self.reads(axis.index, point)
        if any(axis.mode == "data" or has_data(axis.index) for axis in node.axes):
            return
        try:
            place = tuple(self._moved(axis, extent, point) for axis, extent in zip(node.axes, extents, strict=True))
        except OutOfRangeError:
            if node.fill is None:
                raise
            yield from self.reads(node.fill, point)
            return
        if node.tensor == self.statement.target:
            yield place

    def _moved(self, axis: Axis, extent: int, point: Point) -> int:
        probe = Cell("probe", (axis,))
        found = Values({"probe": np.arange(extent)}, {}).at(probe, point)
        return int(found)

    def _fold(self, node: Fold, point: Point) -> Iterator[Place]:
        limits = {name: (low, high) for name, low, high in node.ranges}
        for place in itertools.product(*(self.values.candidates[name] for name in node.variables)):
            inner = {**point, **dict(zip(node.variables, place, strict=True))}
            if any(not low <= inner[name] < high for name, (low, high) in limits.items()):
                continue
            if not self.values.required(node, inner):
                continue
            try:
                if all(self.holds(condition, inner) for condition in node.conditions):
                    yield from [cell for part in (*node.conditions, node.body) for cell in self.reads(part, inner)]
            except OutOfRangeError:
                continue


def conjuncts(conditions: Sequence[Node]) -> Iterator[Node]:
    """The parts of conjunctions."""
    for condition in conditions:
        if isinstance(condition, Operation) and condition.name == "and":
            yield from conjuncts(condition.arguments)
        else:
            yield condition


def own_conditions(statement: Statement) -> list[Node]:
    """The conditions that speak of the target's variables alone: they say which cells are written."""
    names = frozenset[str]().union(*map(variables_of, statement.indices))
    return [each for each in conjuncts(statement.trailing) if free_variables(each) <= names]


def restarted_cells(
    statement: Statement,
    values: Values,
    accesses: Sequence[AxisAccess],
    writing: Sequence[AxisAccess],
    shape: Place,
) -> np.ndarray:
    """Which cells of an existing target a reset starts anew: those that its index list can reach.

    Its own conditions and the reads at its variables alone say which these are. Without such a condition an index that
    is data reaches every position.
    """
    conditions = own_conditions(statement)
    indices = [None if has_data(index) and not conditions else index for index in statement.indices]
    names = sorted(frozenset[str]().union(*(variables_of(index) for index in indices if index is not None)))
    reads = [access for access in accesses if _speaks_of(access, names)]
    alone = [access for access in reads if not access.guards]
    box = candidates(names, explicit_ranges(statement.only(tuple(conditions))), [*writing, *alone])
    found = np.zeros(shape, bool)
    for place in itertools.product(*(box[name] for name in names)):
        point = dict(zip(names, place, strict=True))
        try:
            if not all(values.at(condition, point) for condition in conditions):
                continue
            if not all(_fits(access, values, point) for access in reads):
                continue
            pairs = zip(indices, shape, strict=True)
            cell = tuple(
                slice(None) if index is None else values.place(index, extent, point) for index, extent in pairs
            )
        except OutOfRangeError:
            continue
        if all(isinstance(axis, slice) or 0 <= axis < extent for axis, extent in zip(cell, shape, strict=True)):
            found[cell] = True
    return found


def _speaks_of(access: AxisAccess, names: Sequence[str]) -> bool:
    mentioned = access.variables.union(*(variables_of(guard) for guard, _ in access.guards))
    return access.fold is None and bool(access.variables) and mentioned <= set(names)


def _fits(access: AxisAccess, values: Values, point: Point) -> bool:
    if any(bool(values.at(guard, point)) != wanted for guard, wanted in access.guards):
        return True
    return 0 <= values.place(access.index, access.extent, point) < access.extent
