"""What the terms of a sum are made of: two factors, each of which is read or made of what is read.

::

    A[i, k] * B[k, j] * w[k]      left A[i, k], right B[k, j] * w[k], and so on: any factor may be the left one
    (x[i, k] - y[j, k]) ** 2      left x[i, k], right y[j, k]; the term is (left - right) ** 2
"""

from __future__ import annotations

from collections.abc import Set
from functools import partial, reduce

from tcdsl.ir.build import apply
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Local, Read, is_affine_index, reads, substitute

__all__ = ["factors_of", "is_simple", "product_term", "term_of", "terms_of"]

# What factors may be made of, and terms of two reads; and of so many parts, so that a multiplication with an addition
# is most of the work.
_IN_FACTORS = frozenset(("add", "sub", "mul", "neg"))
_IN_TERMS = _IN_FACTORS | {"square", "abs"}
_PARTS = 8


def factors_of(value: Expr) -> tuple[Expr, ...]:
    """What ``value`` is the product of."""
    match value:
        case Apply(primitive="mul", arguments=(one, other)):
            return *factors_of(one), *factors_of(other)
        case _:
            return (value,)


def is_simple(factor: Expr) -> bool:
    """Whether a factor is made while terms are added up: of a few cells, by a few additions and multiplications."""
    return _parts(factor, _IN_FACTORS) <= _PARTS


def terms_of(value: Expr) -> list[tuple[Expr, Expr, Expr]]:
    """The left and the right factor that ``value`` may have, and how it is made of them (`term_of`)."""
    factors = factors_of(value)
    if len(factors) > 1 and all(map(is_simple, factors)):
        others = (reduce(partial(apply, "mul"), (*factors[:k], *factors[k + 1 :])) for k in range(len(factors)))
        term = product_term(value.dtype)
        return [(factor, rest, term) for factor, rest in zip(factors, others, strict=True)]
    both = tuple(dict.fromkeys(reads(value)))
    if len(both) != 2 or _parts(value, _IN_TERMS) > _PARTS or any(each.dtype != value.dtype for each in both):
        return []
    places = _places(value.dtype)
    return [(one, other, substitute(value, {one: places[0], other: places[1]})) for one, other in (both, both[::-1])]


def product_term(dtype: str) -> Expr:
    """The term that is the product of its factors."""
    return apply("mul", *_places(dtype))


def term_of(term: Expr, left: Expr, right: Expr) -> Expr:
    """``term`` with these factors."""
    return substitute(term, dict(zip(_places(term.dtype), (left, right), strict=True)))


def _places(dtype: str) -> tuple[Local, Local]:
    return Local("left factor", dtype), Local("right factor", dtype)


def _parts(expr: Expr, primitives: Set[str]) -> int:
    # How many reads and operations there are; too many where there is anything else.
    match expr:
        case Read(indices=indices) if all(map(is_affine_index, indices)):
            return 1
        case Constant():
            return 0
        case Cast(operand=Read() as operand):
            return 1 + _parts(operand, primitives)
        case Apply(primitive=primitive, arguments=arguments) if primitive in primitives:
            return 1 + sum(_parts(argument, primitives) for argument in arguments)
        case _:
            return _PARTS + 1
