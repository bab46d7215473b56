"""The accesses of a sketch, one entry per axis expression, by the level they belong to: the statement or a
reduction in it.

A level has the index variables that it binds, its ranges and conditions, and its accesses with their guards: the
conditions under which a lazily evaluated position (a branch of ``where``, the right side of ``and`` and ``or``) is
reached.

Ranges are explicit by generators, and by conditions between one index variable and sizes: ``i < m`` is the range
``0 <= i < m``, ``a <= i < b`` is what it says, ``i >= a`` and ``i > a`` bound one side, ``i == a`` both. Everything
else only filters: other variables or factors beside the variable, ``!=``, ``or``, ``not``, data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from tcdsl.ir.build import all_of, apply, conjuncts, in_range
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    ExplicitRange,
    Expr,
    Let,
    Local,
    Read,
    Reduction,
    children,
    locals_read,
    reads,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.text.domain_text import domain_name, is_domain_name
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import free_variables, renamed, variables_of
from tcdsl.span import Span

__all__ = ["AxisAccess", "Ends", "Level", "OwnRead", "explicit_ranges", "levels_of", "root_level"]

Guard = tuple[Expr, ...]


@dataclass(eq=False, slots=True)
class AxisAccess:
    """One axis expression of a read, or of the target (``written``).

    ``form`` is None if the index is data, ``extent`` is None on an axis of the target that is to be inferred.
    ``settled`` is set by rule 2 where the ranges alone keep the access in range. ``span`` is that of the index,
    ``whole`` that of the access.
    """

    tensor: str
    axis: int
    index: Expr
    form: Polynomial | None
    extent: Polynomial | None
    guard: Guard = ()
    written: bool = False
    span: Span | None = None
    settled: bool = False
    whole: Span | None = None

    @property
    def bounds(self) -> tuple[Polynomial, Polynomial]:
        """The form and the extent, of an access that has both."""
        if self.form is None or self.extent is None:
            raise ValueError("the access is data, or its extent is open")
        return self.form, self.extent

    def place(self, inference: Inference) -> str:
        """Where this is, in the user's words: `` `n + k` on axis 0 of I``."""
        return f"`{inference.text(self.index)}` on axis {self.axis} of {inference.label(self.tensor)}"


@dataclass(frozen=True, eq=False, slots=True)
class OwnRead:
    """A read of the cells that the target holds before the statement, made where ``guard`` holds."""

    indices: tuple[Expr, ...]
    boundaries: tuple[Boundary, ...]
    guard: Guard
    span: Span | None


@dataclass(eq=False, slots=True)
class Level:
    """The statement itself (``parent`` is None) or a reduction.

    ``variables`` are those it binds. ``conditions`` may be explicit ranges, ``filters`` never are. ``reductions``
    are the levels directly inside, by the node that stands in ``value``; ``guard`` says where this one is needed.
    """

    parent: Level | None
    variables: tuple[str, ...]
    ranges: tuple[ExplicitRange, ...]
    conditions: tuple[Expr, ...]
    filters: tuple[Expr, ...]
    value: Expr
    guard: Guard = ()
    reduction: Reduction | None = None
    accesses: list[AxisAccess] = field(default_factory=list)
    own_reads: list[OwnRead] = field(default_factory=list)
    reductions: dict[Reduction, Level] = field(default_factory=dict)

    @property
    def scope_variables(self) -> tuple[str, ...]:
        """The variables that a value at this level may use, outermost first."""
        return self.variables if self.parent is None else (*self.parent.scope_variables, *self.variables)

    @property
    def may_raise(self) -> bool:
        """Whether computing the value can fail for a point: it checks data indices."""
        return any(
            Boundary.CHECK in read.boundaries
            for expr in (*self.conditions, *self.filters, self.value)
            for read in reads(expr)
        )


def levels_of(root: Level) -> list[Level]:
    """A level and all levels inside it, outermost first."""
    return [root, *(level for inner in root.reductions.values() for level in levels_of(inner))]


def root_level(inference: Inference) -> Level:
    """The tree of levels of the sketch, with all accesses collected."""
    sketch = inference.sketch
    everything = (*sketch.target.indices, sketch.value, *sketch.conditions, *sketch.filters)
    free = list(dict.fromkeys(name for expr in everything for name in variables_of(expr)))
    free += [given.variable for given in sketch.ranges if given.variable not in free]
    variables = tuple(dict.fromkeys([*(name for name in sketch.variables if name in free), *free]))
    root = Level(None, variables, sketch.ranges, sketch.conditions, sketch.filters, sketch.value)
    collector = _Collector(inference, FreshNames(variables))
    for axis, (index, extent) in enumerate(zip(sketch.target.indices, sketch.extents, strict=True)):
        collector.target(root, axis, index, extent)
    collector.level(root)
    return root


