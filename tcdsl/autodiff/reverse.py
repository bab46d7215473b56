"""Reverse mode: the adjoint of a program, statement by statement from the last to the first.

The contribution of a read ``X[g(v)]`` inside ``Y[f(v)] += e`` is ``d_X[g(v)] += d_Y[f(v)] * de/dX[g(v)]`` over the same points:
target and read swap roles. Solved for the cells of ``d_X`` it is a gather (`tcdsl.shapes.solve`); only indices that
are data leave a scatter. Contributions are collected until the tensor's own statement is reached, so that those over the
same points become one sum and a derivative that is passed on whole is not copied.

Source: Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.autodiff.composition import source
from tcdsl.autodiff.contributions import Contributions
from tcdsl.autodiff.flows import VALUE, Flow
from tcdsl.autodiff.names import names_of
from tcdsl.autodiff.one_point import without_determined_variables
from tcdsl.autodiff.regions import Place, places, restrict, size_context
from tcdsl.autodiff.scalar import Guarded, Partial, carriers, conjunction, partials
from tcdsl.autodiff.tape import Tape
from tcdsl.autodiff.writes import both
from tcdsl.ir.build import constant
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Expr, Local, Read, reads, transform
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Program, Statement, Tensor

__all__ = ["Reverse", "active_tensors"]


def active_tensors(program: Program, wrt: Sequence[str]) -> frozenset[str]:
    """The tensors that depend differentiably on the inputs ``wrt``, these included."""
    active = set(wrt)

    def carries(expr: Expr) -> bool:
        tape = Tape()
        root = tape.flatten(expr)
        return isinstance(root, Local) and root.name in carriers(tape, root, active.__contains__)

    for statement in program.statements:
        name = statement.target.tensor
        if not is_floating(program.tensor(name).dtype):
            continue
        kept = isinstance(statement.start, Keep) and statement.start.tensor in active
        filled = isinstance(statement.start, Fill) and carries(statement.start.value)
        if kept or filled or carries(statement.value):
            active.add(name)
    return frozenset(active)


def _with_read(expr: Expr, read: Read, value: Expr) -> Expr:
    return transform(expr, lambda node: value if node == read else node)


class Reverse:
    """A program while its adjoint is written; the `Transposition` that `tcdsl.autodiff.flows` speaks to."""

    def __init__(self, program: Program, wrt: Sequence[str]) -> None:
        self.program = program
        self.names = names_of(program)
        self.context = size_context(program)
        self.active = active_tensors(program, wrt)
        self.contributions = Contributions(self)
        self.declared: dict[str, Tensor] = {t.name: t for t in (*program.inputs, *program.tensors)}
        self.made: list[Tensor] = []
        self.statements: list[Statement] = []

    # What transposing a statement needs.

    def tensor(self, name: str) -> Tensor:
        return self.declared[name]

    def wants(self, tensor: str) -> bool:
        return tensor in self.active

    def carries(self, expr: Expr) -> bool:
        tape = Tape()
        return bool(carriers(tape, tape.flatten(expr), self.wants))

    def declare(self, hint: str, dtype: str, shape: tuple[Expr, ...]) -> str:
        name = self.names.fresh(hint)
        tensor = Tensor(name, dtype, shape)
        self.declared[name] = tensor
        self.made.append(tensor)
        return name

    def append(self, statement: Statement) -> None:
        self.statements.append(statement)

    def give(self, tensor: str, adjoint: str) -> None:
        self.contributions.add_whole(tensor, adjoint)

    def cell_variables(self, rank: int) -> tuple[str, ...]:
        sizes = {size.name for size in self.program.sizes}
        candidates = (f"z{k}" for k in range(rank + len(sizes)))
        return tuple(name for name in candidates if name not in sizes)[:rank]

    # Contributions of single reads.

    def contribute(self, flow: Flow) -> None:
        """Pass a flow on to the reads of its value, part by part if its seed is sparse."""
        for part in self._parts(flow):
            self._contribute(part)

    def _parts(self, flow: Flow) -> list[Flow]:
        # A seed that is nonzero on thin sets only: the flow over these sets, with what was written there as its seed.
        for read in reads(flow.seed):
            writers = self.contributions.sparse.get(read.tensor)
            if writers is None:
                continue
            found = [source(writer, flow.points, read) for writer in writers]
            if None in found:
                return [flow]
            return [
                part
                for origin in found
                if origin is not None and not origin.points.is_empty()
                for part in self._parts(
                    replace(flow, points=origin.points, seed=_with_read(flow.seed, read, origin.value))
                )
            ]
        return [flow]

    def _contribute(self, flow: Flow) -> None:
        tape = Tape()
        root = tape.flatten(flow.value)
        bound = {VALUE: root}
        seed = tape.flatten(flow.seed, bound)
        guards = tuple(tape.flatten(guard, bound) for guard in flow.guards)
        result = None if flow.result is None else tape.flatten(flow.result)
        for partial in partials(tape, root, Guarded(guards, seed), self.wants, self._extents, result):
            self._emit(tape, flow, partial)

    def _extents(self, tensor: str) -> tuple[Expr, ...]:
        return self.tensor(tensor).shape

    def _emit(self, tape: Tape, flow: Flow, partial: Partial) -> None:
        read = partial.read
        points, left = restrict(flow.points, partial.guards, tape.expand)
        indices = tuple(tape.expand(axis) for axis in read.indices)
        shape = self._extents(read.tensor)
        for place in places(indices, read.boundaries, shape, points, self.context):
            value, condition = partial.value, flow.condition
            if left and place.total:
                zero = constant(0, value.dtype)
                value = tape.add(Apply("where", (conjunction(tape, left), value, zero), value.dtype))
            elif left:
                condition = both(condition, tape.assemble(conjunction(tape, left)))
            self._add(read.tensor, flow, place, tape.assemble(value), condition, read)

    def _add(self, tensor: str, flow: Flow, place: Place, value: Expr, condition: Expr | None, read: Expr) -> None:
        statement = Statement(
            Access(tensor, place.indices),
            "add",
            Neutral(),
            value,
            Domain.from_set(place.points),
            condition,
            span=read.span,
        )
        self.contributions.add(tensor, without_determined_variables(statement))
