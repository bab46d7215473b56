"""Which cells of each tensor a box of a statement's target is made of: boxes around the images of isl relations.

::

    regions = StatementRegions(statement, program, sizes)     # y[i] = x[i - 1] + x[i + 1], sizes {"N": 1000}
    regions.of(((0, 100),))                                   # (((0, 99),), ((2, 101),)): one box for each read

A box has a begin and an end for each axis. An index that is data, or that isl cannot speak of, reaches a whole axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import islpy as isl

from tcdsl.ir.boundaries import moved_index
from tcdsl.ir.build import apply, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Boundary, Expr, IndexValue, Read, SizeValue, is_affine_index, substitute
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Access, Keep, Program, Statement, Tensor, statement_reads
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.ir.sizes.size_code import SizeCode
from tcdsl.polyhedra.affine import (
    NotAffine,
    condition_set,
    expression_of,
    expression_of_condition,
    function_of,
    knowing,
    universe,
)
from tcdsl.polyhedra.boxes import box as box_of_cells
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.scatter_to_gather import target_variables
from tcdsl.polyhedra.spaces import at_sizes, constant_range
from tcdsl.polyhedra.writes import cell_map

__all__ = [
    "MOVED",
    "TYPICAL",
    "Box",
    "StatementRegions",
    "expressions_of_box",
    "has_no_data",
    "input_relations",
    "shape_of",
]

Box = tuple[tuple[int, int], ...]

#: Boundaries that find cells at the other end of an axis: regions go on beyond the ends, as if the axis did.
MOVED = frozenset((Boundary.WRAP, Boundary.REFLECT, Boundary.SYMMETRIC))

#: How long the blocks are that `expressions_of_box` speaks of: shorter ones may lie between the cells of a stride.
TYPICAL = 8


def shape_of(tensor: Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of a tensor."""
    return tuple([evaluate_size(extent, sizes) for extent in tensor.shape])


def has_no_data(index: Expr) -> bool:
    """Whether an index is made of variables and sizes alone, also where data have become a constant."""
    return index.dtype != INTEGER and is_affine_index(index)


class StatementRegions:
    """The regions of one statement: see the top of this file.

    Boxes have, behind the axes of the target, begin and end of each of the variables ``cuts``.
    """

    def __init__(
        self, statement: Statement, program: Program, sizes: Mapping[str, int], cuts: Sequence[str] = ()
    ) -> None:
        constants: dict[Expr, Expr] = {SizeValue(name): integer(value) for name, value in sizes.items()}

        def numbered(indices: Sequence[Expr]) -> tuple[Expr, ...]:
            # Data stay data, also where a number makes them a constant.
            return tuple([substitute(each, constants) if has_no_data(each) else each for each in indices])

        self.points = at_sizes(statement.domain.set, sizes)
        #: The statement, of which the target has numbers for its sizes.
        self.statement = replace(
            statement,
            target=replace(statement.target, indices=numbered(statement.target.indices)),
            domain=Domain.from_set(self.points),
        )
        # The reads as they stand in the program, and with numbers.
        self.reads = tuple(dict.fromkeys(statement_reads(statement)))
        self._numbered = {read: replace(read, indices=numbered(read.indices)) for read in self.reads}
        tensors = (statement.target.tensor, *[read.tensor for read in self.reads])
        #: The extents of the target and of what is read.
        self.shapes = {name: shape_of(program.tensor(name), sizes) for name in tensors}
        self._cuts = tuple(cuts)

    def concrete(self, read: Read) -> Read:
        """A read of the statement with numbers for its sizes."""
        return self._numbered[read]

    def is_affine(self, index: Expr) -> bool:
        """Whether isl can speak of an index, with numbers for its sizes, at all points of the statement."""
        return _is_affine(index, self.points)

    def affine_axes(self, read: Read) -> tuple[bool, ...]:
        """For each axis of a read of the statement, whether isl can speak of its index."""
        return tuple(map(self.is_affine, self.concrete(read).indices))

    @cached_property
    def summed(self) -> Mapping[str, range]:
        """The variables that the cell of the target leaves open, each from its first to its last value."""
        determined = target_variables(self.statement)
        names = [name for name in self.statement.domain.variables if name not in determined]
        return {name: constant_range(self.points, name) or range(0) for name in names}

    def of(self, box: Box) -> tuple[Box | None, ...] | None:
        """A box for each of ``reads``, None for those that find no cell; None if the statement has no point there."""
        found: tuple[Box | None, ...] | None = self._computed(*[end for ends in box for end in ends])
        return found

    @cached_property
    def _computed(self) -> Callable[..., Any]:
        indices = (*self.statement.target.indices, *map(IndexValue, self._cuts))
        ends = [(f"low'{k}", f"high'{k}") for k in range(len(indices))]
        points = self.points
        for index, (low, high) in zip(indices, ends, strict=True):
            if self.is_affine(index):
                points = _between(points, index, SizeValue(low), SizeValue(high))
        code = SizeCode([name for pair in ends for name in pair])
        boxes = "".join(f"{self._box_text(code, points, self.concrete(read))}, " for read in self.reads)
        return code.function(f"({boxes}) if {code.value(expression_of_condition(points.params()))} else None")

    def _box_text(self, code: SizeCode, points: isl.Set, read: Read) -> str:
        # The box of the cells that a read finds, as text of Python.
        each = zip(read.indices, read.boundaries, self.shapes[read.tensor], strict=True)
        lines = [_axis_map(points, *axis, goes_on=True).range() for axis in each]
        # The end of nothing is not asked for.
        axes = [
            [code.value(expression_of(end)) if end.n_piece() else "0" for end in (line.dim_min(0), line.dim_max(0))]
            for line in lines
        ]
        text = f"({''.join(f'({first}, {last} + 1), ' for first, last in axes)})"
        conditions = [code.value(expression_of_condition(line.params())) for line in lines]
        return f"({text} if {' and '.join(conditions)} else None)" if conditions else text

    def cells(self, access: Access | Read, goes_on: bool = False) -> isl.Map:
        """The cells that each point accesses, with numbers for sizes; see `MOVED` for ``goes_on``."""
        boundaries = access.boundaries if isinstance(access, Read) else (Boundary.CHECK,) * len(access.indices)
        each = zip(access.indices, boundaries, self.shapes[access.tensor], strict=True)
        axes = [_axis_map(self.points, *axis, goes_on=goes_on) for axis in each]
        return reduce(isl.Map.flat_range_product, axes, isl.Map.from_domain(self.points.reset_tuple_id()))


