"""What the terms of a sum are made of: two factors, each of which is read or made of what is read.

::

    A[i, k] * B[k, j] * w[k]            left A[i, k], right B[k, j] * w[k], and so on: any factor may be the left one
    (x[i, k] - y[j, k]) ** 2            left x[i, k], right y[j, k]; the term is (left - right) ** 2
    2 * (x[i, k] - y[j, k]) * g[i, j]   left g[i, j], right y[j, k], summed over j; the term is (x[i, k] - right) * left
                                        and the sum is multiplied by 2

In the gradient of a convolution with strides, whose factors are at ``z - 2*x`` and at ``x``, cells are counted as
``z = 2*q + p`` and ``x = q - m``. Then one factor is at ``2*m + p`` and the other at ``q - m``, which is a convolution
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial, reduce

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, constant, in_range, index, integer
from tcdsl.ir.domain import Domain
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
    is_affine_index,
    reads,
    substitute,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Statement, map_statement
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.polyhedra.affine import condition_set, substituted
from tcdsl.polyhedra.linear import linear_form, normalized
from tcdsl.polyhedra.spaces import parameter_names

__all__ = [
    "TermOfFactors",
    "apart_from_products",
    "factors_of",
    "in_phases",
    "is_simple",
    "product_term",
    "term_of",
    "terms_of",
]

_TYPES = frozenset(("float32", "float64", "int32", "int64"))
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
    return _unfit(factor, _IN_FACTORS) is None


@dataclass(frozen=True, slots=True)
class TermOfFactors:
    """How a term is made of a ``left`` and a ``right`` factor (`term_of`), and what the sum of all is scaled by."""

    left: Expr
    right: Expr
    term: Expr
    scale: Expr


def apart_from_products(statement: Statement, tensors: Declarations) -> Declined | None:
    """Why a statement is no contraction, before isl is asked; None if it may be one."""
    tensor, value = tensors[statement.target.tensor], statement.value
    if statement.accumulate not in ("add", "subtract"):
        return Declined("{} does not add terms up", (ACCUMULATORS[statement.accumulate].symbol,))
    if statement.condition is not None:
        return Declined("{} says which terms there are, which no bounds of loops can", (statement.condition,))
    cells = [axis.name for axis in statement.target.indices if isinstance(axis, IndexValue)]
    if statement.unique or len(set(cells)) < len(statement.target.indices):
        return Declined("its cells are not at one variable for each axis")
    if {tensor.dtype, value.dtype} - _TYPES or tensor.dtype != value.dtype:
        return Declined("terms of {} that add to {} are made one by one", (value.dtype, tensor.dtype))
    if len(statement.domain.variables) < 3:
        return Declined("each cell of {} is used once, so that memory says how fast it is", tuple(_largest(value)))
    terms = terms_of(value, set(cells))
    return terms if isinstance(terms, Declined) else None


def _largest(value: Expr) -> Iterator[Expr]:
    yield max(reads(value), key=lambda read: len(index_variables(read)), default=value)


def terms_of(value: Expr, cells: Set[str]) -> list[TermOfFactors] | Declined:
    """How terms with such a ``value`` may be made of two factors; the target has the variables ``cells``.

    Products of all that is multiplied come first. Others have two factors that are read, and may read besides what is
    the same for all terms of a cell.
    """
    factors, one = factors_of(value), _product((), value.dtype)
    made: list[TermOfFactors] = []
    apart = factors if len(factors) > 1 else ()
    unfit = next((each for factor in apart if (each := _unfit(factor, _IN_FACTORS)) is not None), None)
    if apart and unfit is None:
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
    other = _unfit(inside, _IN_TERMS) if len(both) == 2 else Declined("{} is no product of two factors", (value,))
    if other is None and any(each.dtype != value.dtype for each in every):
        other = Declined("the factors of {} have several types", (value,))
    if other is not None:
        return made or (other if unfit is None else unfit)
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


def _unfit(expr: Expr, primitives: Set[str]) -> Declined | None:
    # What keeps ``expr`` from being made of a few reads by a few ``primitives``.
    for count, part in enumerate(_parts(expr, primitives)):
        if part is not None:
            return part
        if count == _PARTS:
            return Declined("{} has more than {} parts", (expr, _PARTS))
    return None


def _parts(expr: Expr, primitives: Set[str]) -> Iterator[Declined | None]:
    # One for each read and operation, and what is something else.
    match expr:
        case Read(indices=indices):
            axis = next((axis for axis in indices if not is_affine_index(axis)), None)
            yield None if axis is None else _found_by(axis, expr)
        case Constant():
            pass
        case Cast(operand=Read() as operand):
            yield None
            yield from _parts(operand, primitives)
        case Apply(primitive=primitive, arguments=arguments) if primitive in primitives:
            yield None
            for argument in arguments:
                yield from _parts(argument, primitives)
        case _:
            yield Declined("{} takes more than additions and multiplications of what is read", (expr,))


def _found_by(axis: Expr, expr: Expr) -> Declined:
    if any(True for _ in reads(axis)):
        return Declined("data say where {} is", (expr,))
    return Declined("{} is not affine in {}", (expr, index(min(index_variables(axis), default=""))))


def in_phases(statement: Statement, factors: Sequence[Expr], tensors: Declarations) -> tuple[Statement, dict[str, int]]:
    """The statement with its cells counted in steps where a factor is at ``z - 2*x`` and the other one at ``x``.

    Then ``z = 2*q + p`` and ``x = q - m``, for phases p of 0 and 1: the factors are at ``2*m + p`` and at ``q - m``.
    """
    match factors:
        case (Read() as one, Read() as other):
            pass
        case _:
            return statement, {}
    points, variables = statement.domain.set, statement.domain.variables
    cells = frozenset().union(*map(index_variables, statement.target.indices))
    names = FreshNames((*variables, *parameter_names(points)))
    values: dict[Expr, Expr] = {}
    made: dict[str, tuple[str, ...]] = {}
    phases: dict[str, int] = {}
    for own, its in ((one, other), (other, one)):
        for axis, extent in zip(own.indices, tensors[own.tensor].shape, strict=True):
            terms = {atom.name: scale for atom, scale in linear_form(axis)[0].items() if isinstance(atom, IndexValue)}
            found = [
                (cell, back, -terms[back] * terms[cell]) for cell in terms for back in terms if cell in cells - {back}
            ]
            for cell, back, step in found:
                if back in cells or step < 2 or abs(terms[cell]) != 1 or {index(cell), index(back)} & values.keys():
                    continue
                if not _is_window(extent, _extents(its, back, tensors), tensors[statement.target.tensor].shape):
                    continue
                q, p, m = (names.fresh(f"{cell}_{title}") for title in ("step", "phase", "back"))
                values[index(cell)] = apply("add", apply("mul", integer(step), index(q)), index(p))
                values[index(back)] = apply("sub", index(q), index(m))
                made |= {cell: (q, p), back: (m,)}
                phases[p] = step
    if not phases:
        return statement, {}
    order = [name for each in variables for name in made.get(each, (each,))]
    inside = substituted(points, values, order)
    for p, step in phases.items():
        inside = inside.intersect(condition_set(in_range(index(p), integer(step)), inside))
    # A domain of its own also where phases leave it as it is.
    form = map_statement(statement, lambda expr: normalized(substitute(expr, values)))
    return replace(form, domain=Domain.from_set(inside)), phases


def _extents(read: Read, name: str, tensors: Declarations) -> list[Expr]:
    shape = tensors[read.tensor].shape
    return [extent for axis, extent in zip(read.indices, shape, strict=True) if name in index_variables(axis)]


def _is_window(extent: Expr, others: Sequence[Expr], cells: Sequence[Expr]) -> bool:
    # Whether a factor with such an axis is the window over one that has the others. With dilation, where a window x is
    # read beside an image z - 2*x, there are no phases.
    def simple(axis: Expr) -> tuple[int, int]:
        if isinstance(axis, Constant):
            return 0, int(axis.value)
        return (1 if isinstance(axis, SizeValue) and axis not in cells else 2), 0

    return bool(others) and all(simple(extent) <= simple(other) for other in others)