class _Collector:
    def __init__(self, inference: Inference, names: FreshNames) -> None:
        self.inference = inference
        self.names = names  # of all variables so far: reductions side by side get different ones
        self.distinct: dict[Reduction, Reduction] = {}
        self.values: dict[str, tuple[Expr, frozenset[str]]] = {}  # of enclosing Lets, with the names that they read
        self.uses: dict[str, list[Guard]] = {}

    def form(self, index: Expr) -> Polynomial | None:
        try:
            return self.inference.algebra.form(index)
        except NotAffine:
            return None

    def target(self, level: Level, axis: int, index: Expr, extent: Expr | None) -> None:
        target = self.inference.sketch.target
        self.visit(index, level, ())
        form = self.form(index)
        algebra = self.inference.algebra
        known = self.inference.sketch.mode == "existing"
        size = None if extent is None else algebra.extent(extent) if known else algebra.form(extent)
        span = getattr(index, "span", None) or target.span
        access = AxisAccess(target.tensor, axis, index, form, size, written=True, span=span, whole=target.span)
        level.accesses.append(access)

    def level(self, level: Level) -> None:
        # A point where one condition fails is left out, so the parts of a conjunction need not guard each other.
        for expr in (*conjuncts(*level.conditions, *level.filters), level.value):
            self.visit(expr, level, ())

    def closed(self, expr: Expr) -> Expr:
        """``expr`` with the `Let`s around it that it needs."""
        needed = locals_read(expr)
        if not needed:
            return expr
        for name, (value, read) in reversed(self.values.items()):
            if name in needed:
                expr, needed = Let(name, value, expr), (needed - {name}) | read
        return expr

    def beyond(self, guard: Guard, condition: Expr) -> Guard:
        """``guard`` and a condition more, if it does not say so already: arms in arms often ask again."""
        closed = self.closed(condition)
        return guard if closed in guard else (*guard, closed)

    def visit(self, expr: Expr, level: Level, guard: Guard) -> None:
        """Collect the accesses of ``expr``, which is evaluated at ``level`` where ``guard`` holds."""
        match expr:
            case Reduction():
                self.reduction(expr, level, guard)
            case Local(name=name):
                self.uses.setdefault(name, []).append(guard)
            case Let(name=name, value=value, body=body):
                self.local(name, value, body, level, guard)
            case Apply(primitive="where", arguments=(chosen, left, right)):
                self.visit(chosen, level, guard)
                self.visit(left, level, self.beyond(guard, chosen))
                self.visit(right, level, self.beyond(guard, apply("not_", chosen)))
            case Apply(primitive="and_" | "or_" as primitive, arguments=(left, right)):
                self.visit(left, level, guard)
                reached = left if primitive == "and_" else apply("not_", left)
                self.visit(right, level, self.beyond(guard, reached))
            case Read():
                self.read(expr, level, guard)
            case _:
                for part in children(expr):
                    self.visit(part, level, guard)

    def local(self, name: str, value: Expr, body: Expr, level: Level, guard: Guard) -> None:
        # A reduction repeats the Lets around it, so the same name may be open already.
        outer_values, outer_uses = dict(self.values), self.uses.get(name, [])
        self.values[name] = value, locals_read(value)
        uses: list[Guard] = []
        self.uses[name] = uses
        self.visit(body, level, guard)
        self.values, self.uses[name] = outer_values, outer_uses
        if not uses:
            return
        # The value is computed where one of the places that use it is reached.
        reached = _alternatives([use[len(guard) :] for use in uses])
        if len(reached) == 1:
            guard = (*guard, *reached[0])
        else:
            either = reduce(partial(apply, "or_"), map(all_of, reached))
            guard = guard if either in guard else (*guard, either)
        self.visit(value, level, guard)

    def read(self, read: Read, level: Level, guard: Guard) -> None:
        extents = self.inference.scope.tensor(read.tensor).shape
        outside: Expr | None = None
        if read.tensor == self.inference.sketch.previous:
            indices = tuple(map(self.closed, read.indices))
            level.own_reads.append(OwnRead(indices, read.boundaries, guard, read.span or self.inference.sketch.span))
        for axis, (index, boundary) in enumerate(zip(read.indices, read.boundaries, strict=True)):
            self.visit(index, level, guard)
            extent = extents[axis]
            if boundary is Boundary.SKIP:
                size = self.inference.algebra.extent(extent)
                span = getattr(index, "span", None) or read.span
                closed = self.closed(index)
                form, whole = self.form(index), read.span
                level.accesses.append(AxisAccess(read.tensor, axis, closed, form, size, guard, span=span, whole=whole))
            elif boundary is Boundary.FILL:
                beyond = apply("not_", in_range(index, extent))
                outside = beyond if outside is None else apply("or_", outside, beyond)
        if read.fill is not None:
            self.visit(read.fill, level, guard if outside is None else self.beyond(guard, outside))

    def reduction(self, written: Reduction, level: Level, guard: Guard) -> None:
        reduction = self.distinct.get(written)
        if reduction is None:
            reduction = self.distinct[written] = renamed(written, self.other_names(written.variables))
        closed = reduction.with_parts(tuple(map(self.closed, children(reduction))))
        # What does not depend on the variables of the reduction around it is computed outside, once.
        while level.parent is not None and not free_variables(closed) & set(level.variables):
            # Not if that could fail: it might not be evaluated at all where it stands.
            if any(Boundary.CHECK in read.boundaries for read in reads(closed)):
                break
            level, guard = level.parent, level.guard
        known = level.reductions.get(written)
        if known is not None:
            if known.guard and guard and known.guard != guard:
                known.guard = (apply("or_", all_of(known.guard), all_of(guard)),)
            elif not guard:
                known.guard = ()
            return
        inner = Level(
            level,
            closed.variables,
            closed.ranges,
            closed.conditions,
            closed.filters,
            closed.value,
            guard,
            closed,
        )
        level.reductions[written] = inner
        self.level(inner)

    def other_names(self, variables: Sequence[str]) -> dict[str, str]:
        """What to call those of ``variables`` whose names are taken, or nothing that a domain can hold."""
        kept = {name for name in variables if name not in self.names and is_domain_name(name)}
        self.names.take(kept)
        found = {}
        for name in variables:
            if name not in kept:
                found[name] = self.names.fresh(domain_name(name))
        return found


