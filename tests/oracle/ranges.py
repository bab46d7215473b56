"""Rules 1 to 3 for concrete extents: explicit ranges, the rounds that solve a fresh target, and a box of candidates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from tests.oracle.accesses import AxisAccess
from tests.oracle.kinds import COMPARISONS
from tests.oracle.nodes import Fold, Node, Number, Operation, Variable, variables_of, walk
from tests.oracle.outcome import FaultError, ShapeFaultError, UnspecifiedError
from tests.oracle.reader import Statement
from tests.oracle.values import INTEGERS, Values

__all__ = ["candidates", "check_bare_extents", "explicit_ranges", "half_bounded", "solve"]

_PLAIN = Values({}, {})


def _ends(condition: Node) -> tuple[str, int, int] | None:
    # An explicit range: a condition between one index variable and sizes.
    if isinstance(condition, Operation) and condition.name == "and":
        pair = [part for part in condition.arguments if isinstance(part, Operation)]
        if len(pair) == 2 and all(part.name in ("<", "<=") for part in pair):
            (low, first), (second, high) = (part.arguments for part in pair)
            same = isinstance(first, Variable) and isinstance(second, Variable) and first.name == second.name
            if same and isinstance(low, Number) and isinstance(high, Number):
                return first.name, int(low.value) + (pair[0].name == "<"), int(high.value) + (pair[1].name == "<=")
    if isinstance(condition, Operation) and condition.name in ("<", "<="):
        first, second = condition.arguments
        if isinstance(first, Variable) and isinstance(second, Number):
            return first.name, 0, int(second.value) + (condition.name == "<=")
    if isinstance(condition, Operation) and condition.name in (">", ">="):
        first, second = condition.arguments
        if isinstance(first, Number) and isinstance(second, Variable):
            return second.name, 0, int(first.value) + (condition.name == ">=")
    return None


def _conditions(statement: Statement) -> list[Node]:
    folds = [node for node in walk(statement.value) if isinstance(node, Fold)]
    return [*statement.conditions, *(condition for fold in folds for condition in fold.conditions)]


def half_bounded(statement: Statement, explicit: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a condition bounds a variable on one side or to one value, so that it may or may not be a range."""
    for condition in _conditions(statement):
        if isinstance(condition, Operation) and condition.name in COMPARISONS - {"!="} and _ends(condition) is None:
            first, second = condition.arguments
            if {type(first), type(second)} == {Number, Variable} and not variables_of(condition) <= explicit.keys():
                return True
    return False


def explicit_ranges(statement: Statement) -> dict[str, tuple[int, int]]:
    """Half-open ranges that generators and conditions state; several on one variable mean their intersection."""
    stated = list(statement.ranges)
    for node in walk(statement.value):
        if isinstance(node, Fold):
            stated += node.ranges
    stated += [ends for ends in map(_ends, _conditions(statement)) if ends is not None]
    found: dict[str, tuple[int, int]] = {}
    for name, low, high in stated:
        before = found.get(name, (low, high))
        found[name] = (max(low, before[0]), min(high, before[1]))
    return found


def check_bare_extents(accesses: Sequence[AxisAccess], target: Sequence[AxisAccess]) -> None:
    """Rule 1: an index used bare on several axes must find equal extents."""
    extents: dict[str, set[int]] = {}
    for access in (*accesses, *target):
        if access.bare is not None:
            extents.setdefault(access.bare, set()).add(access.extent)
    for name, found in extents.items():
        if len(found) > 1:
            raise ShapeFaultError(f"{name} meets the extents {sorted(found)}")


def _in_range(access: AxisAccess, point: Mapping[str, int]) -> bool:
    index = _PLAIN.at(access.index, point)
    if isinstance(access.index, Number) and index < 0:
        index += access.extent
    return 0 <= index < access.extent


def _interval(
    name: str, accesses: Sequence[AxisAccess], solved: Mapping[str, tuple[int, int]]
) -> tuple[int, int] | None:
    # The half-open interval of name that keeps accesses in range for all solved values; None where unbounded.
    allowed = set(INTEGERS)
    shared = False
    for access in accesses:
        others = sorted(access.variables - {name})
        shared |= bool(others)
        boxes = [range(*solved[other]) for other in others]
        if any(len(box) == 0 for box in boxes):
            raise UnspecifiedError("a for-all over an empty range")
        for place in itertools.product(*boxes):
            point = dict(zip(others, place, strict=True))
            allowed = {value for value in allowed if _in_range(access, {**point, name: value})}
    if not allowed:
        if shared:
            raise UnspecifiedError("no value keeps the accesses in range")
        return 0, 0
    low, high = min(allowed), max(allowed)
    if low == INTEGERS[0] or high == INTEGERS[-1]:
        return None
    if len(allowed) != high - low + 1:
        raise UnspecifiedError("the values that keep the accesses in range are no interval")
    return low, high + 1


def solve(
    variables: Sequence[str], explicit: Mapping[str, tuple[int, int]], accesses: Sequence[AxisAccess]
) -> dict[str, tuple[int, int]]:
    """Rule 2: the range of every variable, in rounds."""
    solved = dict(explicit)
    while not solved.keys() >= set(variables):
        found = {}
        for name in variables:
            fit = [access for access in accesses if access.variables - solved.keys() == {name}]
            if name not in solved and fit:
                ends = _interval(name, fit, solved)
                if ends is not None:
                    found[name] = ends
        if not found:
            missing = sorted(set(variables) - solved.keys())
            raise FaultError(f"nothing bounds {', '.join(missing)}: write a range")
        solved.update(found)
    return solved


def candidates(
    variables: Sequence[str], ranges: Mapping[str, tuple[int, int]], accesses: Sequence[AxisAccess]
) -> dict[str, range]:
    """For each variable the integers worth trying: its range, and what accesses by it alone allow."""
    found = {}
    for name in variables:
        box = range(*ranges[name]) if name in ranges else INTEGERS
        alone = [access for access in accesses if access.variables == {name}]
        fit = [value for value in box if all(_in_range(access, {name: value}) for access in alone)]
        found[name] = range(fit[0], fit[-1] + 1) if fit else range(0)
    return found
