"""Statements prepared for tiles (`tcdsl.lowering.loopir.contraction`): products apart, factors made, zeros around.

The sum of several products, as in the gradient of ``A @ A``, is as many statements. A factor that takes more than a few
additions and multiplications is made once for all terms::

    d[i, k] += s[i, j] * A[k, j] + s[j, k] * A[j, i]     d[i, k] += s[i, j] * A[k, j];  d[i, k] += s[j, k] * A[j, i]
    C[i, j] += relu(A[i, k]) * B[k, j]     factor[i, k] = relu(A[i, k]);  C[i, j] += factor[i, k] * B[k, j]

Where a convolution leaves out the terms that its window has outside of the image, its rows are not a box. Then the left
factor is copied first, with zeros around, and there are no such terms::

    O[x] += I[x + r - 1] * W[r], 0 <= x + r - 1 < N     padded[u] = I[u - 1], or 0;  O[x] += padded[x + r] * W[r]

The statement keeps its domain, since zeros are no such terms beside infinite factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

import islpy as isl

from tcdsl.ir.build import apply, constant, in_range, index, integer, plain_read, product_of
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    children,
    index_variables,
    reads,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Access, Keep, Neutral, Program, Statement, Tensor
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.loopir.contraction import (
    SumOfProducts,
    is_plain,
    may_hold,
    points_of,
    ways_of,
)
from tcdsl.lowering.loopir.factors import apart_from_products, factors_of, is_simple
from tcdsl.lowering.loopir.kinds import EqualStatements, Renaming
from tcdsl.lowering.loopir.machine import SERIAL_WORK
from tcdsl.lowering.program_passes.schedule import constant_length
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.boxes import bounds, box_of, over_box, sides_of
from tcdsl.polyhedra.linear import has_cases, linear_form, normalized
from tcdsl.polyhedra.spaces import arranged
from tcdsl.rewrite.statement_kinds import with_names

__all__ = ["padded", "separated"]

# Of so many terms in tiles one is such of a plain loop, which takes as long as many.
_SPARSE = 16

_MOST_PRODUCTS = 4
"""Statements that one becomes at most."""


def separated(program: Program, context: isl.Set, names: FreshNames, declined: dict[str, Declined]) -> Program:
    """``program`` with a statement for each product of a sum, and for each factor, where tiles may pay.

    Why sums of several products stay as they are is ``declined`` for their targets.
    """
    tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    known = len(tensors)
    statements: list[Statement] = []
    for statement in [each for gated in program.statements for each in _ungated(gated, tensors, context, names)]:
        products = _products(statement, tensors, context, names)
        if isinstance(products, Declined):
            declined[statement.target.tensor], products = products, None
        *others, last = products or [statement]
        target, start = tensors[statement.target.tensor], statement.start
        for each in (*others, last):
            if each.target != statement.target:
                statements.append(each)  # a factor
                continue
            name = target.name
            if each is not last:
                name = names.fresh(name)
                tensors[name] = replace(target, name=name, label=target.label or target.name)
            statements.append(replace(each, target=replace(each.target, tensor=name), start=start))
            start = Keep(name)
    made = tuple(tensors.values())[known:]
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *made)) if made else program


def _ungated(statement: Statement, tensors: dict[str, Tensor], context: isl.Set, names: FreshNames) -> list[Statement]:
    """``d[i, k] += where(c[i, k], s[i, j] * B[k, j], 0)`` as a sum and what asks of it, where tiles may pay."""
    match statement.value:
        case Apply(primitive="where", arguments=(asked, term, other)) if other == constant(0, term.dtype):
            pass
        case Apply(primitive="relu_gate" | "sat01_gate", arguments=(asked, term)):
            pass
        case _:
            return [statement]
    cells = [axis.name for axis in statement.target.indices if isinstance(axis, IndexValue)]
    plain = len(set(cells)) == len(statement.target.indices) and statement.accumulate in ("add", "subtract")
    if not plain or not _may_be_large(statement) or statement.condition is not None or statement.unique:
        return [statement]
    if not index_variables(asked) <= set(cells) or any(map(_is_open, walk(statement.value))):
        return [statement]
    target = tensors[statement.target.tensor]
    own = replace(target, name=names.fresh(target.name), label=target.label or target.name)
    place = replace(statement.target, tensor=own.name)
    inner = replace(statement, target=place, accumulate="add", start=Neutral(), value=term)
    known = {**tensors, own.name: own}
    if not _products(inner, dict(known), context, names) and not ways_of(inner, known, context):
        return [statement]
    total = plain_read(own.name, statement.target.indices, term.dtype)
    assert isinstance(statement.value, Apply)
    arguments = tuple(total if each is term else each for each in children(statement.value))
    value = replace(statement.value, arguments=arguments)
    asks = replace(statement, value=value, domain=Domain.from_set(arranged(statement.domain.set, cells)))
    if can_fail(asks, known):
        return [statement]
    tensors[own.name] = own
    return [inner, asks]


def _products(
    statement: Statement, tensors: dict[str, Tensor], context: isl.Set, names: FreshNames
) -> list[Statement] | Declined | None:
    """What adds each product, all with the target and the start of ``statement``, with factors before; nothing if tiles
    pay for none, or why not if there are several. New tensors go to ``tensors``.
    """
    opposite = {"add": "subtract", "subtract": "add"}
    if statement.accumulate not in opposite or not _may_be_large(statement) or statement.condition is not None:
        return None
    terms = _terms(statement.value)
    if len(terms) > _MOST_PRODUCTS:
        return Declined("it adds {} products, {} at most are statements of their own", (len(terms), _MOST_PRODUCTS))
    known, out = dict(tensors), list[Statement]()
    for term, plus in terms:
        factors = [_factor(each, statement, known, context, names, out) for each in factors_of(term)]
        accumulate = statement.accumulate if plus else opposite[statement.accumulate]
        each = replace(statement, value=reduce(partial(apply, "mul"), factors), accumulate=accumulate)
        ways = ways_of(each, known, context)
        if isinstance(ways, Declined):
            return ways if len(terms) > 1 else None
        out.append(each)
    tensors.update(known)
    return out


def _factor(
    factor: Expr,
    statement: Statement,
    tensors: dict[str, Tensor],
    context: isl.Set,
    names: FreshNames,
    out: list[Statement],
) -> Expr:
    """A factor of ``statement``, or what reads it where it is made once for all terms, by a statement of ``out``."""
    variables = index_variables(factor) & set(statement.domain.variables)
    if is_simple(factor) or len(variables) == len(statement.domain.variables) or any(map(_is_open, walk(factor))):
        return factor
    # As it is read for the most part, so that nothing is transposed twice.
    places = max((read.indices for read in reads(factor)), key=len, default=())
    along = [name for axis in places for name in sorted(index_variables(axis) & variables)]
    order = list(dict.fromkeys((*sorted(variables - {*along}), *along)))
    points = arranged(points_of(statement, context), order)
    lows, extents = bounds(points, len(order))
    if any(map(has_cases, (*lows, *extents))):
        return factor
    whole = box_of(order, sides_of(order, points, frozenset())) if order else points
    name = names.fresh("factor")
    cell = tuple(normalized(apply("sub", index(each), low)) for each, low in zip(order, lows, strict=True))
    target = Access(name, cell)
    made = Statement(target, "assign", Neutral(), factor, Domain.from_set(points), span=statement.span)
    if not whole.is_subset(points) or can_fail(made, tensors):
        return factor
    tensors[name] = Tensor(name, factor.dtype, tuple(extents))
    out.append(made)
    return plain_read(name, cell, factor.dtype)


def _may_be_large(statement: Statement) -> bool:
    # Little work has no tiles.
    variables = statement.domain.variables
    lengths = [constant_length(statement, name) for name in variables]
    points = None if None in lengths else prod(length for length in lengths if length is not None)
    return len(variables) >= 3 and (points is None or points >= SERIAL_WORK)


def _is_open(part: Expr) -> bool:
    # What is named around the factor is not known beside it.
    return isinstance(part, Let | Local)


def _terms(value: Expr) -> list[tuple[Expr, bool]]:
    # What is added up, and what is taken away.
    match value:
        case Apply(primitive="add", arguments=(one, other)):
            return [*_terms(one), *_terms(other)]
        case Apply(primitive="sub", arguments=(one, other)):
            return [*_terms(one), *((term, not plus) for term, plus in _terms(other))]
        case Apply(primitive="neg", arguments=(one,)):
            return [(term, not plus) for term, plus in _terms(one)]
        case _:
            return [(value, True)]


def padded(
    program: Program, context: isl.Set, names: FreshNames, declined: dict[str, Declined]
) -> tuple[Program, dict[str, Expr]]:
    """``program`` with copies of factors that have zeros around; what these are called, each with the condition that
    few of its cells are such zeros. Why others cannot have them is ``declined`` for the targets of statements.
    """
    tensors: Declarations = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    statements: list[Statement] = []
    made: dict[_Padding, str] = {}
    for statement in program.statements:
        apart = apart_from_products(statement, tensors)
        found = _PADDINGS.of(statement, tensors, context) if apart is None else None
        if isinstance(found, Declined):
            declined[statement.target.tensor] = found
        elif found is not None:
            padding, place = found
            if padding not in made:
                copy, own = padding.statement(tensors, names)
                made[padding] = own.name
                tensors[own.name] = own
                statements.append(replace(copy, span=statement.span))
            statement = replace(statement, value=padding.value(factors_of(statement.value), place, made[padding]))
        statements.append(statement)
    if not made:
        return program, {}
    dense = {name: padding.is_dense(tensors) for padding, name in made.items()}
    declared = tuple(tensors[name] for name in dense)
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *declared)), dense


@dataclass(frozen=True, slots=True)
class _Padding:
    """A copy of a tensor from the cell ``lows`` on, which may be outside, with the ``extents``."""

    tensor: str
    lows: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    boundaries: tuple[Boundary, ...]
    fill: Expr | None
    dtype: str

    @staticmethod
    def of(found: SumOfProducts, tensors: Declarations, context: isl.Set) -> _Padding | Declined:
        """What the left factor needs, or that the points that are left out are not those outside of it."""
        left, statement = found.left, found.statement
        assert isinstance(left, Read)
        spans = {span.variable: span for span in (*found.outer, *found.rows, found.lane, *found.summed)}
        boundaries = left.boundaries
        if found.guards:
            if not is_plain(left):
                return Declined("what is read beyond the ends of {} is not 0", (left,))
            shape = tensors[left.tensor].shape
            points = points_of(statement, context, shape)
            variables = statement.domain.variables
            inside = box_of(variables, sides_of(variables, points, found.phases))
            for axis, extent in zip(left.indices, shape, strict=True):
                try:
                    inside = inside.intersect(condition_set(in_range(axis, extent), inside))
                except NotAffine:
                    return Declined("data say where {} is", (left,))
            if not inside.is_subset(points):
                return Declined("conditions leave out terms for which {} has cells", (left,))
            boundaries = (Boundary.FILL,) * len(shape)
        lows, extents = [], []
        for axis in left.indices:
            terms, offset = linear_form(axis)
            low: Expr = integer(offset)
            length: Expr = integer(1)
            for atom, scale in terms.items():
                if not isinstance(atom, IndexValue):
                    low = apply("add", low, apply("mul", integer(scale), atom))
                    continue
                span = spans[atom.name]
                reach = apply("mul", integer(abs(scale)), apply("sub", span.most, integer(1)))
                low = apply("add", low, apply("mul", integer(scale), span.least))
                low = apply("sub", low, reach) if scale < 0 else low
                length = apply("add", length, reach)
            lows.append(normalized(low))
            extents.append(normalized(length))
        fill = constant(0, left.dtype) if found.guards else left.fill
        return _Padding(left.tensor, tuple(lows), tuple(extents), boundaries, fill, left.dtype)

    def renamed(self, names: Renaming) -> _Padding:
        """The same of the tensor that has another name."""
        return replace(self, tensor=names["buffer", self.tensor])

    def is_dense(self, tensors: Declarations) -> Expr:
        """The condition that not nearly all cells are outside of the tensor."""
        inside = apply("mul", integer(_SPARSE), product_of(tensors[self.tensor].shape))
        return apply("le", product_of(self.extents), inside)

    def statement(self, tensors: Declarations, names: FreshNames) -> tuple[Statement, Tensor]:
        """The statement that copies, and what it makes."""
        tensor = tensors[self.tensor]
        name = names.fresh(f"{tensor.name}_padded")
        own = replace(tensor, name=name, shape=self.extents, label=tensor.label or tensor.name)
        cells = [names.shared(f"c{axis}") for axis in range(len(self.lows))]
        places = tuple(normalized(apply("add", index(c), low)) for c, low in zip(cells, self.lows, strict=True))
        value = Read(self.tensor, places, self.boundaries, self.dtype, self.fill)
        return over_box(name, cells, self.extents, value), own

    def value(self, factors: Sequence[Expr], place: int, name: str) -> Expr:
        """The product of ``factors`` with the copy in place of one."""
        left = factors[place]
        assert isinstance(left, Read)
        places = (normalized(apply("sub", axis, low)) for axis, low in zip(left.indices, self.lows, strict=True))
        copied = plain_read(name, places, left.dtype)
        return reduce(partial(apply, "mul"), (*factors[:place], copied, *factors[place + 1 :]))


def _found_padding(
    statement: Statement, tensors: Declarations, context: isl.Set
) -> tuple[_Padding, int] | Declined | None:
    # The padding that pays, and of which factor, or why there is none; nothing where none is needed.
    apart: Declined | None = None
    for each in ways_of(statement, tensors, context) or ():
        if each.limits:
            continue
        if not each.guards and is_plain(each.left):
            return None
        left = each.left
        if not (isinstance(left, Read) and each.is_product and set(left.boundaries) <= {Boundary.SKIP, Boundary.FILL}):
            why = (
                "what is read beyond the ends of {} is not 0" if isinstance(left, Read) else "{} is computed, not read"
            )
            apart = Declined(why, (left,))
            continue
        padding = _Padding.of(each, tensors, context)
        if isinstance(padding, Declined):
            apart = padding if each.unlimited is None else each.unlimited
        elif may_hold(padding.is_dense(tensors)):
            return padding, factors_of(each.statement.value).index(left)
        else:
            apart = Declined("{} would hardly have anything but zeros around", (left,))
    return apart


def _renamed_padding(
    found: tuple[_Padding, int] | Declined | None, statement: Statement, tensors: Declarations, names: Renaming
) -> tuple[_Padding, int] | Declined | None:
    if isinstance(found, Declined):
        return with_names((found,), names)[0]
    return None if found is None else (found[0].renamed(names), found[1])


_PADDINGS = EqualStatements(_found_padding, _renamed_padding)
