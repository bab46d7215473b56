"""Rules 1 to 3 for concrete extents: explicit ranges, the rounds that solve a fresh target, and a box of candidates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from tests.oracle.accesses import AxisAccess
from tests.oracle.nodes import Cell, Fold, Node, Number, Operation, Variable, variables_of, walk
from tests.oracle.outcome import FaultError, ShapeFaultError, UnspecifiedError
from tests.oracle.reader import Statement
from tests.oracle.values import INTEGERS, Values, at_an_end

__all__ = ["Ends", "candidates", "check_bare_extents", "evaluated", "explicit_ranges", "in_range", "solve"]

_PLAIN = Values({}, {})


Ends = tuple[int | None, int | None]  # half open; None where nothing is stated

_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def _comparison(part: Node) -> tuple[str, Ends] | None:
    # What ``i < 3`` or ``3 > i`` states of i; None for anything but one index variable against a size.
    if not isinstance(part, Operation) or part.name not in _SWAPPED:
        return None
    first, second = part.arguments
    name = part.name
    if isinstance(first, Number) and isinstance(second, Variable):
        first, second, name = second, first, _SWAPPED[part.name]
    if not isinstance(first, Variable) or not isinstance(second, Number):
        return None
    limit = int(second.value)
    ends: dict[str, Ends] = {
        "<": (None, limit),
        "<=": (None, limit + 1),
        ">": (limit + 1, None),
        ">=": (limit, None),
        "==": (limit, limit + 1),
    }
    return first.name, ends[name]


def _stated(condition: Node) -> list[tuple[str, Ends]]:
    # A high end alone implies 0 <= i; in ``a <= i < b`` it is not alone.
    parts = condition.arguments if isinstance(condition, Operation) and condition.name == "and" else (condition,)
    found: dict[str, Ends] = {}
    for name, ends in filter(None, map(_comparison, parts)):
        found[name] = _met(found.get(name, (None, None)), ends)
    return [(name, (0 if low is None else low, high)) for name, (low, high) in found.items()]


def _met(one: Ends, other: Ends) -> Ends:
    lows = [low for low in (one[0], other[0]) if low is not None]
    highs = [high for high in (one[1], other[1]) if high is not None]
    return max(lows, default=None), min(highs, default=None)


def explicit_ranges(statement: Statement) -> dict[str, Ends]:
    """Ranges that generators and conditions state; several on one variable mean their intersection.

    A reduction's conditions state ranges of its own variables only: for others they filter.
    """
    stated: list[tuple[str, Ends]] = [(name, (low, high)) for name, low, high in statement.ranges]
    for condition in statement.conditions:
        stated += _stated(condition)
    for node in (node for part in (statement.value, *statement.conditions) for node in walk(part)):
        if isinstance(node, Fold):
            stated += [(name, (low, high)) for name, low, high in node.ranges]
            for condition in node.conditions:
                stated += [(name, ends) for name, ends in _stated(condition) if name in node.variables]
    found: dict[str, Ends] = {}
    for name, ends in stated:
        found[name] = _met(found.get(name, (None, None)), ends)
    return found


def _coefficient(node: Node, name: str) -> int | None:
    # The factor of a variable in an index; None if it is a size, or if the index is not linear in the variable.
    if name not in variables_of(node):
        return 0
    if isinstance(node, Variable):
        return 1
    if not isinstance(node, Operation):
        return None
    factors = [_coefficient(part, name) for part in node.arguments]
    if None in factors:
        return None
    known = [factor for factor in factors if factor is not None]
    match node.name:
        case "+":
            return sum(known)
        case "-":
            return known[0] - known[1]
        case "neg":
            return -known[0]
        case "product":
            others = [part for part in node.arguments if name not in variables_of(part)]
            if all(isinstance(part, Number) and not part.symbolic for part in others) and len(others) + 1 == len(known):
                return sum(known) * int(np.prod([part.value for part in others if isinstance(part, Number)]))
    return None


def check_bare_extents(
    accesses: Sequence[AxisAccess], target: Sequence[AxisAccess], explicit: Mapping[str, Ends]
) -> None:
    """Rule 1: an index used bare on several axes must find equal extents.

    Explicit ranges skip instead, and an existing target does where its index is shifted elsewhere.
    """
    extents: dict[str, set[int]] = {}
    for access in (*accesses, *target):
        name = access.bare
        if name is None or explicit.get(name, (None, None))[1] is not None:
            continue
        others = [other for other in (*accesses, *target) if other.bare is None]
        if access not in target or all(_coefficient(other.index, name) != 1 for other in others):
            extents.setdefault(name, set()).add(access.extent)
    for name, found in extents.items():
        if len(found) > 1:
            raise ShapeFaultError(f"{name} meets the extents {sorted(found)}")


def in_range(access: AxisAccess, point: Mapping[str, int]) -> bool:
    """Whether an access has a cell where the index variables have the values of ``point``."""
    index = _PLAIN.at(access.index, point)
    if isinstance(access.index, Number) and index < 0:
        index += access.extent
    return 0 <= index < access.extent


def evaluated(access: AxisAccess, point: Mapping[str, int]) -> bool:
    """Whether a read is evaluated at a point, as far as its guards can be told from the variables of point alone."""
    for guard, wanted in access.guards:
        told = variables_of(guard) <= point.keys() and not any(isinstance(part, Cell) for part in walk(guard))
        if told and bool(_PLAIN.at(guard, point)) != wanted:
            return False
    return True


def _interval(
    name: str, accesses: Sequence[AxisAccess], solved: Mapping[str, tuple[int, int]], guarded: bool
) -> tuple[int, int] | None:
    # The half-open interval of name that keeps accesses in range for all solved values; None where unbounded.
    allowed = set(INTEGERS)
    shared = False
    for access in accesses:
        used = access.variables
        if guarded:
            used |= {other for guard, _ in access.guards for other in variables_of(guard)} & solved.keys()
        others = sorted(used - {name})
        shared |= bool(others)
        boxes = [range(*solved[other]) for other in others]
        if any(len(box) == 0 for box in boxes):
            raise UnspecifiedError("a for-all over an empty range")
        for place in itertools.product(*boxes):
            point = dict(zip(others, place, strict=True))
            points = [{**point, name: value} for value in allowed]
            allowed = {p[name] for p in points if in_range(access, p) or (guarded and not evaluated(access, p))}
    if not allowed:
        if shared:
            raise UnspecifiedError("no value keeps the accesses in range")
        return 0, 0
    low, high = min(allowed), max(allowed)
    if at_an_end(low) or at_an_end(high):
        return None
    if len(allowed) != high - low + 1:
        raise UnspecifiedError("the values that keep the accesses in range are no interval")
    return low, high + 1


def solve(
    variables: Sequence[str], explicit: Mapping[str, Ends], accesses: Sequence[AxisAccess], *, guarded: bool
) -> dict[str, tuple[int, int]]:
    """Rule 2: the range of every variable, in rounds; ``guarded`` asks for accesses only where they are evaluated."""
    solved = {name: (low, high) for name, (low, high) in explicit.items() if low is not None and high is not None}
    while not solved.keys() >= set(variables):
        found = {}
        for name in variables:
            fit = [access for access in accesses if access.variables - solved.keys() == {name}]
            if name not in solved and fit:
                ends = _interval(name, fit, solved, guarded)
                if ends is not None:
                    found[name] = _overridden(ends, explicit.get(name, (None, None)))
        if not found:
            missing = sorted(set(variables) - solved.keys())
            raise FaultError(f"nothing bounds {', '.join(missing)}: write a range")
        solved.update(found)
    return solved


def _overridden(ends: tuple[int, int], stated: Ends) -> tuple[int, int]:
    # Accesses give the end that is not stated; they never narrow the other.
    low, high = (found if given is None else given for found, given in zip(ends, stated, strict=True))
    if low >= high and stated != (None, None):
        raise UnspecifiedError("the extent that follows from an empty range with a stated end")
    return low, high


def candidates(
    variables: Sequence[str], ranges: Mapping[str, Ends], accesses: Sequence[AxisAccess]
) -> dict[str, range]:
    """For each variable the integers worth trying: its range, and what accesses by it alone allow, whatever branches
    are taken.
    """
    found = {}
    for name in variables:
        low, high = ranges.get(name, (None, None))
        box = range(INTEGERS.start if low is None else low, INTEGERS.stop if high is None else high)
        fits = _Choices([access for access in accesses if access.variables == {name}])
        fit = [value for value in box if fits.some(name, value)]
        found[name] = range(fit[0], fit[-1] + 1) if fit else range(0)
    return found


class _Choices:
    """Of all the ways to take branches, whether accesses by one variable are in range in some of them."""

    def __init__(self, accesses: Sequence[AxisAccess]) -> None:
        self.accesses = accesses
        tests = list(dict.fromkeys(id(test) for access in accesses for test, _ in access.guards))
        # The accesses that each way makes, by number; many ways make the same ones.
        self.made: set[frozenset[int]] = set()
        for values in itertools.product((True, False), repeat=len(tests)):
            chosen = dict(zip(tests, values, strict=True))
            numbers = [k for k, a in enumerate(accesses) if all(chosen[id(test)] == side for test, side in a.guards)]
            self.made.add(frozenset(numbers))

    def some(self, name: str, value: int) -> bool:
        """Whether some way makes only accesses that are in range where ``name`` is ``value``."""
        inside = {k for k, access in enumerate(self.accesses) if in_range(access, {name: value})}
        return any(numbers <= inside for numbers in self.made)
