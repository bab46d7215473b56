"""Reverse mode: contributions of single reads.

The contribution of a read ``X[g(v)]`` inside ``Y[f(v)] += e`` is ``d_X[g(v)] += d_Y[f(v)] * de/dX[g(v)]`` over the same
points: target and read swap roles. Solved for the cells of ``d_X`` it is a gather
(`tcdsl.polyhedra.scatter_to_gather`); only indices that are data leave a scatter. Contributions are collected until the
tensor's own statement is reached, so that those over the same points become one sum and a derivative that is passed on
whole is not copied.

Source: Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), sections 2 and 4.

Accumulators are transposed too: so the derivative of a statement's target reaches its values and its start. Sums pass
it on as it is, stores to the value that wrote the cell last. Where each cell is written at most once, any accumulator
is elementwise, ``new = primitive(old, value)``, and the primitive's rows of derivatives say it all. The other
reductions are in `tcdsl.autodiff.statement_derivatives.reduction_transposition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.autodiff.statement_derivatives.contributions import Contributions
from tcdsl.autodiff.statement_derivatives.recomputation import ValueSteps
from tcdsl.autodiff.statement_derivatives.reduction_transposition import REDUCTIONS, running
from tcdsl.autodiff.statement_derivatives.running_cells import RunningCells
from tcdsl.autodiff.statement_derivatives.scalar import Guarded, Partial, conjunction, partials
from tcdsl.autodiff.statement_derivatives.transposition import VALUE, Flow, StatementTransposition, Transposition
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, constant, index
from tcdsl.ir.domain import Domain, text_of
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Expr, Read, reads, transform, walk
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Program, Statement
from tcdsl.ir.text.rule_parser import parse_rule
from tcdsl.polyhedra.read_pieces import places, restrict
from tcdsl.polyhedra.spaces import dimension_names
from tcdsl.polyhedra.writes import affine_target, both, read_cell, writes_each_cell_once
from tcdsl.rewrite.renaming import expression_with_tensors_renamed, statement_with_tensors_renamed
from tcdsl.rewrite.statement_kinds import kind_of_statement
from tcdsl.simplification.expressions.tape import Tape
from tcdsl.simplification.sparsity.sparse_reads import source
from tcdsl.simplification.statement_points import without_determined_variables

__all__ = ["Reverse", "holds_its_value", "old_and_new_shares", "transpose", "with_read_replaced"]


def with_read_replaced(expr: Expr, read: Read, value: Expr) -> Expr:
    """``expr`` with ``value`` in place of one read, wherever it occurs."""
    return transform(expr, lambda node: value if node == read else node)


class Reverse(Transposition):
    """A program while its adjoint is written: the `Transposition` of reverse mode."""

    def __init__(self, program: Program, wrt: Sequence[str]) -> None:
        super().__init__(program, wrt, ValueSteps.adjoint_work)
        self.contributions = Contributions(self)
        #: What flows pass on, by what they say but for the names of tensors, and these names.
        self._known: dict[object, tuple[tuple[str, ...], list[Statement]]] = {}

    def give(self, tensor: str, adjoint: str) -> None:
        """Add a whole tensor to the derivative by ``tensor``."""
        self.contributions.add_whole(tensor, adjoint)

    def contribute(self, flow: Flow) -> None:
        """Pass a flow on to the reads of its value, part by part if its seed is sparse."""
        for part in self._parts(flow):
            self._contribute(part)

    def settle(self, adjoint: str) -> None:
        """Pass on what has been contributed from ``adjoint``."""
        self.contributions.settle(adjoint)

    def scaled(self, adjoint: str, cells: isl.Set, share: Callable[[Expr], Expr], condition: Expr | None = None) -> str:
        """The derivative ``adjoint`` with ``share`` of each of ``cells`` in its place, where a condition holds."""
        declared = self.tensor(adjoint)
        made = self.declare(f"{adjoint}_scaled", declared.dtype, declared.shape)
        variables = dimension_names(cells)
        value = share(read_cell(declared, variables, compute_dtype(declared.dtype)))
        target = Access(made, tuple(index(name) for name in variables))
        self.append(Statement(target, "assign", Neutral(), value, Domain.from_set(cells), condition))
        return made

    def accumulated(
        self, adjoint: str, line: RunningCells, condition: Expr | None = None, joining: Expr | None = None
    ) -> str:
        """For each cell the sum of ``adjoint`` over all cells that go on from it, where they meet ``condition``."""
        return line.sums_onward(adjoint, f"{adjoint}_onward", condition)

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
        # Equal layers have flows that differ in the names of tensors alone: of each kind one is passed on.
        kind, names = self._kind(flow)
        known = self._known.get(kind)
        if known is None:
            found = list(self._passed_on(flow))
            self._known[kind] = names, found
            for each in found:
                kind_of_statement(each)  # those of other layers have it too
        else:
            renaming = dict(zip(known[0], names, strict=True))
            found = [statement_with_tensors_renamed(each, renaming) for each in known[1]]
        for statement in found:
            self.contributions.add(statement.target.tensor, statement)

    def _kind(self, flow: Flow) -> tuple[object, tuple[str, ...]]:
        parts = [
            each for each in (flow.value, flow.seed, *flow.guards, flow.condition, flow.result) if each is not None
        ]
        names = tuple(dict.fromkeys(read.tensor for part in parts for read in reads(part)))
        places = {name: str(number) for number, name in enumerate(names)}
        given = flow.condition is None, flow.result is None, text_of(flow.points)
        # What is told of a fault is where the user has written it.
        spans = tuple(node.span for part in parts for node in walk(part))
        values = tuple(expression_with_tensors_renamed(part, places) for part in parts)
        declared = tuple((self.wants(name), self.tensor(name).dtype, self.extents(name)) for name in names)
        return (given, spans, values, declared), names

    def _passed_on(self, flow: Flow) -> Iterator[Statement]:
        tape = Tape()
        root = tape.flatten(flow.value)
        bound = {VALUE: root}
        seed = tape.flatten(flow.seed, bound)
        guards = tuple(tape.flatten(guard, bound) for guard in flow.guards)
        result = None if flow.result is None else tape.flatten(flow.result)
        for partial in partials(tape, root, Guarded(guards, seed), self.wants, self.extents, result):
            yield from self._emitted(tape, flow, partial)

    def _emitted(self, tape: Tape, flow: Flow, partial: Partial) -> Iterator[Statement]:
        read = partial.read
        points, rest = restrict(flow.points, partial.guards, tape.conjuncts)
        left = [tape.flatten(test) for test in rest]
        indices = tuple(tape.expand(axis) for axis in read.indices)
        for place in places(indices, read.boundaries, self.extents(read.tensor), points, self.context):
            value, condition = partial.value, flow.condition
            if left and place.total:
                zero = constant(0, value.dtype)
                value = tape.add(Apply("where", (conjunction(tape, left), value, zero), value.dtype))
            elif left:
                condition = both(condition, tape.assemble(conjunction(tape, left)))
            target, domain = Access(read.tensor, place.indices), Domain.from_set(place.points)
            added = Statement(target, "add", Neutral(), tape.assemble(value), domain, condition, span=read.span)
            yield without_determined_variables(added)


# The result of these on their neutral element and a value is the value.
_PASSING = frozenset(("assign", "add", "multiply", "max", "min", "relu_gate", "sat01_gate"))


def transpose(program: Transposition, statement: Statement, adjoint: str) -> None:
    """Pass the derivative ``adjoint`` of a statement's target on to everything that the statement reads."""
    this = StatementTransposition(program, statement, adjoint)
    if statement.accumulate == "assign":
        _assign(this)
    elif statement.accumulate in ("add", "subtract"):
        _sum(this)
        if this.start_is_wanted():
            this.all_to_start(this.adjoint.name)
    elif writes_each_cell_once(statement):
        _elementwise(this)
    else:
        REDUCTIONS[statement.accumulate](this)


