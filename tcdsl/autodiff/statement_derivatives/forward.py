"""Forward mode: a tangent statement beside each statement, over the same points.

Sums, stores and elementwise accumulators follow the rows of the table of primitives. A reduction by another
accumulator (a product, a maximum) has the tangent ``t_Y[f(v)] += w(v) * t_e(v)`` with the weights w that its
transposition gives to the derivative of Y, so both modes share
`tcdsl.autodiff.statement_derivatives.reduction_transposition`.

Source: Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import islpy as isl

from tcdsl.autodiff.statement_derivatives.recomputation import ValueSteps
from tcdsl.autodiff.statement_derivatives.reverse import (
    holds_its_value,
    old_and_new_shares,
    transpose,
    with_read_replaced,
)
from tcdsl.autodiff.statement_derivatives.running_cells import RunningCells
from tcdsl.autodiff.statement_derivatives.scalar import conjunction, tangent_step
from tcdsl.autodiff.statement_derivatives.transposition import VALUE, Flow, Transposition
from tcdsl.ir.build import constant, index, neutral_constant
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Boundary, Expr, Local, reads
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Program, Start, Statement, Tensor
from tcdsl.polyhedra.spaces import dimension_names
from tcdsl.polyhedra.writes import affine_target, reached, read_at, read_cell, writes_each_cell_once
from tcdsl.simplification.expressions.tape import Tape

__all__ = ["Forward"]

_TANGENT = "tangent of the flow"


class Forward(Transposition):
    """A program while its tangent is written. As a `Transposition` it turns flows into tangent statements."""

    def __init__(self, program: Program, wrt: Sequence[str]) -> None:
        super().__init__(program, wrt, ValueSteps.tangent_work)
        self.tangents: dict[str, str] = {}
        self._target = Tensor("", "", ())
        self._sums: dict[str, str | None] = {}
        #: What becomes of the shares of a stand-in that stands for another one: what they add to that one's.
        self._later: dict[str, Callable[[str], None]] = {}

    def add_tangent(self, statement: Statement) -> None:
        """The tangent of one statement."""
        name = statement.target.tensor
        declared = self.tensor(name)
        if statement.accumulate in ("assign", "add", "subtract"):
            value = self._tangent_of(statement.value, self._own_result(statement, declared))
            zero = constant(0, compute_dtype(declared.dtype))
            self._append_like(statement, statement.accumulate, self._start(statement), value or zero)
        elif writes_each_cell_once(statement):
            self._elementwise(statement, declared)
        else:
            self._reduction(statement, declared)

    def _append_like(self, statement: Statement, accumulate: str, start: Start, value: Expr) -> None:
        declared = self.tensor(statement.target.tensor)
        made = self.declare(f"t_{declared.name}", declared.dtype, declared.shape)
        self.tangents[declared.name] = made
        self.append(
            Statement(
                Access(made, statement.target.indices, statement.target.span),
                accumulate,
                start,
                value,
                statement.domain,
                reached(statement, declared),
                statement.oob,
                statement.unique,
                span=statement.span,
            )
        )

    def _start(self, statement: Statement) -> Start:
        match statement.start:
            case Keep(tensor=tensor) if tensor in self.tangents:
                return Keep(self.tangents[tensor])
            case Fill(value=value):
                found = self._tangent_of(value, None)
                return Neutral() if found is None else Fill(found)
            case _:
                return Neutral()

    def _own_result(self, statement: Statement, declared: Tensor) -> Expr | None:
        stored = declared.dtype == compute_dtype(declared.dtype) and affine_target(statement)
        return read_at(statement, declared, declared.dtype) if stored and holds_its_value(statement) else None

    def _tangent_of(self, expr: Expr, result: Expr | None) -> Expr | None:
        tape = Tape()
        root = tape.flatten(expr)
        known = None if result is None else tape.flatten(result)
        found = self._step(tape, root, known)
        return None if found is None else tape.assemble(found)

    def _step(self, tape: Tape, leaf: Expr, known: Expr | None = None) -> Expr | None:
        return tangent_step(tape, leaf, self.wants, self.extents, self.tangents.__getitem__, known)

    def _elementwise(self, statement: Statement, declared: Tensor) -> None:
        # new = primitive(old, value): the rows by both arguments, stored over the tangent of the start.
        dtype = compute_dtype(declared.dtype)
        tape = Tape()
        value = tape.flatten(statement.value)
        own = self._step(tape, value)
        old: Expr = neutral_constant(statement.accumulate, dtype)
        before: Expr | None = None
        match statement.start:
            case Keep(tensor=tensor):
                old = tape.flatten(read_at(statement, self.tensor(tensor), dtype))
                if tensor in self.tangents:
                    before = tape.flatten(read_at(statement, self.tensor(self.tangents[tensor]), dtype))
            case Fill(value=filled):
                old = tape.flatten(filled)
                before = self._step(tape, old)
        names = {"a": old, "b": value, "y": tape.flatten(read_at(statement, declared, dtype))}
        shares = [share for share in old_and_new_shares(statement, names, before, own) if share is not None]
        leaves = [tape.flatten(share) for share in shares] or [constant(0, dtype)]
        total = reduce(lambda left, right: tape.add(Apply("add", (left, right), dtype)), leaves)
        self._append_like(statement, "assign", self._start(statement), tape.assemble(total))

    def _reduction(self, statement: Statement, declared: Tensor) -> None:
        # Stand-ins for the derivative of the target: flows are linear in one of them each.
        self._target = declared
        derivative = self._stand_in()
        transpose(self, statement, derivative)
        for name, add in reversed(self._later.items()):
            shares = self._sums[name]
            if shares is not None:
                add(shares)
        total = self._sums[derivative]
        if total is not None:
            self.tangents[declared.name] = total
        self._sums.clear()
        self._later.clear()

    def _stand_in(self) -> str:
        declared = self._target
        name = self.given(f"d_{declared.name}", declared).name
        self._sums[name] = None
        return name

    def _add_to_sum(
        self, name: str, indices: tuple[Expr, ...], value: Expr, domain: Domain, condition: Expr | None, oob: str
    ) -> None:
        # To what the flows that are linear in the stand-in `name` have given so far.
        previous = self._sums[name]
        hint = f"t_{self._target.name}_shares" if name in self._later else f"t_{self._target.name}"
        made = self.declare(hint, self._target.dtype, self._target.shape)
        self._sums[name] = made
        start: Start = Neutral() if previous is None else Keep(previous)
        self.append(Statement(Access(made, indices), "add", start, value, domain, condition, oob))

    # As a `Transposition`.

    def give(self, tensor: str, adjoint: str) -> None:
        """Reductions pass nothing on whole."""
        raise NotImplementedError

    def settle(self, adjoint: str) -> None:
        """Flows become statements at once."""

    def contribute(self, flow: Flow) -> None:
        """The seed, linear in the derivative of the target, with the tangent of the value in its place."""
        tape = Tape()
        root = tape.flatten(flow.value)
        found = self._step(tape, root)
        if found is None:
            return
        bound = {VALUE: root, _TANGENT: found}
        [place] = {read for read in reads(flow.seed) if read.tensor in self._sums}
        seed = tape.flatten(with_read_replaced(flow.seed, place, Local(_TANGENT, place.dtype)), bound)
        if flow.guards:
            test = conjunction(tape, [tape.flatten(guard, bound) for guard in flow.guards])
            seed = tape.add(Apply("where", (test, seed, constant(0, seed.dtype)), seed.dtype))
        oob = "clamp" if Boundary.CLAMP in place.boundaries else "check"
        domain = Domain.from_set(flow.points)
        self._add_to_sum(place.tensor, place.indices, tape.assemble(seed), domain, flow.condition, oob)

    def scaled(self, adjoint: str, cells: isl.Set, share: Callable[[Expr], Expr], condition: Expr | None = None) -> str:
        """A stand-in for ``adjoint`` with shares of ``cells``, which are taken of what its flows add up to."""

        def add(shares: str) -> None:
            self._add_cells(adjoint, cells, share, shares, condition)

        return self._stand_in_for(add)

    def accumulated(
        self, adjoint: str, line: RunningCells, condition: Expr | None = None, joining: Expr | None = None
    ) -> str:
        """A stand-in for the sums: what its flows add up to goes on along the cells at the end."""

        def add(shares: str) -> None:
            total = line.sums_so_far(shares, f"{shares}_so_far", joining)
            self._add_cells(adjoint, line.box, lambda read: read, total, condition)

        return self._stand_in_for(add)

    def _stand_in_for(self, add: Callable[[str], None]) -> str:
        name = self._stand_in()
        self._later[name] = add
        return name

    def _add_cells(
        self, name: str, cells: isl.Set, value: Callable[[Expr], Expr], shares: str, condition: Expr | None
    ) -> None:
        # To the sum of another stand-in, for each cell what becomes of its share.
        variables = dimension_names(cells)
        read = read_cell(self.tensor(shares), variables, compute_dtype(self._target.dtype))
        target = tuple(index(z) for z in variables)
        self._add_to_sum(name, target, value(read), Domain.from_set(cells), condition, "check")
