"""Indices without variables: they skip nothing, so wherever a statement has points they must be in range."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tests.oracle.accesses import AxisAccess
from tests.oracle.kinds import is_bool
from tests.oracle.nodes import Fold, Node, Operation, has_data, walk
from tests.oracle.outcome import ShapeFaultError
from tests.oracle.ranges import evaluated, in_range
from tests.oracle.reader import Statement
from tests.oracle.recurrences import conjuncts
from tests.oracle.values import Values

__all__ = ["check_fixed_indices"]

Point = Mapping[str, int]


def check_fixed_indices(
    statement: Statement, accesses: Sequence[AxisAccess], values: Values, outer: Sequence[str]
) -> str:
    """A fault if an index without variables is out of range where the statement has points, whatever data holds.

    Else why tcdsl may find such a point: one that a read in a branch of data's choice may keep out.
    """
    wrong = [access for access in accesses if _is_fixed(access) and not in_range(access, {})]
    if not wrong:
        return ""
    levels = _Levels(statement, [access for access in accesses if not _is_fixed(access)], values, outer)
    doubtful = ""
    for access in wrong:
        for point in levels.points(access.fold):
            if not evaluated(access, point):
                continue
            if levels.surely(access.fold, point):
                raise ShapeFaultError(f"{access.tensor} has no index that skips nothing there")
            doubtful = "an index that skips nothing, where data decides whether there are points"
    return doubtful


def _is_fixed(access: AxisAccess) -> bool:
    return not has_data(access.index) and not access.variables


class _Levels:
    """The points of a statement and of the reductions in it, as far as sizes and index variables tell them."""

    def __init__(
        self, statement: Statement, accesses: Sequence[AxisAccess], values: Values, outer: Sequence[str]
    ) -> None:
        self.statement = statement
        self.accesses = accesses
        self.values = values
        self.outer = outer

    def points(self, fold: Fold | None) -> Iterator[Point]:
        """Those where all reads that are made whatever data holds are in range."""
        around: Iterator[Point] = iter([{}]) if fold is None else self.points(self._parent(fold))
        names = self.outer if fold is None else fold.variables
        ranges = () if fold is None else fold.ranges
        for point in around:
            for place in itertools.product(*(self.values.candidates[name] for name in names)):
                inner = {**point, **dict(zip(names, place, strict=True))}
                inside = all(low <= inner[name] < high for name, low, high in ranges)
                if inside and self._holds(self._conditions(fold), inner) and self._fits(fold, inner, False):
                    yield inner

    def surely(self, fold: Fold | None, point: Point) -> bool:
        """Whether it is a point with the reads too that data may ask for, of all reductions around it."""
        return self._fits(fold, point, True) and (fold is None or self.surely(self._parent(fold), point))

    def _fits(self, fold: Fold | None, point: Point, chosen: bool) -> bool:
        own = (access for access in self.accesses if access.fold is fold)
        asked = (access for access in own if chosen or not any(has_data(guard) for guard, _ in access.guards))
        return all(in_range(access, point) or not evaluated(access, point) for access in asked)

    def _conditions(self, fold: Fold | None) -> Sequence[Node]:
        if fold is not None:
            return fold.conditions
        value = self.statement.value
        factors: tuple[Node, ...] = ()
        if self.statement.accumulate in ("+", "-") and isinstance(value, Operation) and value.name == "product":
            # In a sum a bracket equals a condition.
            factors = tuple(factor for factor in value.arguments if is_bool(self.values.kind(factor)))
        return (*self.statement.conditions, *factors)

    def _holds(self, conditions: Sequence[Node], point: Point) -> bool:
        plain = Values({}, {})
        told = (part for part in conjuncts(conditions) if not has_data(part))
        return all(plain.at(part, point) for part in told)

    def _parent(self, fold: Fold) -> Fold | None:
        around = [node for node in walk(self.statement.value) if isinstance(node, Fold) and node is not fold]
        inside = [node for node in around if any(part is fold for part in walk(node))]
        return min(inside, key=lambda node: len(list(walk(node))), default=None)