def _sum(this: StatementTransposition) -> None:
    def signed(seed: Expr) -> Expr:
        return seed if this.statement.accumulate == "add" else apply("neg", seed)

    line = running(this) if this.condition is not None else None
    if line is None or not line.scan.ends:
        this.to_value(signed(this.seed), result=_own_result(this))
        return
    # isl does not see that these are scans from the other end: data say where a term is the last time among others.
    total = signed(this.at_target(this.program.accumulated(this.adjoint.name, line)))
    for _ in this.joining(line):
        this.to_value(total)


def holds_its_value(statement: Statement) -> bool:
    """Whether every cell that a statement writes ends up with exactly the value that is written."""
    fresh = statement.accumulate in _PASSING and isinstance(statement.start, Neutral)
    return (fresh or statement.accumulate == "assign") and writes_each_cell_once(statement)


def _own_result(this: StatementTransposition) -> Expr | None:
    # The target itself at a point, unless storing it has rounded it.
    if this.target.dtype == this.dtype and holds_its_value(this.statement):
        return this.at_target(this.target.name)
    return None


def _assign(this: StatementTransposition) -> None:
    statement = this.statement
    if this.program.carries(statement.value) and not writes_each_cell_once(statement):
        this.points = this.last_points()
    this.to_value(this.seed, result=_own_result(this))
    if not this.start_is_wanted():
        return
    if affine_target(statement) and this.condition is None:
        rest = this.box.subtract(this.image(this.points))
        if rest.is_empty():
            return
        if isinstance(this.start, Fill):
            this.to_start(this.at_cell(this.adjoint.name), cells=rest)
            return
    this.all_to_start(_overwritten(this, this.zero))


def _overwritten(this: StatementTransposition, value: Expr) -> str:
    # The adjoint with another value in the cells that the statement writes. Where data choose these, lowering does not
    # ask which statement should come first for that to happen in place.
    if not affine_target(this.statement):
        this.program.settle(this.adjoint.name)
    name = this.program.declare(this.adjoint.name, this.adjoint.dtype, this.adjoint.shape)
    this.writing(name, "assign", Keep(this.adjoint.name), value, condition=this.condition)
    return name


def old_and_new_shares(
    statement: Statement, bindings: Mapping[str, Expr], old_seed: Expr | None, new_seed: Expr | None
) -> tuple[Expr | None, Expr | None]:
    """For ``new = primitive(old, value)``, the rows by ``old`` and by ``value``, or ``None`` where they are zero.

    ``bindings`` has ``a`` (the old cell), ``b`` (the value) and ``y`` (the new cell); a seed that is ``None`` gives
    ``None``.
    """
    if isinstance(statement.start, Neutral) and statement.accumulate in _PASSING:
        return None, new_seed
    rows = PRIMITIVES[ACCUMULATORS[statement.accumulate].primitive].derivatives
    assert rows is not None
    first, second = (
        None if seed is None or row == "0" else parse_rule(row, {**bindings, "g": seed})
        for row, seed in zip(rows, (old_seed, new_seed), strict=True)
    )
    return first, second


def _elementwise(this: StatementTransposition) -> None:
    names = {"a": this.start_at(this.at_target), "b": this.value, "y": this.at_target(this.target.name)}
    _, share = old_and_new_shares(this.statement, names, None, this.seed)
    if share is not None:
        this.to_value(share)
    if this.start_is_wanted():
        names["b"] = this.statement.value
        kept, _ = old_and_new_shares(this.statement, names, this.seed, None)
        this.all_to_start(_overwritten(this, constant(0, this.dtype) if kept is None else kept))
