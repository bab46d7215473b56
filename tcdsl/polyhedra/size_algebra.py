"""Forms and expressions of one program: reading, writing, and what is known about sizes.

`SizeAlgebra` turns index expressions into `Polynomial`s and back, naming what isl cannot hold (``N * M``, ``N // K``),
and proves inequalities between sizes from the program's context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import islpy as isl

from tcdsl.ir.build import apply, integer, product_of
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Local,
    Read,
    SizeValue,
    index_variables,
    size_names,
    walk,
)
from tcdsl.ir.program import AxisExtent
from tcdsl.ir.sizes.known_sizes import never_negative
from tcdsl.polyhedra.affine import NotAffine, expression_of, function_of, universe
from tcdsl.polyhedra.linear import linear_expression
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.size_polynomials import Monomial, Polynomial
from tcdsl.polyhedra.spaces import parameter_names

__all__ = ["SizeAlgebra", "SizeInterval"]


class SizeInterval(NamedTuple):
    """``low <= variable <= high``; both ends may depend on sizes and on variables with ranges of their own."""

    low: Polynomial
    high: Polynomial

    @property
    def length(self) -> Polynomial:
        """The number of values, if it is not negative."""
        return self.high - self.low + 1


_EXTREMES = ("min", "max", "where")
_FEW_NODES = 12

_MANY_NODES = 24  # Sizes of this many parts and more get names; shorter ones say more where they stand.


class SizeAlgebra:
    """Arithmetic on the sizes of one program, with what is known about them.

    ``context`` is what is known of ``names``.
    """

    def __init__(self, scope: ProgramScope, names: Iterable[str] = ()) -> None:
        self.scope = scope
        self._known = scope.known().copy()
        self._about = frozenset(names)
        self._forms: dict[Expr, Polynomial] = {}
        self._names: dict[Monomial, Expr] = {}
        self._signs: dict[str, bool] = {}

    # -- reading ---------------------------------------------------------------------------------------------------

    def form(self, expr: Expr) -> Polynomial:
        """The form of an int64 expression of index variables and sizes.

        `NotAffine` for anything else: data, products of index variables, ``//`` and ``%`` of index variables by sizes.
        """
        found = self._forms.get(expr)
        if found is None:
            found = self._forms[expr] = self._read(expr)
        return found

    def _read(self, expr: Expr) -> Polynomial:
        match expr:
            case Constant(value=value, dtype="int64"):
                return Polynomial.number(int(value))
            case SizeValue(name=name):
                return self._size(expr, name)
            case IndexValue():
                return Polynomial.of(expr)
            case Cast(operand=operand, dtype="int64") if operand.dtype.startswith(("int", "uint")):
                return self.form(operand)
            case Apply(primitive="neg", arguments=(operand,)):
                return -self.form(operand)
            case Apply(primitive="add" | "sub" | "mul" | "floor_div" | "mod" | "min" | "max", dtype="int64"):
                left, right = (self.form(argument) for argument in expr.arguments)
                return self._applied(expr.primitive, left, right)
            case Apply(primitive="where", dtype="int64"):
                return self._chosen(expr)
        raise NotAffine(expr)

    def _size(self, expr: Expr, name: str) -> Polynomial:
        source = self.scope.size(name).source
        if not isinstance(source, Apply) or source.primitive not in ("add", "sub", "mul", "neg"):
            return Polynomial.of(SizeValue(name))
        # N * M is known by its factors, so that it can be divided by them; it keeps its name where it is written.
        form = self.form(source)
        ((_, monomial), scale), *others = form.terms.items() or [((None, ()), 0)]
        if scale == 1 and len(monomial) > 1 and not others:
            self._names[monomial] = SizeValue(name)
        return form

    def _applied(self, primitive: str, left: Polynomial, right: Polynomial) -> Polynomial:
        match primitive:
            case "add":
                return left + right
            case "sub":
                return left - right
            case "mul":
                return left * right
            case "floor_div":
                return self.quotient(left, right)
            case "mod":
                return Polynomial({}) if self._divides(left, right) else self._rest(left, right)
        return self.extreme([left, right], largest=primitive == "max")

    def _chosen(self, expr: Apply) -> Polynomial:
        names = index_variables(expr)
        try:
            function_of(expr, universe(sorted(names), ()))
        except NotAffine:
            if names or any(isinstance(part, Read | Local) for part in walk(expr)):
                raise
            return self._named(expr)
        return Polynomial.of(expr)

    # -- division --------------------------------------------------------------------------------------------------

    def _divides(self, form: Polynomial, divisor: Polynomial) -> bool:
        parts = form.split(divisor)
        return parts is not None and not parts[1].terms

    def quotient(self, form: Polynomial, divisor: Polynomial) -> Polynomial:
        """``form // divisor``. `NotAffine` for index variables over anything but a positive constant, unless it is
        exact.
        """
        parts = form.split(divisor)
        if parts is None:
            if form.variables or divisor.variables:
                raise NotAffine(self.expr(form))
            return self._named(apply("floor_div", self.expr(form), self.expr(divisor)))
        whole, rest = parts
        if not rest.terms:
            return whole
        number = divisor.value
        if number is not None:
            if rest.value is not None:  # 0 <= rest < number
                return whole
            return whole + Polynomial.of(apply("floor_div", self.expr(rest), integer(number)))
        if rest.variables:
            raise NotAffine(self.expr(form))
        return whole + self._named(apply("floor_div", self.expr(rest), self.expr(divisor)))

    def _rest(self, form: Polynomial, divisor: Polynomial) -> Polynomial:
        parts = form.split(divisor)
        if parts is None or divisor.value is None:
            if form.variables or divisor.variables:
                raise NotAffine(self.expr(form))
            return self._named(apply("mod", self.expr(form if parts is None else parts[1]), self.expr(divisor)))
        rest = parts[1]
        return rest if rest.value is not None else Polynomial.of(apply("mod", self.expr(rest), integer(divisor.value)))

    def _named(self, expr: Expr) -> Polynomial:
        named = self.scope.opaque_size(expr)
        self._about |= size_names(named)
        return Polynomial.number(int(named.value)) if isinstance(named, Constant) else Polynomial.of(named)

    # -- writing ---------------------------------------------------------------------------------------------------

    def expr(self, form: Polynomial) -> Expr:
        """The expression of a form. It is quasi-affine if the form is; products of sizes are named."""
        terms: dict[Expr, int] = {}
        for (atom, monomial), scale in form.terms.items():
            if atom is None and not monomial:
                continue
            if atom is None:
                part = self._product(monomial)
            else:
                part = apply("mul", atom, self._product(monomial)) if monomial else atom
            terms[part] = terms.get(part, 0) + scale
        return linear_expression(terms, form.constant)

    def _product(self, monomial: Monomial) -> Expr:
        if len(monomial) == 1:
            return monomial[0]
        if monomial not in self._names:
            self._names[monomial] = self.scope.opaque_size(product_of(monomial))
            self._about |= size_names(self._names[monomial])
        return self._names[monomial]

    # -- what is known ---------------------------------------------------------------------------------------------

    @property
    def context(self) -> isl.Set:
        """What is known about the sizes that the algebra is for, as a set of parameters."""
        return self._known.about(self._about)

    def assume(self, condition: Expr) -> None:
        """Take an assertion of the program as known from here on."""
        self._known.add(condition)

    def know_like(self, other: SizeAlgebra) -> None:
        """Take as known what ``other``, of the same program, knows."""
        self._known = other._known.copy()

    def extent(self, expr: Expr) -> Polynomial:
        """The form of a tensor's extent, which is known not to be negative: the call fails before where it would be."""
        form = self.form(expr)
        if not self.nonnegative(form):
            self.assume(apply("ge", self.expr(form), integer(0)))
            if isinstance(expr, SizeValue):
                self._signs[expr.name] = True
        return form

    def _natural(self, name: str) -> bool:
        # Whether a size is an extent, or a sum, product or quotient of such, so never negative.
        if name not in self._signs:
            source = self.scope.size(name).source
            self._signs[name] = isinstance(source, AxisExtent) or never_negative(source, self._natural)
        return self._signs[name]

    def nonnegative(self, form: Polynomial) -> bool:
        """Whether a form of sizes is known not to be negative."""
        if form.value is not None:
            return form.value >= 0
        if form.variables:
            return False
        signs = (never_negative(factor, self._natural) for factor in form.sizes())
        if all(scale >= 0 for scale in form.terms.values()) and all(signs):
            return True
        return self._never(form, "lt")

    def negative(self, form: Polynomial) -> bool:
        """Whether a form of sizes is known to be negative."""
        if form.value is not None:
            return form.value < 0
        return not form.variables and self._never(form, "ge")

    def zero(self, form: Polynomial) -> bool:
        """Whether a form of sizes is known to be 0."""
        return form.value == 0 or (form.value is None and not form.variables and self._never(form, "ne"))

    def nonzero(self, form: Polynomial) -> bool:
        """Whether a form of sizes is known to differ from 0."""
        return form.value != 0 if form.value is not None else not form.variables and self._never(form, "eq")

    def _never(self, form: Polynomial, comparison: str) -> bool:
        condition = apply(comparison, self.expr(form), integer(0))
        if isinstance(condition, Constant):
            return not condition.value
        try:
            return self.impossible(condition)
        except NotAffine:  # a size of too many cases
            return False

    def impossible(self, condition: Expr) -> bool:
        """Whether a condition on sizes is known not to hold. `NotAffine` if isl cannot say it."""
        return self._known.never(condition)

    def context_of(self, points: isl.Set) -> isl.Set:
        """What is known about the sizes that ``points`` speaks of."""
        return self._known.about(parameter_names(points))

    def spoken(self, form: Polynomial) -> Polynomial:
        """``form``, of many equal sizes by the one that stands for them, so that sets have fewer parameters."""
        return form if form.variables else self.form(self._known.told(self.expr(form)))

    def sign(self, form: Polynomial) -> int | None:
        """1 if a form of sizes is known to be at least 0, -1 if it is known to be at most 0."""
        if self.nonnegative(form):
            return 1
        return -1 if self.nonnegative(-form) else None

    # -- extremes --------------------------------------------------------------------------------------------------

    def extreme(self, forms: Sequence[Polynomial], largest: bool) -> Polynomial:
        """The largest or smallest of some forms; what the context decides is left out."""
        kept: list[Polynomial] = []
        for form in forms:
            if any(self._dominates(other, form, largest) for other in kept):
                continue
            kept = [other for other in kept if not self._dominates(form, other, largest)]
            kept.append(form)
        if len(kept) == 1:
            return kept[0]
        # min(N - 1, M - 1) is min(N, M) - 1.
        shift = max(form.constant for form in kept)
        expr = self.expr(kept[0] - shift)
        for form in kept[1:]:
            expr = apply("max" if largest else "min", expr, self.expr(form - shift))
        return Polynomial.of(expr) + shift

    def in_pieces(self, form: Polynomial) -> Polynomial:
        """The form, with extremes of extremes told by cases: ``0 if N == 0 else 1`` for ``min(1, N + min(1, N))``.

        Each array that is put together of parts of the last one would otherwise say its extent several times. Of more
        than one size there are too many cases: then what is too long is a size of its own.
        """
        expr = self.expr(form)
        extremes = [each for each in walk(expr) if isinstance(each, Apply) and each.primitive in _EXTREMES]
        if sum(len(list(walk(each))) for each in extremes) <= _FEW_NODES:
            return form
        if len(size_names(expr)) != 1:
            return self._long_factors_named(form) if len(list(walk(expr))) > _MANY_NODES else form
        try:
            return self.form_of_function(function_of(expr, universe((), ()), any_pieces=True))
        except NotAffine:
            return form

    def _long_factors_named(self, form: Polynomial) -> Polynomial:
        total = Polynomial.number(form.constant)
        for (atom, monomial), scale in (form - form.constant).terms.items():
            if atom is None and len(monomial) == 1 and len(list(walk(monomial[0]))) > _FEW_NODES:
                # A length with what stands behind it, so that constants do not add up: min(0, N - 1) + 1 is min(1, N).
                by = total.constant if scale == 1 else 0
                total += self._named(self._shifted(monomial[0], by)) * scale - by
            else:
                total += Polynomial({(atom, monomial): scale})
        return total

    def _shifted(self, expr: Expr, by: int) -> Expr:
        match expr:
            case Apply(primitive="min" | "max" as primitive, arguments=(left, right)):
                return apply(primitive, self._shifted(left, by), self._shifted(right, by))
        return self.expr(self.form(expr) + by)

    def at_least_zero(self, form: Polynomial) -> Polynomial:
        """The form, or 0 where it is negative: the number of values of a range."""
        return form if self.nonnegative(form) else self.extreme([form, Polynomial.number(0)], largest=True)

    def _dominates(self, form: Polynomial, other: Polynomial, largest: bool) -> bool:
        difference = form - other if largest else other - form
        return self.nonnegative(difference)

    def bound(self, form: Polynomial, intervals: Mapping[str, SizeInterval], largest: bool) -> Polynomial | None:
        """The extreme value of ``form`` over the ranges of its variables, as a form of sizes.

        The ranges count as not empty. None if a variable has none, stands inside ``//``, ``%``, ``min`` or ``max``,
        or has a factor of unknown sign.
        """
        for name in reversed(list(intervals)):
            if name not in form.variables:
                continue
            factor = form.coefficient(name)
            sign = self.sign(factor) if form.linear_in(name) else None
            if sign is None:
                return None
            interval = intervals[name]
            try:
                form = form.without(name) + factor * (interval.high if (sign > 0) == largest else interval.low)
            except NotAffine:
                return None
        return None if form.variables else form

    def form_of_function(self, function: isl.PwAff) -> Polynomial:
        """The form of a function of sizes; outside its domain it is continued."""
        return self.form(expression_of(function, self.context))