def _is_affine(index: Expr, points: isl.Set) -> bool:
    if not has_no_data(index):
        return False
    try:
        function_of(index, points)
    except NotAffine:
        return False
    return True


def _axis_map(points: isl.Set, index: Expr, boundary: Boundary, extent: int, goes_on: bool) -> isl.Map:
    # The cells of an axis that an index finds: any, if isl cannot speak of it.
    line = box_of_cells(("z",), (integer(extent),)).reset_tuple_id()
    if not _is_affine(index, points):
        return isl.Map.from_domain_and_range(points.reset_tuple_id(), line)
    if goes_on and boundary in MOVED:
        return cell_map(points, (index,))
    return cell_map(points, (moved_index(index, integer(extent), boundary),)).intersect_range(line)


def _between(points: isl.Set, index: Expr, low: Expr, high: Expr) -> isl.Set:
    inside = (condition_set(apply("ge", index, low), points), condition_set(apply("lt", index, high), points))
    return reduce(isl.Set.intersect, inside, points)


# -- through all statements


def input_relations(program: Program, sizes: Mapping[str, int], output: str) -> dict[str, isl.Map]:
    """For each input that ``output`` depends on, which of its cells each cell of the output is made of.

    Where a boundary goes on at the other end of an input the relation goes on beyond this end, as `MOVED` says.
    """
    inputs = {tensor.name for tensor in program.inputs}
    shape = shape_of(program.tensor(output), sizes)
    whole = box_of_cells([f"z{k}" for k in range(len(shape))], list(map(integer, shape))).reset_tuple_id()
    found: dict[str, isl.Map] = {output: isl.Map.identity(whole.get_space().map_from_set()).intersect_domain(whole)}
    for statement in reversed(program.statements):
        beyond = found.pop(statement.target.tensor, None)
        if beyond is None:
            continue
        regions = StatementRegions(statement, program, sizes)
        points = beyond.apply_range(regions.cells(regions.statement.target).reverse())
        made = [
            (read.tensor, points.apply_range(regions.cells(regions.concrete(read), goes_on=read.tensor in inputs)))
            for read in regions.reads
        ]
        if isinstance(statement.start, Keep):
            made.append((statement.start.tensor, beyond))
        for tensor, relation in made:
            found[tensor] = relation.union(found[tensor]).coalesce() if tensor in found else relation
    return found


def expressions_of_box(
    relation: isl.Map, shape: Sequence[int], names: Sequence[tuple[str, str]]
) -> list[tuple[Expr, Expr]]:
    """Begin and end of each axis of what a box of a result needs, which is `TYPICAL` or more cells long.

    ``relation`` is one of `input_relations` for a result of that ``shape``; ``names`` are begin and end of the box.
    """
    places = [f"z{k}" for k in range(len(names))]
    block = box_of_cells(places, list(map(integer, shape)))
    context = universe((), ())
    for place, (low, high), extent in zip(places, names, shape, strict=True):
        block = _between(block, IndexValue(place), SizeValue(low), SizeValue(high))
        least = apply("add", SizeValue(low), integer(min(extent, TYPICAL)))
        for fact in (
            apply("ge", SizeValue(low), integer(0)),
            apply("le", least, SizeValue(high)),
            apply("le", SizeValue(high), integer(extent)),
        ):
            context = knowing(context, fact)
    needed = relation.intersect_domain(block.reset_tuple_id()).range().intersect_params(context)
    return [
        (
            _as_extreme(needed.dim_min(k).coalesce(), context),
            _plus_one(_as_extreme(needed.dim_max(k).coalesce(), context)),
        )
        for k in range(needed.dim(isl.dim_type.set))
    ]


def _as_extreme(function: isl.PwAff, context: isl.Set) -> Expr:
    # A maximum or a minimum of the pieces, if it is one.
    function = function.gist_params(context)
    inside = function.intersect_params(context)
    pieces = [isl.PwAff.from_aff(piece) for _, piece in function.get_pieces()]
    for name in ("max", "min") if len(pieces) > 1 else ():
        extreme = reduce(lambda one, other: getattr(one, name)(other), pieces)
        if extreme.intersect_domain(inside.domain()).is_equal(inside):
            expressions = dict.fromkeys(normalized(expression_of(piece)) for piece in pieces)
            return reduce(lambda one, other: apply(name, one, other), expressions)
    return normalized(expression_of(function, context))


def _plus_one(last: Expr) -> Expr:
    if isinstance(last, Apply) and last.primitive in ("max", "min"):
        return apply(last.primitive, *map(_plus_one, last.arguments))
    return normalized(apply("add", last, integer(1)))
