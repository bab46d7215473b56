"""Sums of products of two factors: matrix products, convolutions and their gradients.

A variable of the target is a *row* if it indexes the left factor alone, a *lane* if it indexes the right one alone, and
*around* if it indexes both; all others are *summed*::

    C[b, i, j] += A[b, i, k] * B[b, k, j]            around b, row i, lane j, summed k
    O[n, c, x, y] += I[n, d, x + r, y + s] * W[c, d, r, s]     rows n, x, y, lane c, summed d, r, s

`tcdsl.lowering.nests.contraction_tiles` makes the loops.

Where a convolution leaves out the terms that its window has outside of the image, its rows are not a box. Then the left
factor is copied first, with zeros around, and there are no such terms::

    O[x] += I[x + r - 1] * W[r], 0 <= x + r - 1 < N     padded[u] = I[u - 1], or 0;  O[x] += padded[x + r] * W[r]

The statement keeps its domain, since zeros are no such terms beside infinite factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import islpy as isl

from tcdsl.ir.build import apply, constant, in_range, index, integer, plain_read, product_of, truth
from tcdsl.ir.domain import text_of
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Read,
    SizeValue,
    index_variables,
    is_affine_index,
    size_names,
    transform,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Program, Statement, Tensor
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.polyhedra.affine import NotAffine, condition_set, expression_of, holds
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.linear import linear_form, normalized
from tcdsl.polyhedra.spaces import arranged, has_end, parameter_names
from tcdsl.recent import Recent

__all__ = ["Side", "SumOfProducts", "contraction_of", "padded"]

_TYPES = frozenset(("float32", "float64"))
# Rows and lanes from which panels pay; rows where what they hold is read across memory.
_ROWS, _LANES, _ROWS_ACROSS = 12, 16, 192


@dataclass(frozen=True, slots=True)
class Side:
    """The values ``first .. first + length`` of a variable: a side of the box of all points.

    Positions count from the last one ``down`` where that is the way along the left factor.
    """

    variable: str
    first: Expr
    length: Expr
    down: bool = False

    def at(self, position: Expr) -> Expr:
        """The value at a position, counted from 0."""
        if self.down:
            position = apply("sub", apply("sub", self.length, integer(1)), position)
        return normalized(apply("add", self.first, position))


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """A statement as such a sum: its variables, in the order of loops, and its factors.

    There is one ``lane``; ``others`` could be lanes too. With ``guards`` the statement leaves points of the box out, at
    which the left factor is 0, and ``dense`` is the condition that these are few.
    """

    around: tuple[Side, ...]
    rows: tuple[Side, ...]
    others: tuple[Side, ...]
    lane: Side
    summed: tuple[Side, ...]
    left: Read
    right: Read
    guards: bool
    dense: Expr

    def __str__(self) -> str:
        rows, terms = (" ".join(span.variable for span in spans) for spans in (self.rows, self.summed))
        return f"tiles of {rows} by {self.lane.variable} over {terms}"

    def within(self, values: Mapping[Expr, Expr]) -> SumOfProducts:
        """The same inside of the loops around, whose variables have the ``values``."""
        return self

    @property
    def count_of_rows(self) -> Expr:
        """How many rows there are."""
        return product_of(tuple(span.length for span in self.rows))

    @property
    def outer(self) -> tuple[Side, ...]:
        """The variables whose loops are around a matrix product."""
        return (*self.around, *self.others)

    def is_along(self, side: Side) -> bool:
        """Whether a summed variable goes along the right factor's memory, and the lane across."""
        last = index_variables(self.right.indices[-1]) if self.right.indices else frozenset()
        return side.variable in last and self.lane.variable not in last

    @property
    def pays(self) -> Expr:
        """Whether there are enough rows and lanes for tiles, a condition on sizes."""
        # Plain loops do as well for few rows of a matrix product, but not of a convolution.
        across = len(self.summed) == 1 and self.is_along(*self.summed)
        return apply("and_", self.dense, _enough(self.count_of_rows, self.lane.length, across))


def contraction_of(
    statement: Statement, tensor: Tensor, context: isl.Set, zeros_around: Mapping[str, Expr] = MappingProxyType({})
) -> SumOfProducts | None:
    """The contraction that ``statement``, which writes ``tensor``, is, if it is one that may pay.

    ``zeros_around`` are the tensors that are 0 wherever a statement that reads them has no point, with the condition
    that there are few zeros.
    """
    ways = _ways(statement, tensor, context)
    ways = [each for each in ways if _is_plain(each.left) and (not each.guards or each.left.tensor in zeros_around)]
    found = min(ways, key=lambda each: _rank(each, statement), default=None)
    return replace(found, dense=zeros_around[found.left.tensor]) if found is not None and found.guards else found


