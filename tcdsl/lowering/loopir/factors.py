"""What the terms of a sum are made of: two factors, each of which is read or made of what is read.

::

    A[i, k] * B[k, j] * w[k]            left A[i, k], right B[k, j] * w[k], and so on: any factor may be the left one
    (x[i, k] - y[j, k]) ** 2            left x[i, k], right y[j, k]; the term is (left - right) ** 2
    2 * (x[i, k] - y[j, k]) * g[i, j]   left g[i, j], right y[j, k], summed over j; the term is (x[i, k] - right) * left
                                        and the sum is multiplied by 2
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import partial, reduce

from tcdsl.ir.build import apply, constant
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    Local,
    Read,
    index_variables,
    is_affine_index,
    reads,
    substitute,
)

__all__ = ["TermOfFactors", "factors_of", "is_simple", "product_term", "term_of", "terms_of"]

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


@dataclass(frozen=True, slots=True)
class TermOfFactors:
    """How a term is made of a ``left`` and a ``right`` factor (`term_of`), and what the sum of all is scaled by."""

    left: Expr
    right: Expr
    term: Expr
    scale: Expr


def terms_of(value: Expr, cells: Set[str]) -> list[TermOfFactors]:
    """How terms with such a ``value`` may be made of two factors; the target has the variables ``cells``.

    Products of all that is multiplied come first. Others have two factors that are read, and may read besides what is
    the same for all terms of a cell.
    """
    factors, one = factors_of(value), _product((), value.dtype)
    made: list[TermOfFactors] = []
    if len(factors) > 1 and all(map(is_simple, factors)):
        others = (_product((*factors[:k], *factors[k + 1 :]), value.dtype) for k in range(len(factors)))
        term = product_term(value.dtype)
        made = [TermOfFactors(factor, rest, term, one) for factor, rest in zip(factors, others, strict=True)]
    if made and all(isinstance(factor, Read | Constant | Cast) for factor in factors):
        return made
    scale, inside = (
        _product([each for each in factors if isinstance(each, Constant) == constants], value.dtype)
        for constants in (True, False)
    )
    every = tuple(dict.fromkeys(reads(inside)))
    both = every if len(every) == 2 else [read for read in every if not index_variables(read) <= cells]
    if len(both) != 2 or _parts(inside, _IN_TERMS) > _PARTS or any(each.dtype != value.dtype for each in every):
        return made
    places = _places(value.dtype)
    for left, right in (both, both[::-1]):
        term = substitute(inside, {left: places[0], right: places[1]})
        made.append(TermOfFactors(left, right, term, scale))
    return made


def _product(factors: Sequence[Expr], dtype: str) -> Expr:
    return reduce(partial(apply, "mul"), factors) if factors else constant(1, dtype)


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
