"""Ranges of statements that skip no points: what would be out of range is refused at the call.

The rules are those of Tensor Comprehensions. Ranges that are stated hold as they are. All others come from rounds
(`tcdsl.ranges.solving.inferred_extents`), in which all accesses count, those in branches and of a target that exists
included; of several bounds on a variable the tightest holds. What an access then asks for beside is an assertion about
sizes, at the points where it is made; where data decides that, the access is tested at run time. No range is empty,
unless an array is.

::

    O(n) +=! I(n + k) * K(k)          0 <= k < K_0,  then 0 <= n < I_0 - K_0 + 1
    O(i) = A(i) + B(i)                0 <= i < min(A_0, B_0)
    O(i) = A(i + 1) where i in 0:N    asserts that N < A_0
    O(i) = A(i % N) where i in 0:M    asserts that N is not 0, unless M is
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tcdsl.errors import ShapeError
from tcdsl.ir.build import all_of, apply, integer, size
from tcdsl.ir.expressions import Apply, Constant, Expr, size_names
from tcdsl.ir.program import Assertion, AxisExtent
from tcdsl.polyhedra.affine import NotAffine, condition_set, expression_of_condition
from tcdsl.polyhedra.disjunctions import convex_pieces
from tcdsl.polyhedra.limits import refused_beyond_limits
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.size_algebra import SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.index_divisions import IndexDivision, index_divisions
from tcdsl.ranges.sketches.index_forms import normalized_sketch
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import Sketch, free_variables
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, explicit_ranges, root_level
from tcdsl.ranges.solving.constraints import form_in_range, named_sizes
from tcdsl.ranges.solving.for_all import interval_box
from tcdsl.ranges.solving.inferred_extents import RoundSolver
from tcdsl.ranges.solving.regions import affine_guard
from tcdsl.span import Span

__all__ = ["RequiredRanges", "required_ranges"]

_MOST_PIECES = 4


@dataclass(frozen=True, slots=True)
class RequiredRanges:
    """The first value of each variable and the one behind its last, and what follows from them.

    ``extents`` are those that the target needs. ``tested`` are the accesses that are tested at run time: the tensor,
    the axis, and the place.
    """

    ends: Mapping[str, tuple[Expr, Expr]]
    extents: tuple[Expr, ...]
    tested: frozenset[tuple[str, int, Span | None]]
    assertions: tuple[Assertion, ...]


def required_ranges(
    sketch: Sketch, scope: ProgramScope, advice: str, begins: Mapping[str, Sequence[Expr]]
) -> RequiredRanges:
    """The ranges of a sketch; ``advice`` says how a range is stated for the variable ``{}``.

    ``begins`` are the first cells that have been written of tensors of which these are not those at 0.

    Raises `ShapeError` for faults that need no sizes, all together.
    """
    with refused_beyond_limits(ShapeError, "this statement", sketch.span):
        return _Required(sketch, scope, advice, begins).found()


class _Required:
    def __init__(self, sketch: Sketch, scope: ProgramScope, advice: str, begins: Mapping[str, Sequence[Expr]]) -> None:
        self.inference = Inference(sketch, scope)
        self.inference.sketch = normalized_sketch(self.inference)
        # What sets cannot call a variable has another name in them.
        self.given = dict(zip(self.inference.sketch.variables, sketch.variables, strict=True))
        self.root = root_level(self.inference)
        self.advice = advice
        self.begins = begins
        self.solved: dict[str, SizeInterval] = {}
        self.tested: set[tuple[str, int, Span | None]] = set()

    def found(self) -> RequiredRanges:
        inference = self.inference
        explicit = explicit_ranges(self.root, inference.algebra)
        linear = {access: self.written_part(access) for access in self.root.accesses if _is_linear(access)}
        parts = list(linear.values())
        # All that are written count, those of `i < 0 ? x : x` too, which is x by now.
        variables = tuple(dict.fromkeys((*inference.sketch.variables, *self.root.variables)))
        solver = RoundSolver(inference, variables, explicit, parts, lazily=False, advice=self.advice)
        self.solved = solver.solve()
        for access, part in linear.items():
            access.settled = part.settled
        inference.raise_faults()
        places = {given.variable: given.span for given in inference.sketch.ranges}
        for name, interval in self.solved.items():
            self.require_values(name, interval, places.get(name))
        extents = tuple(self.extent(access) for access in self.root.accesses if access.written)
        inference.raise_faults()
        for access in self.root.accesses:
            if access.form is not None and access.extent is not None and not access.settled:
                self.require_in_range(access)
        for division in index_divisions(inference.sketch.value):
            self.require_divisor(division)
        inference.raise_faults()
        ends = {
            self.given.get(name, name): (self.end(each.low), self.end(each.high + 1))
            for name, each in self.solved.items()
        }
        return RequiredRanges(ends, extents, frozenset(self.tested), tuple(inference.assertions))

    def end(self, form: Polynomial) -> Expr:
        # The smallest of many extents has a name: sets would tell all cases apart.
        expr = self.inference.algebra.expr(form)
        return self.inference.scope.opaque_size(expr) if convex_pieces(expr) > _MOST_PIECES else expr

    def written_part(self, access: AxisAccess) -> AxisAccess:
        # Beside statements, ranges stay where a tensor has been written; what is stated may read the cells below.
        tensor = self.inference.sketch.previous if access.written else access.tensor
        begin = self.begins[tensor][access.axis] if tensor in self.begins else integer(0)
        if access.extent is None or access.form is None or begin == integer(0):
            return access
        low = self.inference.algebra.form(begin)
        return replace(access, form=access.form - low, extent=access.extent - low)

    def require_values(self, name: str, interval: SizeInterval, span: Span | None) -> None:
        inference, length = self.inference, interval.length
        fact = f"the range of `{name}` is empty: {self.range_text(interval)}"
        if length.value is not None and length.value <= 0:
            inference.fault(fact, span)
            return
        if not inference.require_nonnegative(length, fact, span) or inference.algebra.nonnegative(length - 1):
            return
        # Negative lengths are refused by now; 0 values are right where an array is empty.
        expr = inference.algebra.expr(length)
        condition = apply("ne", expr, integer(0))
        for extent in _extents_in(expr, inference.scope):
            condition = apply("or_", condition, apply("eq", extent, integer(0)))
        try:
            if inference.algebra.impossible(apply("not_", condition)):
                return
        except NotAffine:
            pass  # too many cases to ask about
        inference.require(condition, f"{fact}, with {inference.values(length)}", span, assumed=False)

    def range_text(self, interval: SizeInterval) -> str:
        return f"{self.inference.text(interval.low)}:{self.inference.text(interval.high + 1)}"

    def extent(self, access: AxisAccess) -> Expr:
        inference = self.inference
        assert access.form is not None
        interval = self.solved[access.form.bare or ""]
        if access.extent is None:
            fact = f"the index `{access.form.bare}` of {inference.label(access.tensor)} would begin at "
            fact += f"{inference.text(interval.low)}, below 0"
            inference.require_nonnegative(interval.low, fact, access.span)
            access.settled = True
        return self.end(interval.high + 1)

    def require_in_range(self, access: AxisAccess) -> None:
        inference, algebra = self.inference, self.inference.algebra
        form, extent = access.bounds
        least, most = (algebra.bound(form, self.solved, largest) for largest in (False, True))
        if (
            least is not None
            and most is not None
            and algebra.nonnegative(least)
            and algebra.nonnegative(extent - 1 - most)
        ):
            return
        guard = [named_sizes(condition, algebra) for condition in access.guard]
        used = form.variables.union(*map(free_variables, guard))
        names = [name for name in self.solved if name in used]
        others: list[Expr] = []
        try:
            points, others = affine_guard(guard, interval_box(algebra, self.solved, names))
            fits = condition_set(form_in_range(algebra, form, extent), points)
            context = algebra.context_of(points)
            wrong = points.intersect_params(context).subtract(fits)
            if wrong.is_empty():
                return
            holds = expression_of_condition(context.subtract(wrong.params()).coalesce().gist(context))
        except NotAffine:
            if least is None or most is None or guard:
                others = guard
                holds = None
            else:
                tests = [apply("ge", algebra.expr(end), integer(0)) for end in (least, extent - 1 - most)]
                holds = all_of(tests)
        if others or holds is None:
            self.tested.add((access.tensor, access.axis, access.span))
            return
        fact = f"{access.place(inference)} is out of range"
        if least is not None and most is not None:
            fact += f": it takes the values {self.range_text(SizeInterval(least, most))}"
        fact += f", and the extent is {inference.text(extent)}"
        shown = [each for each in (least, most, extent) if each is not None]
        values = inference.values(*shown)
        certain = isinstance(holds, Constant) or not values
        if not certain and self.only_for_empty_arrays(holds, shown):
            inference.fault(fact, access.span)
            return
        inference.require(holds, fact if certain else f"{fact}, with {values}", access.span)

    def require_divisor(self, division: IndexDivision) -> None:
        inference, algebra = self.inference, self.inference.algebra
        divisor = algebra.form(division.divisor)
        if algebra.nonzero(divisor):
            return
        condition = apply("ne", algebra.expr(divisor), integer(0))
        guard = [named_sizes(each, algebra) for each in division.guard]
        try:
            # A guard that is data may hold at any point.
            points, _ = affine_guard(guard, interval_box(algebra, self.solved, list(self.solved)))
            context = algebra.context_of(points)
            wrong = points.intersect_params(context).subtract(condition_set(condition, points))
            if wrong.is_empty():
                return
            holds = expression_of_condition(context.subtract(wrong.params()).coalesce().gist(context))
        except NotAffine:
            holds = condition
            for interval in self.solved.values():
                holds = apply("or_", holds, apply("le", algebra.expr(interval.length), integer(0)))
        place = f"an index on axis {division.axis} of {inference.label(division.tensor)}"
        fact = f"{place} is divided by `{inference.text(division.divisor)}`, which is 0"
        inference.require(holds, f"{fact}, with {inference.values(divisor)}", division.span)

    def only_for_empty_arrays(self, condition: Expr, forms: Sequence[Polynomial]) -> bool:
        algebra = self.inference.algebra
        for form in forms:
            for extent in _extents_in(algebra.expr(form), self.inference.scope):
                condition = apply("and_", condition, apply("ge", extent, integer(1)))
        try:
            return isinstance(condition, Apply) and algebra.impossible(condition)
        except NotAffine:
            return False


def _is_linear(access: AxisAccess) -> bool:
    form = access.form
    return form is not None and all(form.linear_in(name) for name in form.variables)


def _extents_in(expr: Expr, scope: ProgramScope) -> Iterator[Expr]:
    # The extents of arrays that an expression is made of, those behind names included.
    for name in sorted(size_names(expr)):
        source = scope.size(name).source
        if isinstance(source, AxisExtent):
            yield size(name)
        else:
            yield from _extents_in(source, scope)
