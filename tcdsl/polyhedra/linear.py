"""Linear forms of index expressions: integer coefficients of variables, sizes and whatever is not linear itself."""

from __future__ import annotations

from collections.abc import Mapping

from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, is_affine_index, map_children, walk

__all__ = ["has_cases", "linear_expression", "linear_form", "normalized", "solved_for"]

# Sums of these types are sums of multiples of their parts: those of int64 modulo 2**64, if they are values.
_LINEAR = ("int64", INTEGER)


def has_cases(expr: Expr) -> bool:
    """Whether ``expr`` tells cases apart (``where``, ``or``): exact for isl, but cases multiply the pieces of sets."""
    return any(isinstance(node, Apply) and node.primitive in ("where", "or_") for node in walk(expr))


def linear_form(expr: Expr) -> tuple[dict[Expr, int], int]:
    """Coefficients and constant: ``2*i + k - 1`` gives ``({i: 2, k: 1}, -1)``.

    Parts that are not linear (``i // 2``, data, products of sizes) count as one term each. Zero coefficients are left
    out.
    """
    terms: dict[Expr, int] = {}
    constant = 0
    pending = [(expr, 1)]
    while pending:  # sums of a thousand parts are as deep
        part, scale = pending.pop()
        match part:
            case Constant(value=value):
                constant += scale * int(value)
            case Apply(primitive="add" | "sub", arguments=(left, right)) if part.dtype in _LINEAR:
                pending += [(right, scale if part.primitive == "add" else -scale), (left, scale)]
            case Apply(primitive="neg", arguments=(operand,)) if part.dtype in _LINEAR:
                pending.append((operand, -scale))
            case Apply(primitive="mul", arguments=(Constant(value=value), other)) if part.dtype in _LINEAR:
                pending.append((other, scale * int(value)))
            case Apply(primitive="mul", arguments=(other, Constant(value=value))) if part.dtype in _LINEAR:
                pending.append((other, scale * int(value)))
            case Cast(operand=operand, dtype="integer") if is_affine_index(operand):
                pending.append((operand, scale))
            case _:
                atom = map_children(part, normalized)
                terms[atom] = terms.get(atom, 0) + scale
    return {atom: scale for atom, scale in terms.items() if scale}, constant


def linear_expression(terms: Mapping[Expr, int], offset: int, dtype: str = "int64") -> Expr:
    """The expression of a linear form, positive terms first: ``({i: 2, k: -1}, 3)`` gives ``2*i - k + 3``."""

    def term(atom: Expr, scale: int) -> Expr:
        return apply("mul", constant(scale, dtype), cast(atom, dtype))

    result: Expr | None = None
    for atom, scale in terms.items():
        if scale > 0:
            result = term(atom, scale) if result is None else apply("add", result, term(atom, scale))
    if result is None and offset > 0:
        result, offset = constant(offset, dtype), 0
    for atom, scale in terms.items():
        if scale >= 0:
            continue
        if result is None:
            result = apply("neg", cast(atom, dtype)) if scale == -1 else term(atom, scale)
        else:
            result = apply("sub", result, term(atom, -scale))
    if result is None:
        return constant(offset, dtype)
    return apply("add" if offset >= 0 else "sub", result, constant(abs(offset), dtype))


def solved_for(variable: Expr, terms: Mapping[Expr, int], offset: int, value: Expr) -> Expr:
    """What ``variable`` is, whose coefficient is 1 or -1, where a linear form equals ``value``."""
    scale = terms[variable]
    rest = {atom: -scale * factor for atom, factor in terms.items() if atom != variable}
    return linear_expression({value: scale, **rest}, -scale * offset)


def normalized(expr: Expr) -> Expr:
    """``expr`` with like terms collected, inside its parts too: ``(z - k) + k`` becomes ``z``. Other types stay."""
    if expr.dtype in _LINEAR:
        return linear_expression(*linear_form(expr), expr.dtype)
    return map_children(expr, normalized)
