"""Which cells of each tensor a box of a statement's target is made of: boxes around the images of isl relations.

::

    regions = StatementRegions(statement, program, sizes)     # y[i] = x[i - 1] + x[i + 1], sizes {"N": 1000}
    regions.of(((0, 100),))                                   # (((0, 99),), ((2, 101),)): one box for each read

A box has a begin and an end for each axis. An index that is data, or that isl cannot speak of, reaches a whole axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import islpy as isl

from tcdsl.ir.boundaries import moved_index
from tcdsl.ir.build import apply, in_range, integer
from tcdsl.ir.expressions import Boundary, Expr, IndexValue, Read, SizeValue, is_affine_index, substitute
from tcdsl.ir.program import Keep, Program, Statement, Tensor, map_statement, statement_reads
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.ir.sizes.size_code import SizeCode
from tcdsl.polyhedra.affine import NotAffine, condition_set, expression_of, expression_of_condition, function_of
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import arranged, at_sizes, constant_range, named

__all__ = ["MOVED", "Box", "StatementRegions", "expressions_of_box", "input_relations", "is_affine", "shape_of"]

Box = tuple[tuple[int, int], ...]

#: Boundaries that find cells at the other end of an axis: regions go on beyond the ends, as if the axis did.
MOVED = frozenset((Boundary.WRAP, Boundary.REFLECT, Boundary.SYMMETRIC))
_CELL = "cell'"


def shape_of(tensor: Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of a tensor."""
    return tuple([evaluate_size(extent, sizes) for extent in tensor.shape])


def is_affine(index: Expr, points: isl.Set) -> bool:
    """Whether isl can say which cell an index finds at each of ``points``."""
    if not is_affine_index(index):
        return False
    try:
        function_of(index, points)
    except NotAffine:
        return False
    return True


class StatementRegions:
    """The regions of one statement: see the top of this file.

    Boxes have, behind the axes of the target, begin and end of each of the variables ``cuts``.
    """

    def __init__(
        self, statement: Statement, program: Program, sizes: Mapping[str, int], cuts: Sequence[str] = ()
    ) -> None:
        constants: dict[Expr, Expr] = {SizeValue(name): integer(value) for name, value in sizes.items()}
        #: The statement with numbers for its sizes.
        self.statement = map_statement(statement, lambda expr: substitute(expr, constants))
        self.points = at_sizes(statement.domain.set, sizes)
        #: The extents of the target and of what is read.
        self.shapes = {name: shape_of(program.tensor(name), sizes) for name in _tensors(statement)}
        self._cuts = tuple(cuts)
        # The reads as they stand in the program, and with numbers.
        self.reads = tuple(dict.fromkeys(statement_reads(statement)))
        self._numbered = [_with_numbers(read, constants) for read in self.reads]

    def concrete(self, read: Read) -> Read:
        """A read of the statement with numbers for its sizes."""
        return self._numbered[self.reads.index(read)]

    def is_affine(self, index: Expr) -> bool:
        """Whether isl can speak of an index, with numbers for its sizes, at all points of the statement."""
        return is_affine(index, self.points)

    def is_data_free(self, read: Read, axis: int) -> bool:
        """Whether the index of an axis is made of variables and sizes alone."""
        return is_affine_index(self.concrete(read).indices[axis])

    def affine_axes(self, read: Read) -> tuple[bool, ...]:
        """For each axis of a read of the statement, whether isl can speak of its index."""
        return tuple([is_affine(axis, self.points) for axis in self.concrete(read).indices])

    def is_determined(self, name: str) -> bool:
        """Whether the cell that a point writes says what a variable is there."""
        target = self.statement.target
        cells = _cell_map(self, target.indices, None, self.shapes[target.tensor])
        value = isl.Map.from_pw_aff(function_of(IndexValue(name), self.points)).reset_tuple_id(isl.dim_type.in_)
        return bool(cells.reverse().apply_range(value).is_single_valued())

    def variable_range(self, name: str) -> range:
        """From the first to the last value of a variable."""
        return constant_range(self.points, name) or range(0)

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
            if is_affine(index, points):
                inside = (apply("ge", index, SizeValue(low)), apply("lt", index, SizeValue(high)))
                for condition in inside:
                    points = points.intersect(condition_set(condition, points))
        code = SizeCode([name for pair in ends for name in pair])
        boxes = [_box_text(code, points, read, self.shapes[read.tensor]) for read in self._numbered]
        some = code.value(expression_of_condition(points.params()))
        return code.function(f"({''.join(f'{box}, ' for box in boxes)}) if {some} else None")


def _tensors(statement: Statement) -> list[str]:
    return [statement.target.tensor, *[read.tensor for read in statement_reads(statement)]]


def _with_numbers(read: Read, constants: dict[Expr, Expr]) -> Read:
    found = substitute(read, constants)
    assert isinstance(found, Read)
    return found


