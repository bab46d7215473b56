"""The program that one block of a tensor takes: that of the whole tensor, on windows of the tensors that it reads.

::

    blocks = BlockProgram.of(plan, family)
    blocks.program                  # y[i] = x[i + begin - begin_2 - 1] + ...  for the i of a block
    blocks.values[k]                # begin, begin_2, ...: the sizes of task k

Where windows begin, how long they are, and the sizes of the whole program are sizes of the block's, each the extent of
an input without cells. So one program runs on all blocks, and each index and each size has the value that it has in the
whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import islpy as isl

from tcdsl.blocks.grids import MERGING
from tcdsl.blocks.plans import BlockPlan, Boxes, Family, ReadWindow, started_from
from tcdsl.blocks.regions import MOVED, has_no_data
from tcdsl.ir.build import apply, index, integer, plain_read, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Expr,
    IndexValue,
    Read,
    SizeValue,
    map_children,
    substitute,
)
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import (
    AxisExtent,
    Fill,
    Keep,
    Neutral,
    Program,
    Size,
    Start,
    Statement,
    Tensor,
    map_statement,
    sizes_used,
)
from tcdsl.polyhedra.affine import NotAffine, condition_set, knowing, substituted, universe
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import dimension_names, named
from tcdsl.rewrite.replaced_sizes import domain_with_sizes

__all__ = ["BlockProgram", "finishing_program"]


@dataclass(frozen=True, slots=True)
class BlockProgram:
    """See the top of this file. The inputs of ``program`` are the views, and then one for each of its sizes."""

    program: Program
    values: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(plan: BlockPlan, family: Family) -> BlockProgram:
        """The program of a family of tasks."""
        return _Writer(plan, family).written()


@dataclass(frozen=True, slots=True)
class _Axis:
    # Where a window begins and how many cells it has, as sizes of the block's program.
    begin: Expr
    length: Expr


class _Sizes:
    """The sizes of a block's program: one for all that is equal in each task."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self._found: dict[tuple[int, ...], Expr] = {}
        self.values: dict[str, tuple[int, ...]] = {}

    def length(self, values: tuple[int, ...], hint: str) -> Expr:
        """The size that has these values, one for each task."""
        if values not in self._found:
            name = self._names.fresh(hint)
            self.values[name] = values
            self._found[values] = size(name)
        return self._found[values]

    def begin(self, values: tuple[int, ...]) -> Expr:
        """The same for what may be below 0, and is a constant where it is 0 everywhere."""
        if not any(values):
            return integer(0)
        below = max(0, -min(values))
        return apply("sub", self.length(tuple([each + below for each in values]), "begin"), integer(below))


