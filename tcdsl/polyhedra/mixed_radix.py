"""Products of index variables and sizes, taken apart into digits: isl cannot hold ``i*P + p``, but it can hold
``i`` and ``p``.

Where ``0 <= r < P`` for all points, ``q*P + r`` is in range of E exactly if ``0 <= q`` and ``(q, r)`` lies before
``(E // P, E % P)``; for ``E = M*P`` that is ``q < M``. Different digits make different indices. Digits nest:
``i*P*Q + p*Q + q``.
"""

from __future__ import annotations

import islpy as isl

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Constant, Expr
from tcdsl.polyhedra.affine import condition_set
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_polynomials import Polynomial

__all__ = ["digits", "in_range_by_digits", "splits"]


def _always(algebra: SizeAlgebra, form: Polynomial, points: isl.Set) -> bool:
    # Whether form >= 0 at all points, as far as isl can see.
    if form.value is not None:
        return form.value >= 0
    condition = apply("lt", algebra.expr(form), integer(0))
    if isinstance(condition, Constant):
        return not condition.value
    return bool(points.intersect(condition_set(condition, points)).is_empty())


def splits(form: Polynomial) -> list[tuple[Polynomial, Polynomial, Polynomial]]:
    """Strides with quotient and a rest that is quasi-affine: ``P, i, p`` of ``i*P + p``.

    Behind a convolution they are sums: ``i*(N + 1) + j`` has ``N + 1, i, j``.
    """
    product = form.stride()
    parts = None if product is None else form.split(product)
    found = [] if product is None or parts is None else [(product, *parts)]
    found += [(each, *form.divided_by(each)) for each in form.sums_before_variables()]
    return [each for each in found if each[2].quasi_affine]


def _split(algebra: SizeAlgebra, form: Polynomial, points: isl.Set) -> tuple[Polynomial, Polynomial, Polynomial] | None:
    """``(P, q, r)`` with ``form == q*P + r`` and ``0 <= r < P`` at all ``points``."""
    for stride, whole, rest in splits(form):
        # q*P - 1 - p has the digits q - 1 and P - 1 - p.
        for shift in (0, 1, -1):
            low, high = rest + stride * shift, whole - shift
            if _always(algebra, low, points) and _always(algebra, stride - low - 1, points):
                return stride, high, low
    return None


def digits(algebra: SizeAlgebra, form: Polynomial, points: isl.Set) -> list[Polynomial] | None:
    """Quasi-affine forms that determine ``form`` and are determined by it, most significant first; None if there
    are none.

    ``points`` holds what is known about the index variables, and the context.
    """
    if form.quasi_affine:
        return [form]
    parts = _split(algebra, form, points)
    if parts is None:
        return None
    _, high, low = parts
    leading = digits(algebra, high, points)
    return None if leading is None else [*leading, low]


def in_range_by_digits(algebra: SizeAlgebra, form: Polynomial, extent: Polynomial, points: isl.Set) -> Expr | None:
    """``0 <= form < extent`` as a quasi-affine condition that agrees at all ``points``; None if there is none."""
    leading = digits(algebra, form, points)
    found = _compared(algebra, form, extent, points)
    if leading is None or found is None:
        return None
    return apply("and_", apply("ge", algebra.expr(leading[0]), integer(0)), found[0])


def _compared(algebra: SizeAlgebra, form: Polynomial, bound: Polynomial, points: isl.Set) -> tuple[Expr, Expr] | None:
    # Whether form is less than bound, and whether it is equal, digit by digit.
    if form.quasi_affine:
        value, limit = algebra.expr(form), algebra.expr(bound)
        return apply("lt", value, limit), apply("eq", value, limit)
    parts = _split(algebra, form, points)
    if parts is None:
        return None
    stride, high, low = parts
    whole, rest = _divmod(algebra, bound, stride)
    found = _compared(algebra, high, whole, points)
    if found is None:
        return None
    below, level = found
    value, limit = algebra.expr(low), algebra.expr(rest)
    if rest.value != 0:
        below = apply("or_", below, apply("and_", level, apply("lt", value, limit)))
    return below, apply("and_", level, apply("eq", value, limit))


def _divmod(algebra: SizeAlgebra, form: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    # Where the divisor is 0 there are no digits below it and no points; max keeps the division itself from failing.
    parts = form.split(divisor)
    if parts is None and len(divisor.terms) > 1:
        parts = form.divided_by(divisor)
    if parts is not None and not parts[1].terms:
        return parts
    whole, rest = (Polynomial({}), form) if parts is None or not algebra.nonnegative(parts[1]) else parts
    safe = apply("max", algebra.expr(divisor), integer(1))
    named = [
        algebra.form(algebra.scope.opaque_size(apply(primitive, algebra.expr(rest), safe)))
        for primitive in ("floor_div", "mod")
    ]
    return whole + named[0], named[1]
