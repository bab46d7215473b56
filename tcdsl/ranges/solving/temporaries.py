"""Nested reductions become statements of their own, which fill temporary tensors over the outer variables they use.

``Y[i, j] = E[i, j] / sum(E[i, l])`` is ``t[i] += E[i, l]`` and ``Y[i, j] = E[i, j] / t[i]``. A mean is a sum over a
number of points, which is a size if it is the same for every cell, else counted; ``argmax`` is a maximum, then the
smallest position that attains it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import islpy as isl

from tcdsl.ir.build import apply, cast, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import INTEGER, compute_dtype, is_boolean, is_floating
from tcdsl.ir.expressions import Boundary, Expr, Read, Reduction, map_children, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Neutral, Statement, Tensor
from tcdsl.ir.text.expression_printer import REDUCTION_NAMES
from tcdsl.polyhedra.affine import expression_of_condition
from tcdsl.polyhedra.size_algebra import SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.polyhedra.spaces import arranged
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import free_variables
from tcdsl.ranges.sketches.sketch_accesses import Level
from tcdsl.ranges.solving.for_all import interval_box
from tcdsl.ranges.solving.regions import Ranges, Region, affine_guard, conjunction, ends_of, region_of

__all__ = ["NestedReductions"]


class NestedReductions:
    """The statements of nested reductions, made when a value that contains them is lowered."""

    def __init__(self, inference: Inference, ranges: Ranges) -> None:
        self.inference = inference
        self.ranges = ranges
        self.statements: list[Statement] = []
        self.tensors: list[Tensor] = []
        self.regions: dict[int, Region] = {}
        self._results: dict[int, Expr] = {}
        scope = inference.scope
        self.names = FreshNames([inference.sketch.target.tensor], elsewhere=lambda name: scope.fresh_name(name) != name)

    def lowered(self, expr: Expr, level: Level) -> Expr:
        """``expr``, which stands at ``level``, with reads of temporaries in the place of its reductions."""
        if isinstance(expr, Reduction):
            return self._result(expr, level)
        return map_children(expr, lambda part: self.lowered(part, level))

    def _result(self, reduction: Reduction, level: Level) -> Expr:
        # A reduction that uses nothing of the level around it belongs to one further out.
        around: Level | None = level
        while around is not None and reduction not in around.reductions:
            around = around.parent
        assert around is not None
        inner = around.reductions[reduction]
        if id(inner) not in self._results:
            self._results[id(inner)] = _Temporary(self, inner).result()
        return self._results[id(inner)]


class _Temporary:
    """The statements of one reduction."""

    def __init__(self, family: NestedReductions, level: Level) -> None:
        assert level.parent is not None
        assert level.reduction is not None
        self.family = family
        self.inference = family.inference
        self.level = level
        self.reduction: Reduction = level.reduction
        around = family.regions[id(level.parent)]
        used = free_variables(self.reduction)
        guard = [*_tests_before(around.tests, level), *level.guard]
        if level.may_raise:
            # Computing it where it is not needed could fail, so what guards it decides here too.
            used |= frozenset().union(*map(free_variables, guard))
        self.outer = tuple(name for name in around.variables if name in used)
        needed, unsaid = affine_guard(guard, around.points)
        self.wanted = arranged(needed, self.outer)
        self.wanted_surely = not unsaid
        self.places = arranged(around.points, self.outer)
        self.needed = arranged(needed, self.outer)
        if not level.may_raise:
            # Conditions on sizes alone would only say when the temporary is needed at all. Where one value of a
            # variable is needed, they are its range too, which stays.
            self.needed = _without_preconditions(self.needed).intersect(self._cells())
        variables = (*self.outer, *level.variables)
        base = arranged(self.needed, variables)
        self.region = region_of(self.inference, level, variables, base, family.ranges)
        if level.may_raise:
            self.region.tests = [*unsaid, *self.region.tests]
        family.regions[id(level)] = self.region
        self.conditions = [family.lowered(test, level) for test in self.region.tests]
        self.value = family.lowered(level.value, level)
        self.origins, self.shape = self._shape()

    def _cells(self) -> isl.Set:
        # The values that the outer variables have anywhere.
        solved = self.family.ranges.solved
        if any(name not in solved for name in self.outer):
            return self.places
        return interval_box(self.inference.algebra, solved, self.outer)

    def _shape(self) -> tuple[list[Polynomial], list[Polynomial]]:
        # Outer variables run from their own smallest value, so cells count from there.
        algebra = self.inference.algebra
        origins, extents = [], []
        for k, name in enumerate(self.outer):
            interval = self.family.ranges.solved.get(name)
            ends = None
            if interval is not None:
                low, high = (
                    algebra.bound(end, self.family.ranges.solved, side)
                    for end, side in zip(interval, (False, True), strict=True)
                )
                ends = None if low is None or high is None else SizeInterval(low, high)
            ends = ends or ends_of(self.inference, self.places, k)
            ends = ends or SizeInterval(Polynomial.number(0), Polynomial.number(-1))
            origins.append(ends.low)
            extents.append(algebra.at_least_zero(ends.length))
        return origins, extents

    def result(self) -> Expr:
        """The value of the reduction in terms of the outer variables."""
        match self.reduction.accumulate:
            case "mean":
                return self._mean()
            case "argmax" | "argmin" as name:
                return self._position(name[3:])
            case accumulate:
                return self._accumulated(accumulate, self.reduction.dtype, self.value, self.conditions)

    def _accumulated(
        self, accumulate: str, dtype: str, value: Expr, conditions: Sequence[Expr], hint: str = ""
    ) -> Expr:
        """A statement that fills a temporary, and the read of it."""
        dtype = compute_dtype(dtype)
        hint = hint or REDUCTION_NAMES.get(accumulate, accumulate)
        name = self.family.names.fresh(f"{self.inference.sketch.target.tensor}_{hint}")
        algebra = self.inference.algebra
        indices = tuple(
            algebra.expr(Polynomial.of(index(variable)) - origin)
            for variable, origin in zip(self.outer, self.origins, strict=True)
        )
        shape = tuple(map(algebra.expr, self.shape))
        span = self.reduction.span
        self.family.tensors.append(Tensor(name, dtype, shape, span=span))
        self.family.statements.append(
            Statement(
                Access(name, indices, span),
                accumulate,
                Neutral(),
                cast(value, dtype),
                Domain.from_set(self.region.points),
                conjunction(conditions),
                span=span,
            )
        )
        return Read(name, indices, (Boundary.SKIP,) * len(indices), dtype, span=span)

    def _mean(self) -> Expr:
        total = self._accumulated("add", self.reduction.dtype, self.value, self.conditions, "mean")
        count = self._fixed_count()
        if count is None:
            count = self._accumulated("add", "int64", integer(1), self.conditions, "count")
        return apply("div", total, cast(count, total.dtype), span=self.reduction.span)

    def _fixed_count(self) -> Expr | None:
        """The number of points that each cell sums, if it is the same for all: their domain is a product with a box."""
        if self.conditions:
            return None
        algebra = self.inference.algebra
        points = self.region.points.intersect_params(algebra.context)
        fibers = arranged(points, self.level.variables)
        box: dict[str, SizeInterval] = {}
        count = Polynomial.number(1)
        for k, name in enumerate(self.level.variables):
            ends = ends_of(self.inference, fibers, k)
            if ends is None:
                return integer(0)
            box[name] = ends
            count = count * algebra.at_least_zero(ends.length)
        whole = arranged(self.needed, self.region.variables).intersect(
            arranged(interval_box(algebra, box, self.level.variables), self.region.variables)
        )
        if not whole.intersect_params(algebra.context).is_subset(points):
            return None
        return algebra.expr(count)

    def _position(self, extreme: str) -> Expr:
        value = self.value
        if is_boolean(value.dtype):
            value = cast(value, "int8")
        best = self._accumulated(extreme, value.dtype, value, self.conditions)
        attains = apply("eq", value, best)
        if is_floating(value.dtype):  # NaN wins, as in NumPy
            attains = apply("or_", attains, apply("ne", value, value))
        position = self._place()
        found = self._accumulated("min", "int64", position, [*self.conditions, attains], f"arg{extreme}")
        return self._not_empty(found, f"arg{extreme}")

    def _place(self) -> Expr:
        # Of several variables, whose ranges begin at 0: the position in row-major order.
        highs = {given.variable: given.high for given in self.level.ranges}
        first, *others = self.level.variables
        place: Expr = index(first)
        for name in others:
            place = apply("add", apply("mul", place, highs[name]), index(name))
        return place

    def _not_empty(self, found: Expr, name: str) -> Expr:
        """The position ``found``, where there is one: an error at the call if sizes decide it, else at run time."""
        covered = arranged(self.region.points, self.outer)
        empty = self.wanted.subtract(covered).intersect_params(self.inference.algebra.context)
        if empty.is_empty() and not self.conditions:
            return found
        if not self.conditions and self.wanted_surely:
            sizes = empty.params().complement()
            fact = f"`{name}` over an empty range"
            self.inference.require(expression_of_condition(sizes), fact, self.reduction.span)
            return found
        ends = ends_of(self.inference, arranged(self.region.points, self.level.variables), 0)
        if ends is not None and len(self.level.variables) > 1:
            count = Polynomial.number(1)
            for given in self.level.ranges:
                count = count * self.inference.algebra.form(given.high)
            ends = SizeInterval(Polynomial.number(0), count - 1)
        return found if ends is None else self._checked(found, ends, name)

    def _checked(self, found: Expr, ends: SizeInterval, name: str) -> Expr:
        # A tensor of all positions, read at the one that was found: without a point, that is out of range.
        algebra = self.inference.algebra
        tensor = self.family.names.fresh(f"{self.inference.sketch.target.tensor}_positions")
        variable = self.level.variables[0]
        span = self.reduction.span
        length = algebra.at_least_zero(ends.length)
        self.family.tensors.append(Tensor(tensor, "int64", (algebra.expr(length),), f"{name}()", span))
        place = algebra.expr(Polynomial.of(index(variable)) - ends.low)
        domain = Domain.from_set(interval_box(algebra, {variable: ends}, (variable,)))
        write = Statement(Access(tensor, (place,), span), "assign", Neutral(), index(variable), domain, span=span)
        self.family.statements.append(write)
        first = cast(algebra.expr(ends.low), INTEGER)
        wanted = found if ends.low.value == 0 else apply("sub", cast(found, INTEGER), first)
        return Read(tensor, (wanted,), (Boundary.CHECK,), "int64", span=span)


def _tests_before(tests: Sequence[Expr], level: Level) -> list[Expr]:
    # Those that are made before the first one in which the reduction stands; all of them where it stands in the value.
    assert level.parent is not None
    written = {node for node, inner in level.parent.reductions.items() if inner is level}
    return list(itertools.takewhile(lambda test: written.isdisjoint(walk(test)), tests))


def _without_preconditions(points: isl.Set) -> isl.Set:
    relaxed = points.gist_params(points.params())
    return relaxed if relaxed.is_bounded() or not points.is_bounded() else points
