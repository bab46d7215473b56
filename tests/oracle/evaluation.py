"""One statement applied to arrays, and a function of several statements, by the rules alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tests.oracle.accesses import AxisAccess, reading_accesses, surely_bounded
from tests.oracle.fixed_indices import check_fixed_indices
from tests.oracle.kinds import concrete, fresh_kind, is_bool
from tests.oracle.nodes import (
    BOUNDARIES,
    Axis,
    Cell,
    Fold,
    Node,
    Number,
    Operation,
    Variable,
    has_data,
    variables_of,
    walk,
)
from tests.oracle.outcome import DataIndexFaultError, DtypeFaultError, FaultError, ShapeFaultError, UnspecifiedError
from tests.oracle.ranges import Ends, candidates, check_bare_extents, explicit_ranges, in_range, solve
from tests.oracle.reader import Statement
from tests.oracle.recurrences import Traffic, reads_itself, restarted_cells, traffic
from tests.oracle.values import OutOfRangeError, Values, at_an_end, combine, neutral

__all__ = ["READINGS", "Result", "Target", "Written", "apply_statement"]

# Whether reads that may not be evaluated (behind a bracket, in a branch) take part in rules 1 and 2: ``all`` do, they
# do where nothing else bounds a variable (``needed``), or only where they are evaluated (``lazy``). The rules can be
# read in each of these ways; a program on which they differ is unspecified. Rule 3 asks for reads that are evaluated.
READINGS = ("all", "needed", "lazy")


# Which cells statements have written: asked for by few statements, so found out when it is.
Written = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Target:
    """What is known of a target before the statement.

    ``array`` if it exists; else ``shape`` if it was declared. ``declared`` stays true after the first write.
    ``written`` says which cells statements have written; ``None`` means that the target is an input.
    """

    array: np.ndarray | None = None
    shape: tuple[int, ...] | None = None
    declared: bool = False
    dtype: np.dtype | None = None
    written: Written | None = None


@dataclass
class Result:
    """The new target, and the largest number of values that met in one cell.

    ``doubtful`` says why tcdsl may also refuse the statement at staging: it would be wrong for other sizes.
    """

    array: np.ndarray
    terms: int = 1
    doubtful: str = ""
    written: Written | None = None
    counts: dict[tuple[int, ...], int] = field(default_factory=dict)


def _folds(statement: Statement) -> list[Fold]:
    parts = (statement.value, *statement.conditions)
    return [node for part in parts for node in walk(part) if isinstance(node, Fold)]


def _variables(statement: Statement) -> list[str]:
    inner = {name for fold in _folds(statement) for name in fold.variables}
    found: set[str] = {name for name, _, _ in statement.ranges}
    for part in (*statement.indices, statement.value, *statement.conditions):
        found |= variables_of(part)
    return sorted(found - inner)


def _target_accesses(statement: Statement, shape: tuple[int, ...]) -> list[AxisAccess]:
    if len(shape) != len(statement.indices):
        raise ShapeFaultError("the target's rank")
    pairs = zip(statement.indices, shape, strict=True)
    return [AxisAccess(index, extent, (), None, statement.target) for index, extent in pairs if not has_data(index)]


def _inferred_shape(statement: Statement, ranges: Mapping[str, Any]) -> tuple[int, ...]:
    extents = []
    plain = Values({}, {})
    for index in statement.indices:
        if has_data(index):
            raise FaultError("the extent along an axis with a data index cannot be inferred")
        names = sorted(variables_of(index))
        boxes = [range(*ranges[name]) for name in names]
        if len(names) > 1 and any(len(box) == 0 for box in boxes):
            raise UnspecifiedError("the extent of an axis whose variables have no values")
        places = [plain.at(index, dict(zip(names, place, strict=True))) for place in itertools.product(*boxes)]
        if places and min(places) < 0:
            raise ShapeFaultError("a negative index on a fresh target")
        extents.append(1 + max(places) if places else 0)
    return tuple(extents)


def _points(names: list[str], box: Mapping[str, range], required: list[AxisAccess]) -> Iterator[dict[str, int]]:
    """All points of ``box`` where ``required`` accesses are in range, in row-major order."""
    for place in itertools.product(*(box[name] for name in names)):
        point = dict(zip(names, place, strict=True))
        if all(in_range(access, point) for access in required):
            yield point


def apply_statement(statement: Statement, target: Target, arrays: Mapping[str, np.ndarray], reading: str) -> Result:
    """The target after ``statement``, under one of the `READINGS` of conditional reads."""
    arrays = dict(arrays)
    _check_types(statement, target, arrays)
    accesses = reading_accesses(statement, arrays)
    explicit = explicit_ranges(statement)
    stated = {name for name, ends in explicit.items() if None not in ends}
    sure = {name for access in accesses if not access.conditional for name in access.variables} | stated
    fresh = target.array is None and target.shape is None
    if fresh and any(access.conditional and any(map(_symbolic_stride, walk(access.index))) for access in accesses):
        raise UnspecifiedError("a stride that is a size, where a branch decides whether it is read")
    outer = _variables(statement)
    if statement.accumulate == "=" and not set(outer) <= set().union(*map(variables_of, statement.indices)):
        raise FaultError("a plain store needs every index variable on its target")
    inner = [name for fold in _folds(statement) for name in fold.variables]
    if target.array is not None and not target.declared:
        bare_target = _target_accesses(statement, target.array.shape)
    else:
        bare_target = []
    counted = [access for access in accesses if reading == "all" or not access.conditional]
    check_bare_extents(counted, bare_target, explicit)
    if fresh:
        bounding = [a for a in accesses if reading != "needed" or not a.conditional or not a.variables <= sure]
        ranges: Mapping[str, Ends] = solve([*outer, *inner], explicit, bounding, guarded=reading == "lazy")
        shape = _inferred_shape(statement, ranges)
    else:
        ranges = explicit = {**explicit, **_bounded_inside(statement, accesses, target, explicit, [*outer, *inner])}
        shape = target.array.shape if target.array is not None else target.shape
        assert shape is not None
    writing = _target_accesses(statement, shape)
    lazy = reading == "lazy" or not fresh
    bounding = [a for a in accesses if not a.conditional or not (lazy or a.variables <= sure)] + writing
    required = [a for a in bounding if a.fold is None]
    if not fresh:
        sure |= {*surely_bounded(accesses)} | {name for access in writing for name in access.variables}
    told = [*accesses, *writing] if lazy else bounding
    box = candidates(outer, ranges, [a for a in told if a.fold is None])
    for fold in _folds(statement):
        # A point out of range in a reduction within this one drops out of that one only.
        box |= candidates(fold.variables, ranges, [a for a in told if a.fold is fold])
    bare = {access.bare for access in (accesses if fresh else bounding)}
    doubt = _doubtful_ranges(ranges, fresh, (outer, inner), bare, arrays) or _doubt(statement, fresh, outer, box)
    if not sure >= {*outer, *inner}:
        doubt = "only reads that may not be evaluated bound a variable"
    if target.written is not None and not target.declared and _too_small(statement, accesses, writing, explicit, outer):
        raise ShapeFaultError("the target is too small for the statement")
    sure_inside = [a for a in accesses if a.fold is not None and not a.conditional]
    values = Values(arrays, box, lambda fold, point: all(in_range(a, point) for a in sure_inside if a.fold is fold))
    doubt = check_fixed_indices(statement, [*accesses, *writing], values, outer) or doubt
    try:
        written, recurrence = _written(statement, target, values, shape, (outer, box, required))
        result = _accumulated(statement, target, values, shape, (outer, box, required))
    except FaultError as error:
        error.doubtful = doubt
        raise
    result.doubtful = doubt or recurrence
    result.written = written
    if target.written is not None and not target.declared and not result.counts:
        result.doubtful = "the target may be too small for any sizes"
    return result


def _doubtful_ranges(
    ranges: Mapping[str, Ends],
    fresh: bool,
    names: tuple[Sequence[str], Sequence[str]],
    bare: set[str | None],
    arrays: Mapping[str, np.ndarray],
) -> str:
    outer, inner = names
    empty = any(0 in array.shape for array in arrays.values())
    if empty and not {name for name in (*outer, *inner) if None in ranges.get(name, (None,))} <= bare:
        return "a variable may be unbounded where extents are not 0"
    if fresh and any(ranges[name][0] == ranges[name][1] and name not in bare for name in outer):
        return "a target index may be negative where a range is not empty"
    return ""


def _bounded_inside(
    statement: Statement, accesses: list[AxisAccess], target: Target, explicit: Mapping[str, Ends], names: list[str]
) -> Mapping[str, Ends]:
    """What only reads inside of reductions mention has the range that these give it by rule 2."""
    shape = target.array.shape if target.array is not None else target.shape
    assert shape is not None
    writing = _target_accesses(statement, shape)
    own = [access for access in (*accesses, *writing) if access.fold is None]
    mentioned = {name for access in own for name in access.variables}
    inside = {name for fold in _folds(statement) for name in fold.variables}
    left = {name for name in names if name not in inside | mentioned and explicit.get(name, (None, None))[1] is None}
    if not left:
        return {}
    try:
        solved = solve(names, explicit, [*accesses, *writing], guarded=True)
    except FaultError:
        return {}
    return {name: ends for name, ends in solved.items() if name in left}


def _too_small(
    statement: Statement,
    accesses: list[AxisAccess],
    writing: list[AxisAccess],
    explicit: Mapping[str, Ends],
    names: list[str],
) -> bool:
    """Whether points are lost because the extents that an earlier statement has inferred do not suffice.

    An index that stands alone narrows, a stated end skips, and what the target holds is no reason to want more of it.
    """
    ended = {name for name, (_, high) in explicit.items() if high is not None}
    loose = [a for a in writing if a.bare is None and not a.variables & ended]
    others = [a for a in accesses if a.fold is None and not a.conditional and a.tensor != statement.target]
    others += [a for a in writing if a not in loose]
    box = candidates(names, explicit, others)
    if not loose or any(values and (at_an_end(values[0]) or at_an_end(values[-1])) for values in box.values()):
        return False
    plain = Values({}, {})
    for point in _points(names, box, others):
        told = (each for each in statement.conditions if not has_data(each))
        if not all(plain.at(condition, point) for condition in told):
            continue
        places = [(plain.at(access.index, point), access) for access in loose]
        fits = all(place >= 0 or isinstance(access.index, Number) for place, access in places)
        if fits and any(place >= access.extent for place, access in places):
            return True
    return False


Space = tuple[list[str], dict[str, range], list[AxisAccess]]


def _written(
    statement: Statement, target: Target, values: Values, shape: tuple[int, ...], space: Space
) -> tuple[Written | None, str]:
    """The cells that are written after the statement, and why it may recur; a fault if it does."""
    if target.array is not None and target.written is None:
        return None, ""
    points = list(_points(*space))

    @cache
    def before() -> np.ndarray:
        return np.zeros(shape, bool) if target.written is None else target.written()

    @cache
    def found() -> Traffic:
        return traffic(statement, values, shape, points, Values({}, {}))

    @cache
    def after() -> np.ndarray:
        if statement.reset and target.array is None:
            return np.ones(shape, bool)
        cells = found().after(before())
        if statement.reset and found().certain:
            cells |= _restarted(statement, values, shape)
        return cells

    if target.array is None or not reads_itself(statement):
        return after, ""
    if found().recurs(before()):
        raise ShapeFaultError("the statement reads what other points of it write")
    doubtful = not before().all() or min(shape, default=3) <= 2
    return after, "a recurrence for other sizes" if doubtful else ""


def _restarted(statement: Statement, values: Values, shape: tuple[int, ...]) -> np.ndarray:
    accesses = reading_accesses(statement, values.arrays)
    return restarted_cells(statement, values, accesses, _target_accesses(statement, shape), shape)


def _new_cells(
    statement: Statement, target: Target, values: Values, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    wide = np.dtype("float64") if dtype.kind == "f" else dtype
    anew = np.full(shape, neutral(statement.accumulate, dtype), wide)
    if target.array is None:
        return anew
    if not statement.reset:
        return target.array.astype(wide)
    return np.where(_restarted(statement, values, shape), anew, target.array.astype(wide))


def _accumulated(
    statement: Statement,
    target: Target,
    values: Values,
    shape: tuple[int, ...],
    space: Space,
) -> Result:
    names, box, required = space
    kind = values.kind(statement.value)
    chosen = target.dtype if target.array is None else target.array.dtype
    dtype = chosen or fresh_kind(statement.accumulate, kind)
    result = Result(_new_cells(statement, target, values, shape, dtype))
    fault: DataIndexFaultError | None = None
    # What index variables and sizes decide bounds the loops.
    conditions = sorted(statement.conditions, key=has_data)
    for point in _points(names, box, required):
        try:
            if not all(values.at(condition, point) for condition in conditions):
                continue
            place = _place(statement, shape, values, point)
            value = values.at(statement.value, point)
        except OutOfRangeError:
            continue
        except DataIndexFaultError as error:
            fault = fault or error
            continue
        if statement.accumulate in ("+", "-") and values.vanishes(statement.value, point):
            continue
        if any(at_an_end(point[name]) for name in names):
            raise FaultError("nothing bounds an index variable: write a range")
        _store(statement, result, place, values.cast(value, dtype), dtype)
    if fault is not None:
        raise fault
    result.array = result.array.astype(dtype)
    result.terms = max(result.counts.values(), default=1)
    return result


def _check_types(statement: Statement, target: Target, arrays: Mapping[str, np.ndarray]) -> None:
    if target.array is None:
        return
    kind, dtype = Values(arrays, {}).kind(statement.value), target.array.dtype
    if is_bool(dtype) and statement.accumulate not in ("=", "|", "&"):
        raise UnspecifiedError("arithmetic on cells of type bool")
    if not is_bool(dtype) and statement.accumulate in ("|", "&"):
        raise UnspecifiedError("truth values in cells of another type")
    if kind is float and dtype.kind != "f":
        raise DtypeFaultError("a weak float into integers")
    if isinstance(kind, np.dtype) and not np.can_cast(concrete(kind), dtype, "same_kind"):
        raise DtypeFaultError(f"{kind} into {dtype}")


def _store(statement: Statement, result: Result, place: tuple[int, ...], value: object, dtype: np.dtype) -> None:
    met = result.counts[place] = result.counts.get(place, 0) + 1
    if statement.accumulate == "=" and met > 1:
        raise FaultError("a plain store writes a cell twice")
    result.array[place] = combine(statement.accumulate, dtype, result.array[place], value)


def _place(statement: Statement, shape: tuple[int, ...], values: Values, point: Mapping[str, int]) -> tuple[int, ...]:
    place = []
    for index, extent in zip(statement.indices, shape, strict=True):
        found = values.place(index, extent, point)
        if not 0 <= found < extent:
            raise DataIndexFaultError(f"the target has no index {found}")
        place.append(found)
    return tuple(place)


def _axes(statement: Statement) -> Iterator[Axis]:
    for part in (statement.value, *statement.conditions):
        for node in walk(part):
            if isinstance(node, Cell):
                yield from node.axes


def _symbolic_stride(node: Node) -> bool:
    factors = node.arguments if isinstance(node, Operation) and node.name == "product" else ()
    return any(isinstance(factor, Number) and factor.symbolic for factor in factors)


def _doubt(statement: Statement, fresh: bool, names: list[str], box: Mapping[str, range]) -> str:
    """Why the statement may be refused whatever the sizes are."""
    bare = [index.name for index in statement.indices if isinstance(index, Variable)]
    if statement.accumulate == "=":
        if any(isinstance(index, Operation) and index.name in BOUNDARIES for index in statement.indices):
            raise FaultError("a boundary on the target of a plain store moves points to one cell")
        if not set(names) <= set(bare):
            return "the target's map may not be one-to-one"
    if fresh and len(bare) < len(statement.indices):
        return "a target index may be negative"
    if any(values and (at_an_end(values[0]) or at_an_end(values[-1])) for values in box.values()):
        return "a variable may be unbounded"
    indices = (*statement.indices, *(axis.index for axis in _axes(statement)))
    if any(_symbolic_stride(node) for index in indices for node in walk(index)):
        return "a stride that is a size may be 0"
    return ""