def _rank(each: SumOfProducts, statement: Statement) -> tuple[bool, bool]:
    # Lanes that lie side by side in the target are the better ones.
    return len(each.others) > 0, index(each.lane.variable) != statement.target.indices[-1]


def _ways(statement: Statement, tensor: Tensor, context: isl.Set) -> list[SumOfProducts]:
    if statement.accumulate not in ("add", "subtract") or statement.condition is not None or statement.unique:
        return []
    cells = [axis.name for axis in statement.target.indices if isinstance(axis, IndexValue)]
    if len(set(cells)) < len(statement.target.indices) or {tensor.dtype, statement.value.dtype} - _TYPES:
        return []
    match statement.value:
        case Apply(primitive="mul", arguments=(Read() as one, Read() as other)):
            pass
        case _:
            return []
    if tensor.dtype != statement.value.dtype or not all(map(is_affine_index, (*one.indices, *other.indices))):
        return []
    variables = statement.domain.variables
    if len(variables) < 3:
        return []
    extents = dict(zip(cells, tensor.shape, strict=True))
    ways: list[SumOfProducts] = []
    spans: Mapping[str, Side] | None = None
    for left, right in ((one, other), (other, one)):
        mine, its = _variables(left), _variables(right)
        rows = [name for name in cells if name in mine and name not in its]
        lanes = [name for name in cells if name in its and name not in mine]
        around = [name for name in cells if name in mine and name in its]
        summed = [name for name in variables if name not in cells]
        if not rows or not lanes or not summed or not set(variables) <= mine | its or not _is_plain(right):
            continue
        if not _may_hold(_enough(product_of(tuple(extents[name] for name in rows)), extents[lanes[-1]])):
            continue  # Before isl is asked.
        if spans is None:
            points = _points(statement, context)
            if points.is_empty():
                return []
            sides = _sides(variables, points)
            spans = _spans(variables, sides)
            if spans is None:
                return []
            guards = not _box(variables, sides).is_subset(points)
        order = [name for axis in left.indices for name in sorted(index_variables(axis))]
        # Along rows of the left factor last.
        summed.sort(key=lambda name: order.index(name) if name in order else -1)
        others, lane = tuple(spans[name] for name in lanes[:-1]), spans[lanes[-1]]
        outside, inside = tuple(spans[name] for name in around), tuple(spans[name] for name in rows)
        terms = tuple(replace(spans[name], down=_goes_down(left, name)) for name in summed)
        found = SumOfProducts(outside, inside, others, lane, terms, left, right, guards, truth(True))
        if _may_hold(found.pays):
            ways.append(found)
    return ways


def _points(statement: Statement, context: isl.Set, extents: Sequence[Expr] = ()) -> isl.Set:
    # With what is known of the sizes that these, and ``extents``, depend on: isl takes longer for every other one.
    points = arranged(statement.domain.set, statement.domain.variables)
    names = parameter_names(points)
    used = {name for k, name in enumerate(names) if points.involves_dims(isl.dim_type.param, k, 1)}
    used = used.union(*map(size_names, extents))
    if not used:
        return points
    key = text_of(context), frozenset(used)
    known = _KNOWN.get(key)
    if known is None:
        known = context
        for k in reversed(range(known.dim(isl.dim_type.param))):
            if known.get_dim_name(isl.dim_type.param, k) not in used:
                known = known.project_out(isl.dim_type.param, k, 1)
        _KNOWN[key] = known
    return points.align_params(known.get_space()).intersect_params(known)


_KNOWN: Recent[tuple[str, frozenset[str]], isl.Set] = Recent(1000)


def _enough(rows: Expr, lane: Expr, across: bool = False) -> Expr:
    many = apply("ge", rows, integer(_ROWS_ACROSS if across else _ROWS))
    return apply("and_", many, apply("ge", lane, integer(_LANES)))


def _may_hold(condition: Expr) -> bool:
    return not isinstance(condition, Constant) or bool(condition.value)


def _variables(read: Read) -> frozenset[str]:
    return frozenset[str]().union(*map(index_variables, read.indices))


def _goes_down(read: Read, name: str) -> bool:
    scales = [linear_form(axis)[0].get(index(name), 0) for axis in read.indices]
    return any(scale < 0 for scale in scales) and not any(scale > 0 for scale in scales)


def _is_plain(read: Read) -> bool:
    return set(read.boundaries) <= {Boundary.SKIP}


def _spans(variables: Sequence[str], sides: Mapping[str, isl.Set]) -> dict[str, Side] | None:
    spans: dict[str, Side] = {}
    for name in variables:
        line = sides[name]
        if not has_end(line, 0, largest=False) or not has_end(line, 0, largest=True):
            return None
        try:
            first, last = expression_of(line.dim_min(0)), expression_of(line.dim_max(0))
        except NotAffine:
            return None
        length = normalized(apply("add", apply("sub", last, first), integer(1)))
        if not isinstance(length, SizeValue) and not holds(apply("ge", length, integer(0)), line.params()):
            # Of two spans without values the lengths' product could be positive.
            length = apply("max", length, integer(0))
        spans[name] = Side(name, normalized(first), length)
    return spans