def _box_text(code: SizeCode, points: isl.Set, read: Read, shape: Sequence[int]) -> str:
    # The box of the cells that a read finds, as text of Python.
    axes, conditions = [], []
    for index, boundary, extent in zip(read.indices, read.boundaries, shape, strict=True):
        if not is_affine(index, points):
            axes.append(f"(0, {extent})")
            continue
        line = _line(points, index)
        if boundary in (Boundary.SKIP, Boundary.CHECK, Boundary.FILL):
            line = line.intersect(condition_set(in_range(IndexValue(_CELL), integer(extent)), line))
        low, high = (_end(code, end) for end in (line.dim_min(0), line.dim_max(0)))
        if boundary is Boundary.CLAMP:
            low, high = (f"min(max({end}, 0), {extent - 1})" for end in (low, high))
        axes.append(f"({low}, {high} + 1)")
        conditions.append(code.value(expression_of_condition(line.params())))
    text = f"({''.join(f'{axis}, ' for axis in axes)})"
    return f"({text} if {' and '.join(conditions)} else None)" if conditions else text


def _end(code: SizeCode, end: isl.PwAff) -> str:
    # The end of nothing is not asked for.
    return "0" if end.n_piece() == 0 else code.value(expression_of(end))


def _line(points: isl.Set, index: Expr) -> isl.Set:
    count = points.dim(isl.dim_type.set)
    wider = points.insert_dims(isl.dim_type.set, count, 1).set_dim_name(isl.dim_type.set, count, _CELL)
    equal = condition_set(apply("eq", IndexValue(_CELL), index), wider)
    return arranged(wider.intersect(equal), (_CELL,))


# -- through all statements


def input_relations(program: Program, sizes: Mapping[str, int], output: str) -> dict[str, isl.Map]:
    """For each input that ``output`` depends on, which of its cells each cell of the output is made of."""
    shape = shape_of(program.tensor(output), sizes)
    cells = _cells(shape)
    found: dict[str, isl.Map] = {output: isl.Map.identity(cells.get_space().map_from_set()).intersect_domain(cells)}
    for statement in reversed(program.statements):
        beyond = found.pop(statement.target.tensor, None)
        if beyond is None:
            continue
        regions = StatementRegions(statement, program, sizes)
        target = _cell_map(regions, regions.statement.target.indices, None, regions.shapes[statement.target.tensor])
        made = [
            (read.tensor, target.reverse().apply_range(_cell_map(regions, read.indices, read.boundaries, shape)))
            for read in map(regions.concrete, regions.reads)
            for shape in (regions.shapes[read.tensor],)
        ]
        if isinstance(statement.start, Keep):
            found[statement.start.tensor] = _together(found.get(statement.start.tensor), beyond)
        for tensor, relation in made:
            found[tensor] = _together(found.get(tensor), beyond.apply_range(relation))
    return found


def _together(one: isl.Map | None, other: isl.Map) -> isl.Map:
    return other if one is None else one.union(other).coalesce()


def _cells(shape: Sequence[int]) -> isl.Set:
    names = [f"z{k}" for k in range(len(shape))]
    points = isl.Set.universe(isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=names, params=[]))
    for name, extent in zip(names, shape, strict=True):
        points = points.intersect(condition_set(in_range(IndexValue(name), integer(extent)), points))
    return points.reset_tuple_id()


def _cell_map(
    regions: StatementRegions, indices: Sequence[Expr], boundaries: Sequence[Boundary] | None, shape: Sequence[int]
) -> isl.Map:
    points = regions.points
    plain = points.reset_tuple_id()
    cells = isl.Map.from_domain(plain)
    for k, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        boundary = Boundary.SKIP if boundaries is None else boundaries[k]
        line = named(_cells((extent,)), (_CELL,)).reset_tuple_id()
        column = isl.Map.from_domain_and_range(plain, line)
        if is_affine(index, points):
            function = function_of(moved_index(index, integer(extent), boundary), points)
            exact = isl.Map.from_pw_aff(function).reset_tuple_id(isl.dim_type.in_)
            column = column.intersect(exact)
        cells = cells.flat_range_product(column)
    return cells


def expressions_of_box(relation: isl.Map, names: Sequence[tuple[str, str]]) -> list[tuple[Expr, Expr]]:
    """Begin and end of each axis of what a box of a relation's domain needs; ``names`` are begin and end of the box."""
    cells = relation.domain()
    cells = named(cells, [f"z{k}" for k in range(len(names))])
    context = isl.Set.universe(isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[], params=[]))
    for k, (low, high) in enumerate(names):
        extent = cells.dim_max_val(k).to_python() + 1
        place = IndexValue(f"z{k}")
        for condition in (apply("ge", place, SizeValue(low)), apply("lt", place, SizeValue(high))):
            cells = cells.intersect(condition_set(condition, cells))
        for condition in (
            apply("ge", SizeValue(low), integer(0)),
            apply("lt", SizeValue(low), SizeValue(high)),
            apply("le", SizeValue(high), integer(extent)),
        ):
            context = context.intersect(condition_set(condition, context))
    needed = relation.intersect_domain(cells.reset_tuple_id()).range()
    one = integer(1)
    return [
        (
            normalized(expression_of(needed.dim_min(k), context)),
            normalized(apply("add", expression_of(needed.dim_max(k), context), one)),
        )
        for k in range(needed.dim(isl.dim_type.set))
    ]