class _Writer:
    def __init__(self, plan: BlockPlan, family: Family) -> None:
        self.plan, self.family = plan, family
        self._names = names_of(plan.program)
        self.sizes = _Sizes(self._names)
        count = len(family.places)
        used = plan.program.sizes
        self._outer: dict[Expr, Expr] = {
            size(each.name): self.sizes.length((plan.sizes[each.name],) * count, each.name) for each in used
        }
        self._numbers: dict[Expr, Expr] = {size(name): integer(value) for name, value in plan.sizes.items()}
        self._windows = {name: self._axes(boxes, len(plan.grids.of[name])) for name, boxes in family.windows.items()}
        self._views = [(view, self._names.fresh(view.tensor), self._view_axes(view)) for view in family.views]
        self._places = {reader: (name, axes) for view, name, axes in self._views for reader in view.readers}
        self._cuts = {
            variable: _Axis(
                self.sizes.begin(tuple([each[k][0] for each in family.ranges])),
                self.sizes.length(tuple([each[k][1] - each[k][0] for each in family.ranges]), f"{variable}_extent"),
            )
            for k, (variable, _) in enumerate(family.cuts)
        }
        self._known = self._facts()

    def _axes(self, boxes: Boxes, rank: int) -> tuple[_Axis, ...]:
        found = [((0, 0),) * rank if box is None else box for box in boxes]
        return tuple(
            _Axis(
                self.sizes.begin(tuple([box[k][0] for box in found])),
                self.sizes.length(tuple([max(box[k][1] - box[k][0], 0) for box in found]), "extent"),
            )
            for k in range(rank)
        )

    def _view_axes(self, view: ReadWindow) -> tuple[_Axis, ...]:
        return self._axes(view.boxes, len(view.ends))

    def _facts(self) -> isl.Set:
        # Windows end where their tensors do.
        known = universe((), ())
        no_ends: tuple[Boundary | None, ...] = ()
        windows = [(self.plan.program.tensor(name), axes, no_ends) for name, axes in self._windows.items()]
        windows += [(self.plan.program.tensor(view.tensor), axes, view.ends) for view, _, axes in self._views]
        for tensor, axes, ends in windows:
            for k, (axis, extent) in enumerate(zip(axes, tensor.shape, strict=True)):
                if not ends or ends[k] not in MOVED:
                    end = apply("add", axis.begin, axis.length)
                    known = knowing(known, apply("le", end, substitute(extent, self._outer)))
        for name in self.sizes.values:
            known = knowing(known, apply("ge", size(name), integer(0)))
        return known

    def written(self) -> BlockProgram:
        """The program, and the values of its sizes in each task."""
        program, family = self.plan.program, self.family
        statements: list[Statement] = []
        tensors: list[Tensor] = []
        for statement in program.statements:
            name = statement.target.tensor
            if name not in family.windows:
                continue
            dtype = program.tensor(name).dtype
            if name == family.tensor and family.is_cut:
                dtype = compute_dtype(dtype)
            made, before = self._statement(statement)
            shape = tuple(axis.length for axis in self._windows[name])
            tensors += [replace(program.tensor(name), name=each.target.tensor, shape=shape, ends=()) for each in before]
            tensors.append(replace(program.tensor(name), dtype=dtype, shape=shape, ends=()))
            statements += [*before, made]
        views = tuple(
            replace(
                program.tensor(view.tensor),
                name=name,
                label=program.tensor(view.tensor).label or view.tensor,
                shape=tuple(axis.length for axis in axes),
                ends=(),
            )
            for view, name, axes in self._views
        )
        used = sizes_used(statements, (*views, *tensors))
        values = {name: each for name, each in self.sizes.values.items() if name in used}
        carriers, sizes = _carriers(values, self._names)
        block = Program(program.name, (*views, *carriers), sizes, tuple(tensors), tuple(statements), (family.tensor,))
        return BlockProgram(block, tuple(zip(*values.values(), strict=True)) or ((),) * len(family.places))

    def _statement(self, statement: Statement) -> tuple[Statement, list[Statement]]:
        # The statement on windows, and what makes what it starts from.
        name = statement.target.tensor
        main = name == self.family.tensor
        window = self._windows[name]
        begins: dict[Expr, Expr] = {}
        for position, axis in zip(statement.target.indices, window, strict=True):
            if isinstance(position, IndexValue) and position not in begins:
                begins[position] = axis.begin
        if main:
            begins |= {index(variable): axis.begin for variable, axis in self._cuts.items()}
        moved = {key: begin for key, begin in begins.items() if begin != integer(0)}
        leaves = {**self._outer, **{key: apply("add", key, begin) for key, begin in moved.items()}}
        domain = self._domain(statement, moved, main)
        start: Start = Neutral() if main and self.family.is_cut else statement.start
        before: list[Statement] = []
        if isinstance(start, Keep):
            start, before = self._start(name, start.tensor)
        made = map_statement(replace(statement, start=start), lambda expr: self._rewritten(name, expr, leaves))
        indices = tuple(
            _shifted(position, axis.begin) for position, axis in zip(made.target.indices, window, strict=True)
        )
        return replace(made, target=replace(made.target, indices=indices), domain=domain), before

    def _rewritten(self, name: str, expr: Expr, leaves: Mapping[Expr, Expr]) -> Expr:
        if isinstance(expr, IndexValue | SizeValue):
            return leaves.get(expr, expr)
        inner = map_children(expr, lambda part: self._rewritten(name, part, leaves))
        if not isinstance(expr, Read) or not isinstance(inner, Read):
            return inner
        found = self._places.get((name, expr))
        view, axes = (expr.tensor, self._windows[expr.tensor]) if found is None else found
        return replace(
            inner,
            tensor=view,
            indices=tuple(_shifted(position, axis.begin) for position, axis in zip(inner.indices, axes, strict=True)),
            boundaries=tuple(
                Boundary.SKIP if boundary in MOVED and has_no_data(position) else boundary
                for position, boundary in zip(inner.indices, inner.boundaries, strict=True)
            ),
        )

    def _domain(self, statement: Statement, moved: Mapping[Expr, Expr], main: bool) -> Domain:
        # The points in the window; variables count from the window's beginning.
        name = statement.target.tensor
        points = domain_with_sizes(statement.domain, self._outer, lambda extent: extent).set
        windows = list(zip(statement.target.indices, self._windows[name], strict=True))
        if main:
            windows += [(index(variable), axis) for variable, axis in self._cuts.items()]
        for position, axis in windows:
            if not has_no_data(position):
                continue  # the window is the whole axis
            end = apply("add", axis.begin, axis.length)
            for sizes in (self._outer, self._numbers):
                # Also of what isl cannot speak whatever the sizes.
                with suppress(NotAffine):
                    for test in (apply("ge", position, axis.begin), apply("lt", position, end)):
                        points = points.intersect(condition_set(substitute(test, sizes), points))
                    break
        order = dimension_names(points)
        if moved:
            values = {key: apply("add", IndexValue(f"{_name(key)}'"), begin) for key, begin in moved.items()}
            inner = [f"{each}'" if index(each) in moved else each for each in order]
            points = named(substituted(points, values, inner), order)
        return Domain.from_set(points.gist_params(self._known))

    def _start(self, name: str, tensor: str) -> tuple[Keep, list[Statement]]:
        # What the cells of a window start from: a window of the tensor before, cut if it is larger.
        found = self._places.get((name, None))
        source, axes = (tensor, self._windows[tensor]) if found is None else found
        window = self._windows[name]
        if axes == window:
            return Keep(source), []
        made = self._names.fresh(f"{name}_start")
        cells = self._names.cells(len(window))
        dtype = self.plan.program.tensor(name).dtype
        positions = [
            _shifted(apply("add", index(cell), own.begin), axis.begin)
            for cell, own, axis in zip(cells, window, axes, strict=True)
        ]
        value = plain_read(source, positions, compute_dtype(dtype))
        return Keep(made), [over_box(made, cells, [axis.length for axis in window], value)]


