"""Factors of contractions copied with zeros around (`tcdsl.lowering.loopir.contraction`).

Where a convolution leaves out the terms that its window has outside of the image, its rows are not a box. Then the left
factor is copied first, with zeros around, and there are no such terms::

    O[x] += I[x + r - 1] * W[r], 0 <= x + r - 1 < N     padded[u] = I[u - 1], or 0;  O[x] += padded[x + r] * W[r]

The statement keeps its domain, since zeros are no such terms beside infinite factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import islpy as isl

from tcdsl.ir.build import apply, constant, in_range, index, integer, plain_read, product_of
from tcdsl.ir.expressions import Boundary, Expr, IndexValue, Read
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Program, Statement, Tensor
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.loopir.contraction import (
    SumOfProducts,
    box_of,
    is_plain,
    is_sum_of_products,
    may_hold,
    points_of,
    sides_of,
    ways_of,
)
from tcdsl.lowering.loopir.factors import factors_of
from tcdsl.lowering.loopir.kinds import EqualStatements, Renaming
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.linear import linear_form, normalized

__all__ = ["padded"]

# Of so many terms in tiles one is such of a plain loop, which takes as long as many.
_SPARSE = 16


def padded(program: Program, context: isl.Set, names: FreshNames) -> tuple[Program, dict[str, Expr]]:
    """``program`` with copies of factors that have zeros around; what these are called, each with the condition that
    few of its cells are such zeros.
    """
    tensors: Declarations = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    statements: list[Statement] = []
    made: dict[_Padding, str] = {}
    for statement in program.statements:
        found = _PADDINGS.of(statement, tensors, context) if is_sum_of_products(statement, tensors) else None
        if found is not None:
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
    def of(found: SumOfProducts, tensors: Declarations, context: isl.Set) -> _Padding | None:
        """What the left factor needs; None where the points that are left out are not those outside of it."""
        left, statement = found.left, found.statement
        assert isinstance(left, Read)
        spans = {span.variable: span for span in (*found.outer, *found.rows, found.lane, *found.summed)}
        boundaries = left.boundaries
        if found.guards:
            if not is_plain(left):
                return None
            shape = tensors[left.tensor].shape
            points = points_of(statement, context, shape)
            variables = statement.domain.variables
            inside = box_of(variables, sides_of(variables, points, found.phases))
            for axis, extent in zip(left.indices, shape, strict=True):
                try:
                    inside = inside.intersect(condition_set(in_range(axis, extent), inside))
                except NotAffine:
                    return None
            if not inside.is_subset(points):
                return None
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


def _found_padding(statement: Statement, tensors: Declarations, context: isl.Set) -> tuple[_Padding, int] | None:
    # The padding that pays, and of which factor.
    for each in ways_of(statement, tensors, context):
        if not each.guards and is_plain(each.left):
            return None
        left = each.left
        if not (isinstance(left, Read) and each.is_product and set(left.boundaries) <= {Boundary.SKIP, Boundary.FILL}):
            continue
        padding = _Padding.of(each, tensors, context)
        if padding is not None and may_hold(padding.is_dense(tensors)):
            return padding, factors_of(each.statement.value).index(left)
    return None


def _renamed_padding(
    found: tuple[_Padding, int] | None, statement: Statement, tensors: Declarations, names: Renaming
) -> tuple[_Padding, int] | None:
    return None if found is None else (found[0].renamed(names), found[1])


_PADDINGS = EqualStatements(_found_padding, _renamed_padding)
