"""Reverse mode: contributions of single reads.

The contribution of a read ``X[g(v)]`` inside ``Y[f(v)] += e`` is ``d_X[g(v)] += d_Y[f(v)] * de/dX[g(v)]`` over the same
points: target and read swap roles. Solved for the cells of ``d_X`` it is a gather
(`tcdsl.polyhedra.scatter_to_gather`); only indices that are data leave a scatter. Contributions are collected until the
tensor's own statement is reached, so that those over the same points become one sum and a derivative that is passed on
whole is not copied.

Source: Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.autodiff.statement_derivatives.contributions import Contributions
from tcdsl.autodiff.statement_derivatives.recomputation import ValueSteps
from tcdsl.autodiff.statement_derivatives.scalar import Guarded, Partial, conjunction, partials
from tcdsl.autodiff.statement_derivatives.transposition import VALUE, Flow, Transposition
from tcdsl.ir.build import apply, constant, index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Expr, Read, reads, transform
from tcdsl.ir.program import Access, Neutral, Program, Statement
from tcdsl.polyhedra.read_pieces import Piece, places, restrict
from tcdsl.polyhedra.spaces import dimension_names
from tcdsl.polyhedra.writes import both, read_cell
from tcdsl.simplification.expressions.tape import Tape
from tcdsl.simplification.one_point import without_determined_variables
from tcdsl.simplification.sparsity.composition import source

__all__ = ["Reverse", "with_read_replaced"]


def with_read_replaced(expr: Expr, read: Read, value: Expr) -> Expr:
    """``expr`` with ``value`` in place of one read, wherever it occurs."""
    return transform(expr, lambda node: value if node == read else node)


class Reverse(Transposition):
    """A program while its adjoint is written: the `Transposition` of reverse mode."""

    def __init__(self, program: Program, wrt: Sequence[str]) -> None:
        super().__init__(program, wrt, ValueSteps.adjoint_work)
        self.contributions = Contributions(self)

    def give(self, tensor: str, adjoint: str) -> None:
        """Add a whole tensor to the derivative by ``tensor``."""
        self.contributions.add_whole(tensor, adjoint)

    def contribute(self, flow: Flow) -> None:
        """Pass a flow on to the reads of its value, part by part if its seed is sparse."""
        for part in self._parts(flow):
            self._contribute(part)

    def scaled(self, adjoint: str, cells: isl.Set, factor: Expr) -> str:
        """The derivative ``adjoint`` with each of ``cells`` multiplied by ``factor``, an expression of that cell."""
        declared = self.tensor(adjoint)
        made = self.declare(f"{adjoint}_scaled", declared.dtype, declared.shape)
        variables = dimension_names(cells)
        value = apply("mul", read_cell(declared, variables, compute_dtype(declared.dtype)), factor)
        target = Access(made, tuple(index(name) for name in variables))
        self.append(Statement(target, "assign", Neutral(), value, Domain.from_set(cells)))
        return made

    def _parts(self, flow: Flow) -> list[Flow]:
        # A seed that is zero but on thin sets: the flow over these sets, with what was written there as its seed.
        for read in reads(flow.seed):
            writers = self.contributions.sparse.get(read.tensor)
            if writers is None:
                continue
            parts: list[Flow] = []
            for writer in writers:
                origin = source(writer, flow.points, read)
                if origin is None:
                    return [flow]
                if not origin.points.is_empty():
                    seed = with_read_replaced(flow.seed, read, origin.value)
                    parts.extend(self._parts(replace(flow, points=origin.points, seed=seed)))
            return parts
        return [flow]

    def _contribute(self, flow: Flow) -> None:
        tape = Tape()
        root = tape.flatten(flow.value)
        bound = {VALUE: root}
        seed = tape.flatten(flow.seed, bound)
        guards = tuple(tape.flatten(guard, bound) for guard in flow.guards)
        result = None if flow.result is None else tape.flatten(flow.result)
        for partial in partials(tape, root, Guarded(guards, seed), self.wants, self.extents, result):
            self._emit(tape, flow, partial)

    def _emit(self, tape: Tape, flow: Flow, partial: Partial) -> None:
        read = partial.read
        points, rest = restrict(flow.points, partial.guards, tape.expand)
        left = [tape.flatten(test) for test in rest]
        indices = tuple(tape.expand(axis) for axis in read.indices)
        for place in places(indices, read.boundaries, self.extents(read.tensor), points, self.context):
            value, condition = partial.value, flow.condition
            if left and place.total:
                zero = constant(0, value.dtype)
                value = tape.add(Apply("where", (conjunction(tape, left), value, zero), value.dtype))
            elif left:
                condition = both(condition, tape.assemble(conjunction(tape, left)))
            self._add(read, place, tape.assemble(value), condition)

    def _add(self, read: Read, place: Piece, value: Expr, condition: Expr | None) -> None:
        target = Access(read.tensor, place.indices)
        domain = Domain.from_set(place.points)
        statement = Statement(target, "add", Neutral(), value, domain, condition, span=read.span)
        self.contributions.add(read.tensor, without_determined_variables(statement))