def _name(variable: Expr) -> str:
    assert isinstance(variable, IndexValue)
    return variable.name


def _shifted(position: Expr, begin: Expr) -> Expr:
    if has_no_data(position):
        return normalized(apply("sub", position, begin))
    return position  # data find their cells in whole axes


def _carriers(values: Mapping[str, Sequence[int]], names: FreshNames) -> tuple[tuple[Tensor, ...], tuple[Size, ...]]:
    carriers, sizes = [], []
    for name in values:
        carrier = names.fresh(f"extent_{name}")
        carriers.append(Tensor(carrier, "bool", (size(name), integer(0))))
        sizes.append(Size(name, AxisExtent(carrier, 0)))
    return tuple(carriers), tuple(sizes)


def finishing_program(plan: BlockPlan, tensor: str) -> Program | None:
    """The program of the combined parts, and of the tensors that cells start from: what the tensor is then.

    None where it is the parts.
    """
    declared, statement = plan.program.tensor(tensor), plan.statement(tensor)
    dtype, start = compute_dtype(declared.dtype), statement.start
    if isinstance(start, Neutral) and dtype == declared.dtype:
        return None
    cells = [f"z{k}" for k in range(len(declared.shape))]
    extents = tuple([size(f"extent_{k}") for k in range(len(cells))])
    inputs = [Tensor("parts", dtype, extents)]
    if isinstance(start, Keep):
        inputs.append(replace(plan.program.tensor(start.tensor), shape=extents, ends=()))
    if isinstance(start, Fill):
        numbers: dict[Expr, Expr] = {size(name): integer(value) for name, value in plan.sizes.items()}
        start = Fill(substitute(start.value, numbers))
        inputs += [plan.program.tensor(name) for name in started_from(statement)]
    value = plain_read("parts", map(index, cells), dtype)
    made = replace(over_box(tensor, cells, extents, value, MERGING[statement.accumulate]), start=start)
    sizes = tuple(Size(f"extent_{k}", AxisExtent("parts", k)) for k in range(len(cells)))
    of_tensor = replace(declared, shape=extents, ends=())
    return Program(plan.program.name, tuple(inputs), sizes, (of_tensor,), (made,), (tensor,))
