"""Linear forms of index expressions: integer coefficients of variables, sizes and whatever is not linear itself."""

from __future__ import annotations

from collections.abc import Mapping

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, children, rebuild, walk

__all__ = ["has_cases", "linear_expression", "linear_form", "normalized"]


def has_cases(expr: Expr) -> bool:
    """Whether ``expr`` tells cases apart (``where``): exact for isl, but each case multiplies the pieces of a set."""
    return any(isinstance(node, Apply) and node.primitive == "where" for node in walk(expr))


def linear_form(expr: Expr) -> tuple[dict[Expr, int], int]:
    """Coefficients and constant: ``2*i + k - 1`` gives ``({i: 2, k: 1}, -1)``.

    Parts that are not linear (``i // 2``, data, products of sizes) count as one term each. Zero coefficients are left
    out.
    """
    terms: dict[Expr, int] = {}
    constant = _collect(expr, 1, terms)
    return {atom: scale for atom, scale in terms.items() if scale}, constant


def _collect(expr: Expr, scale: int, terms: dict[Expr, int]) -> int:
    match expr:
        case Constant(value=value):
            return scale * int(value)
        case Apply(primitive="add", arguments=(left, right), dtype="int64"):
            return _collect(left, scale, terms) + _collect(right, scale, terms)
        case Apply(primitive="sub", arguments=(left, right), dtype="int64"):
            return _collect(left, scale, terms) + _collect(right, -scale, terms)
        case Apply(primitive="neg", arguments=(operand,), dtype="int64"):
            return _collect(operand, -scale, terms)
        case Apply(primitive="mul", arguments=(Constant(value=value), other), dtype="int64"):
            return _collect(other, scale * int(value), terms)
        case Apply(primitive="mul", arguments=(other, Constant(value=value)), dtype="int64"):
            return _collect(other, scale * int(value), terms)
        case _:
            parts = children(expr)
            atom = rebuild(expr, tuple(normalized(part) for part in parts)) if parts else expr
            terms[atom] = terms.get(atom, 0) + scale
            return 0


def linear_expression(terms: Mapping[Expr, int], constant: int) -> Expr:
    """The expression of a linear form, positive terms first: ``({i: 2, k: -1}, 3)`` gives ``2*i - k + 3``."""
    result: Expr | None = None
    positive = [(atom, scale) for atom, scale in terms.items() if scale > 0]
    negative = [(atom, scale) for atom, scale in terms.items() if scale < 0]
    for atom, scale in positive:
        term = apply("mul", integer(scale), atom)
        result = term if result is None else apply("add", result, term)
    if result is None and constant > 0:
        result, constant = integer(constant), 0
    for atom, scale in negative:
        if result is None:
            result = apply("neg", atom) if scale == -1 else apply("mul", integer(scale), atom)
        else:
            result = apply("sub", result, apply("mul", integer(-scale), atom))
    if result is None:
        return integer(constant)
    return apply("add" if constant >= 0 else "sub", result, integer(abs(constant)))


def normalized(expr: Expr) -> Expr:
    """``expr`` with like terms collected, inside its parts too: ``(z - k) + k`` becomes ``z``. Other types stay."""
    if expr.dtype == "int64":
        return linear_expression(*linear_form(expr))
    parts = children(expr)
    return rebuild(expr, tuple(normalized(part) for part in parts)) if parts else expr