def _sides(variables: Sequence[str], points: isl.Set) -> dict[str, isl.Set]:
    """The values of each variable in a box around ``points``: what holds of it alone, if that bounds it."""
    sides: dict[str, isl.Set] = {}
    for k, name in enumerate(variables):
        if points.n_basic_set() == 1:
            alone = points.get_basic_sets()[0].drop_constraints_involving_dims(isl.dim_type.set, 0, k)
            alone = alone.drop_constraints_involving_dims(isl.dim_type.set, k + 1, len(variables) - k - 1)
            side = arranged(isl.Set.from_basic_set(alone), (name,))
            if has_end(side, 0, largest=False) and has_end(side, 0, largest=True):
                sides[name] = side
                continue
        sides[name] = arranged(points, (name,))
    return sides


def _box(variables: Sequence[str], sides: Mapping[str, isl.Set]) -> isl.Set:
    whole = arranged(sides[variables[0]], tuple(variables))
    for name in variables[1:]:
        whole = whole.intersect(arranged(sides[name], tuple(variables)))
    return whole


# -- zeros around factors


def padded(program: Program, context: isl.Set, names: FreshNames) -> tuple[Program, dict[str, Expr]]:
    """``program`` with copies of factors that have zeros around; what these are called, each with the condition that
    few of its cells are such zeros.
    """
    tensors: Declarations = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    statements: list[Statement] = []
    made: dict[_Padding, str] = {}
    for statement in program.statements:
        tensor = tensors[statement.target.tensor]
        for each in sorted(_ways(statement, tensor, context), key=lambda each: _rank(each, statement)):
            if not each.guards and _is_plain(each.left):
                break
            if not set(each.left.boundaries) <= {Boundary.SKIP, Boundary.FILL}:
                continue
            padding = _Padding.of(each, statement, tensors, context)
            if padding is None or not _may_hold(padding.is_dense(tensors)):
                continue
            if padding not in made:
                copy, own = padding.statement(tensors, names)
                made[padding] = own.name
                tensors[own.name] = own
                statements.append(replace(copy, span=statement.span))
            statement = replace(statement, value=padding.value(statement.value, each.left, made[padding]))
            break
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
    def of(found: SumOfProducts, statement: Statement, tensors: Declarations, context: isl.Set) -> _Padding | None:
        """What the left factor needs; None where the points that are left out are not those outside of it."""
        left, variables = found.left, statement.domain.variables
        spans = {span.variable: span for span in (*found.outer, *found.rows, found.lane, *found.summed)}
        boundaries = left.boundaries
        if found.guards:
            if not _is_plain(left):
                return None
            shape = tensors[left.tensor].shape
            points = _points(statement, context, shape)
            inside = _box(variables, _sides(variables, points))
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
                reach = apply("mul", integer(abs(scale)), apply("sub", span.length, integer(1)))
                low = apply("add", low, apply("mul", integer(scale), span.first))
                low = apply("sub", low, reach) if scale < 0 else low
                length = apply("add", length, reach)
            lows.append(normalized(low))
            extents.append(normalized(length))
        fill = constant(0, left.dtype) if found.guards else left.fill
        return _Padding(left.tensor, tuple(lows), tuple(extents), boundaries, fill, left.dtype)

    def is_dense(self, tensors: Declarations) -> Expr:
        """The condition that at most every other cell is outside of the tensor."""
        inside = apply("mul", integer(2), product_of(tensors[self.tensor].shape))
        return apply("le", product_of(self.extents), inside)

    def statement(self, tensors: Declarations, names: FreshNames) -> tuple[Statement, Tensor]:
        """The statement that copies, and what it makes."""
        tensor = tensors[self.tensor]
        name = names.fresh(f"{tensor.name}_padded")
        own = replace(tensor, name=name, shape=self.extents, label=tensor.label or tensor.name)
        cells = [names.fresh("c") for _ in self.lows]
        places = tuple(normalized(apply("add", index(c), low)) for c, low in zip(cells, self.lows, strict=True))
        value = Read(self.tensor, places, self.boundaries, self.dtype, self.fill)
        return over_box(name, cells, self.extents, value), own

    def value(self, value: Expr, left: Read, name: str) -> Expr:
        """``value`` with the copy in place of ``left``."""
        places = (normalized(apply("sub", axis, low)) for axis, low in zip(left.indices, self.lows, strict=True))
        moved = plain_read(name, places, left.dtype)
        return transform(value, lambda expr: moved if expr == left else expr)
