"""Tapes: what every round of a loop has found, kept for another loop.

A tape is one more tensor that the loop carries, with an axis for the rounds: round ``k`` writes ``tape[k]``, in place,
and of that only the cells that are read later. Axes of which a round reads one place only, such as ``A[i, k]`` of a
column, are left out.

A carried tensor of which each round changes single cells has tapes of these cells alone, and the loop backwards takes
the changes back, from what the tensor is in the end::

    y_2[i] = s  from y                  y_was_2[i] = y[i]  from y_was
    update y = y_2                      y_2[i] = s  from y

                                        y[i] = y_was[i]  from y_after          the loop backwards, where i counts down
                                        update y_after = y
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.autodiff.loop_derivatives.held_cells import cells_needed, taken_whole, versions
from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, Read, index_variables, is_affine_index, transform
from tcdsl.ir.fresh_names import cell_names
from tcdsl.ir.program import Access, Keep, Program, Statement, Tensor, map_statement, statement_reads
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.spaces import named
from tcdsl.polyhedra.writes import read_cell

__all__ = ["RestoredState", "TapedTensor", "changes_of_cells", "taped_tensor"]


@dataclass(frozen=True, slots=True)
class TapedTensor:
    """A tensor of a round, as another loop reads it; ``places`` has the one index of each axis that is left out."""

    tensor: Tensor
    cells: isl.Set | None
    places: tuple[Expr | None, ...]

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents that are kept for each round."""
        return tuple(self._kept(self.tensor.shape))

    def _kept(self, axes: Iterable[Expr]) -> list[Expr]:
        return [axis for axis, place in zip(axes, self.places, strict=True) if place is None]

    def store(self, values: Program, tape: str, new: str, number: Expr) -> Statement:
        """The statement of round ``number`` that makes ``new`` of ``tape``."""
        tensor = self.tensor
        variables = cell_names(len(tensor.shape), (size.name for size in values.sizes))
        points = box(variables, tensor.shape)
        if self.cells is not None:
            points = points.intersect(named(self.cells, variables))
        for axis in reversed(range(len(variables))):
            if self.places[axis] is not None:
                points = points.project_out(isl.dim_type.set, axis, 1)
        cell = [index(name) if place is None else place for name, place in zip(variables, self.places, strict=True)]
        value = Read(tensor.name, tuple(cell), (Boundary.SKIP,) * len(cell), compute_dtype(tensor.dtype))
        target = Access(new, (number, *self._kept(map(index, variables))))
        return Statement(target, "assign", Keep(tape), value, Domain.from_set(points))

    def read_by(self, linear: Program, tape: str, number: Expr) -> Program:
        """``linear`` reading ``tape[number]`` instead of the tensor, which is no input any more."""

        def rule(node: Expr) -> Expr:
            if not isinstance(node, Read) or node.tensor != self.tensor.name:
                return node
            kept = [each for each, place in zip(node.boundaries, self.places, strict=True) if place is None]
            indices = (number, *self._kept(node.indices))
            return replace(node, tensor=tape, indices=indices, boundaries=(Boundary.SKIP, *kept))

        tensor = linear.tensor(self.tensor.name)
        linear = replace(linear, inputs=tuple(each for each in linear.inputs if each.name != tensor.name))
        if not taken_whole(linear, tensor.name):
            statements = tuple(map_statement(each, lambda expr: transform(expr, rule)) for each in linear.statements)
            return replace(linear, statements=statements)
        cells = cell_names(len(tensor.shape), (size.name for size in linear.sizes))
        copy = over_box(tensor.name, cells, tensor.shape, rule(read_cell(tensor, cells, compute_dtype(tensor.dtype))))
        return replace(linear, tensors=(tensor, *linear.tensors), statements=(copy, *linear.statements))


def taped_tensor(linear: Program, tensor: Tensor) -> TapedTensor:
    """What ``linear`` reads of its input ``tensor``."""
    cells = cells_needed(linear, tensor.name)
    places: list[Expr | None] = [None] * len(tensor.shape)
    if cells is not None:
        reads = [each for statement in linear.statements for each in statement_reads(statement)]
        found = [read.indices for read in reads if read.tensor == tensor.name]
        for axis, indices in enumerate(zip(*found, strict=True)):
            [place, *others] = dict.fromkeys(indices)
            if not others and is_affine_index(place) and not index_variables(place):
                places[axis] = place
    return TapedTensor(tensor, cells, tuple(places))


def changes_of_cells(values: Program, name: str, new: str) -> list[Statement]:
    """The statements that make the tensor ``new`` of the input ``name``, if each changes one cell that sizes say."""
    changes = versions(values, name, new).get(name, [])
    single = (
        not each.domain.variables and each.condition is None and all(map(is_affine_index, each.target.indices))
        for each in changes
    )
    return changes if all(single) else []


@dataclass(frozen=True, slots=True)
class RestoredState:
    """``linear`` finding ``tensor`` in its input ``after``, by ``tapes`` that ``values`` write; ``stored`` are these
    after a round.
    """

    values: Program
    linear: Program
    after: Tensor
    tapes: tuple[Tensor, ...]
    stored: tuple[str, ...]

    @staticmethod
    def of(
        values: Program,
        linear: Program,
        tensor: Tensor,
        changes: list[Statement],
        rounds: tuple[Expr, Expr],
        fresh: Callable[[str], str],
    ) -> RestoredState:
        """What takes ``changes`` of ``tensor`` back in round number ``rounds[0]`` of ``rounds[1]``."""
        number, count = rounds
        element = compute_dtype(tensor.dtype)
        after = replace(tensor, name=fresh(f"{tensor.name}_after"))
        tapes = tuple(Tensor(fresh(f"{tensor.name}_was"), tensor.dtype, (count,)) for _ in changes)
        stored = tuple(fresh(tape.name) for tape in tapes)
        stores, restores, made = list(values.statements), [], []
        state = after.name
        for change, tape, new in reversed([*zip(changes, tapes, stored, strict=True)]):
            assert isinstance(change.start, Keep)
            indices, skip = change.target.indices, (Boundary.SKIP,) * len(change.target.indices)
            was = Read(change.start.tensor, indices, skip, element)
            store = Statement(Access(new, (number,)), "assign", Keep(tape.name), was, change.domain)
            stores.insert(stores.index(change), store)
            before = tensor.name if change is changes[0] else fresh(tensor.name)
            was = Read(tape.name, (number,), (Boundary.SKIP,), element)
            restores.append(Statement(Access(before, indices), "assign", Keep(state), was, change.domain))
            made.append(replace(tensor, name=before))
            state = before
        written = (replace(tape, name=new) for tape, new in zip(tapes, stored, strict=True))
        others = (each for each in linear.inputs if each.name != tensor.name)
        return RestoredState(
            replace(values, tensors=(*values.tensors, *written), statements=tuple(stores)),
            replace(
                linear,
                inputs=(after, *tapes, *others),
                tensors=(*made, *linear.tensors),
                statements=(*restores, *linear.statements),
            ),
            after,
            tapes,
            stored,
        )