def _alternatives(uses: Sequence[Guard]) -> list[Guard]:
    """Guards of which one holds where one of ``uses`` does: both arms of a choice are the place of the choice.

    So a value that both arms use has no condition of its own, and the guards in long chains of choices stay short.
    """
    found = dict.fromkeys(uses)
    for length in range(max(map(len, uses)), 0, -1):
        arms: dict[Guard, dict[Expr, Guard]] = {}
        for use in found:
            if len(use) == length:
                arms.setdefault(use[:-1], {})[use[-1]] = use
        for outer, conditions in arms.items():
            if outer in found or any(_denied(condition) in conditions for condition in conditions):
                for use in conditions.values():
                    del found[use]
                found[outer] = None
    return list(found)


def _denied(condition: Expr) -> Expr | None:
    # What `not` stands before, behind the `Let`s around a condition.
    if isinstance(condition, Let):
        body = _denied(condition.body)
        return None if body is None else replace(condition, body=body)
    return condition.arguments[0] if isinstance(condition, Apply) and condition.primitive == "not_" else None


@dataclass(slots=True)
class Ends:
    """The ends that are stated for a variable, both inclusive; each is the largest low and the smallest high of
    its list. ``skips`` says that the user has stated a high end, so that points out of range are skipped; ``condition``
    is where.
    """

    lows: list[Polynomial] = field(default_factory=list)
    highs: list[Polynomial] = field(default_factory=list)
    skips: bool = False
    condition: Span | None = None


def explicit_ranges(root: Level, algebra: SizeAlgebra) -> dict[str, Ends]:
    """The stated ends of every variable of ``root`` and the reductions in it that has some."""
    found: dict[str, Ends] = {}
    for level in levels_of(root):
        for given in level.ranges:
            ends = found.setdefault(given.variable, Ends())
            ends.lows.append(algebra.form(given.low))
            ends.highs.append(algebra.form(given.high) - 1)
            ends.skips |= given.stated
        for condition in level.conditions:
            _take(condition, level, algebra, found)
    return found


def _take(condition: Expr, level: Level, algebra: SizeAlgebra, found: dict[str, Ends]) -> None:
    # A condition is taken as a whole: a high end alone implies 0 <= i, but not in a <= i < b.
    stated: dict[str, Ends] = {}
    for part in conjuncts(condition):
        for name, low, high in _ends(part, level, algebra):
            ends = stated.setdefault(name, Ends())
            ends.lows.extend(low)
            ends.highs.extend(high)
    generated = {given.variable for given in level.ranges}
    for name, ends in stated.items():
        both = found.setdefault(name, Ends())
        # In `for k in range(-2, 3) if k < 1` the generator states the low end.
        both.lows.extend(ends.lows or ([] if name in generated else [Polynomial.number(0)]))
        both.highs.extend(ends.highs)
        if ends.highs:
            both.skips, both.condition = True, getattr(condition, "span", None)


def _ends(part: Expr, level: Level, algebra: SizeAlgebra) -> Iterator[tuple[str, list[Polynomial], list[Polynomial]]]:
    if not isinstance(part, Apply) or part.primitive not in ("lt", "le", "gt", "ge", "eq"):
        return
    if part.arguments[0].dtype != "int64":
        return
    try:
        left, right = (algebra.form(argument) for argument in part.arguments)
    except NotAffine:
        return
    if part.primitive in ("gt", "ge"):
        left, right = right, left
    # left <= right, left < right or left == right
    difference = right - left - (1 if part.primitive in ("lt", "gt") else 0)
    names = difference.variables
    if len(names) != 1:
        return
    (name,) = names
    factor = difference.coefficient(name).value
    if name not in level.variables or factor not in (1, -1) or not difference.linear_in(name):
        return
    rest = difference.without(name)
    if factor == 1:  # name + rest >= 0
        yield name, [-rest], [-rest] if part.primitive == "eq" else []
    else:
        yield name, [rest] if part.primitive == "eq" else [], [rest]
