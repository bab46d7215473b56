"""Programs with loops as one kernel: the nests of all stages and bodies, in order, in one name space.

Each stretch of straight code, in the program and in bodies, is lowered on its own and placed here: its buffers get
names of their own, the sizes of a body become expressions of the sizes around it and of the number of the round. What a
loop carries lies in temporaries, which bodies change in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tcdsl.errors import Diagnostic, ShapeError
from tcdsl.ir.build import apply, integer, plain_read
from tcdsl.ir.expressions import (
    Cast,
    Constant,
    Expr,
    Local,
    Read,
    SizeValue,
    is_affine_index,
    reads,
    size_names,
    transform,
)
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.interpreter.host_code import HOSTED
from tcdsl.ir.program import AxisExtent, Program, Repeat, Tensor, tensors_read
from tcdsl.ir.stages import stage_programs
from tcdsl.lowering.linking.bounds import bounds_nest
from tcdsl.lowering.linking.carrying import carrying
from tcdsl.lowering.linking.copies import copy_nest, scalars_carried
from tcdsl.lowering.linking.joined_nests import joined
from tcdsl.lowering.linking.placing import as_extent, loop_variables, placed, scalar_names, with_sizes
from tcdsl.lowering.linking.registers import with_scalars_in_registers
from tcdsl.lowering.linking.reusing import reused
from tcdsl.lowering.linking.rounds_in_nests import in_one_nest
from tcdsl.lowering.linking.rounds_of_rows import row_by_row
from tcdsl.lowering.linking.shared_loops import with_shared_loops
from tcdsl.lowering.loopir.loops import (
    Buffer,
    BufferView,
    Check,
    Define,
    Kernel,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    Procedure,
    ProcedureCall,
    Rounds,
    Store,
    nests_of,
)
from tcdsl.lowering.loopir.traversal import buffers_read
from tcdsl.lowering.rounds.round_bounds import Bounds, bounds_over_rounds
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.span import Span

__all__ = ["LowerPart", "linked"]

LowerPart = Callable[[Program, bool, bool], Kernel]
"""Lowers straight code. With True its inputs are the kernel's own memory, which may be changed whatever fails later;
with another True no thread is to be woken for it."""

_MUCH = 1 << 40  # Points, where nothing is known.


def linked(program: Program, lower_part: LowerPart, *, join: bool, rows: bool) -> Kernel:
    """``program``, which has loops, as a kernel, whose indices have no widths yet; ``join`` joins serial nests.

    With ``rows`` all rounds of a row come before the next row, where they can.
    """
    return _Linker(program, lower_part, join, rows).kernel()


@dataclass(slots=True)
class _Scope:
    """The names of a program or a body: the buffer of each tensor, an expression for each size.

    ``own`` are the buffers that it has made, ``carried`` those of a body's inputs that become something else in each
    round: what nothing needs any more of both may be written over. ``depth`` is the number of loops around.
    """

    program: Program
    memory: dict[str, str]
    sizes: dict[Expr, Expr]
    depth: int
    carried: frozenset[str] = frozenset()
    own: set[str] = field(default_factory=set)

    @property
    def inside(self) -> bool:
        """Whether it is a body."""
        return self.depth > 0

    def is_free(self, name: str, needed: Iterable[str]) -> bool:
        """Whether the memory of the tensor ``name`` may be written over, where ``needed`` tensors must stay."""
        buffer = self.memory.get(name, "")
        if buffer not in self.own and buffer not in self.carried:
            return False
        return not any(self.memory.get(other) == buffer for other in needed)

    def is_short(self, program: Program) -> bool:
        """Whether ``program``, a part of it, makes rows alone, in a loop in a loop.

        It is done as often as the rows are long: so many take long before threads are worth it for one of them.
        """
        rows = all(len(each.domain.variables) <= 1 for each in program.statements)
        return self.depth > 1 and rows

    def placed(self, expr: Expr) -> Expr:
        """An expression of sizes and of tensors of rank 0, in this memory."""

        def rule(node: Expr) -> Expr:
            return replace(node, tensor=self.memory[node.tensor]) if isinstance(node, Read) else node

        return transform(with_sizes(expr, self.sizes), rule)


class _Linker:
    def __init__(self, program: Program, lower_part: LowerPart, join: bool, rows: bool) -> None:
        self.program = program
        self.lower_part = lower_part
        self.join = join
        self.rows = rows
        self.names: FreshNames = names_of(program)
        self.variables: set[str] = set()
        self.buffers: dict[str, Buffer] = {}
        self.body: list[Nest | Rounds] = []
        self.procedures: list[Procedure] = []
        self.begun = 0  # From here on nests may be joined.
        self.ranges: dict[str, Bounds | None] = {}
        self.moving: set[str] = set()
        self.extents = {size.name for size in program.sizes if isinstance(size.source, AxisExtent)}
        for statement in program.statements:
            self.variables.update(statement.domain.variables)

    def kernel(self) -> Kernel:
        program = self.program
        for tensor in program.inputs:
            self.buffers[tensor.name] = Buffer(tensor.name, tensor.dtype, tensor.shape, "input", (tensor.name,))
        scope = _Scope(program, {name: name for name in self.buffers}, {}, 0)
        # An input is returned as it was at the call.
        returned = {name: self._copy(name, "output") for name in dict.fromkeys(program.outputs) if name in self.buffers}
        updates = self._stages(scope)
        outputs: list[str] = []
        for name in program.outputs:
            early = returned.get(name)
            outputs.append(self._output(name, scope) if early is None else early)
            if outputs.count(outputs[-1]) > 1:
                outputs[-1] = self._copy(outputs[-1], "output")
        copied = tuple(self._final([(into, source) for into, source in updates if into != source]))
        self._close()
        kernel = Kernel(program, (), tuple(self.body), tuple(outputs), copied, 0, tuple(self.procedures))
        nests, self.buffers = with_scalars_in_registers(
            kernel.nests,
            self.buffers,
            kernel.repeated,
            [*outputs, *(name for pair in copied for name in pair)],
            self.names,
        )
        buffers = [self.buffers[name] for name in dict.fromkeys((*(t.name for t in program.inputs), *outputs))]
        buffers += [each for each in self.buffers.values() if each not in buffers]
        return replace(kernel.with_nests(nests), buffers=tuple(buffers))

    # -- stages

    def _stages(self, scope: _Scope) -> list[tuple[str, str]]:
        # The nests and loops of a program; the updates that are left to do after the last stage.
        updates: list[tuple[str, str]] = []
        parts = list(stage_programs(scope.program))
        read = [set() if repeat is None else _cells_read(repeat) for _, repeat in parts]
        # What is read last by each part: of many parts not each is asked about all behind it.
        last = {name: k for k, (straight, _) in enumerate(parts) for name in (*_needs(straight), *read[k])}
        later = set(last)
        for k, (straight, repeat) in enumerate(parts):
            later -= {name for name in (*_needs(straight), *read[k]) if last[name] == k}
            if repeat is not None:
                needed = later | read[k]
                straight = replace(straight, outputs=tuple(name for name in straight.outputs if name in needed))
            updates = self._straight(straight, scope, later if repeat is None else needed)
            if repeat is None:
                continue
            if _never_runs(repeat):
                scope.memory.update((name, self._unchanged(given, scope)) for name, given in _results(repeat))
            elif repeat.host:
                self._host(repeat, scope, later)
            else:
                self._repeat(repeat, scope, later)
        return updates

    def _straight(self, program: Program, scope: _Scope, later: set[str]) -> list[tuple[str, str]]:
        # The nests of a stage; the buffers that are to receive the cells of others at its end.
        made = {statement.target.tensor for statement in program.statements}
        results = (*program.outputs, *(new for _, new in program.updates))
        wanted = dict.fromkeys(name for name in results if name in made)
        if wanted:
            self._lowered(program, wanted, scope, later)
        pairs = ((scope.memory[into], scope.memory[new]) for into, new in program.updates)
        return [(into, source) for into, source in pairs if into != source]

    def _lowered(self, program: Program, wanted: Iterable[str], scope: _Scope, later: set[str]) -> None:
        pairs, private = self._reused(program, wanted, scope, later)
        taken = {new for _, new in pairs}
        outputs = [name for name in wanted if name not in taken]
        kernel = self.lower_part(
            replace(program, outputs=tuple(outputs), updates=tuple(pairs)), private, scope.is_short(program)
        )
        held: dict[str, str] = {}
        for buffer in kernel.buffers:
            if buffer.kind in ("input", "update"):
                if buffer.name not in scope.memory:
                    continue  # the number of a round, of which only the extent matters
                held[buffer.name] = name = scope.memory[buffer.name]
                if buffer.kind == "update" and self.buffers[name].kind == "input":
                    self.buffers[name] = replace(self.buffers[name], kind="update")
            else:
                held[buffer.name] = self._buffer(buffer.name, buffer.dtype, buffer.shape, scope)
        for nest in kernel.nests:
            self._place(nest, held, scope.sizes)
        scope.memory.update(zip(outputs, (held[name] for name in kernel.outputs), strict=True))
        copied = dict(kernel.updates)
        scope.memory.update({new: held[copied.get(into, into)] for into, new in pairs})

    def _reused(
        self, program: Program, wanted: Iterable[str], scope: _Scope, later: set[str]
    ) -> tuple[list[tuple[str, str]], bool]:
        # The updates of a stage, and whether they are all of the kernel's own memory.
        pairs = reused(program, wanted, later | set(scope.program.outputs), scope.is_free)
        if scope.inside or (pairs and {new for _, new in program.updates} <= {new for _, new in pairs}):
            return pairs, True
        return list(program.updates), False

    def _place(self, nest: Nest, buffers: Mapping[str, str], sizes: Mapping[Expr, Expr]) -> None:
        names = dict(buffers)
        for name in scalar_names(nest.body):
            names[name] = self.names.fresh(name)
        for name in loop_variables(nest.body):
            # Loops one after the other may have the same variable.
            if name not in self.variables and name in self.names:
                names[name] = self.names.fresh(name)
            self.names.take((name,))
            self.variables.add(names.get(name, name))
        body = placed(nest.body, names, sizes)
        self._add(replace(nest, name=self.names.fresh(nest.name), code=body, work=with_sizes(nest.work, sizes)))

    def _add(self, nest: Nest) -> None:
        found = bounds_over_rounds(nest.work, self.ranges)
        most = integer(_MUCH) if found is None else found[1]
        match nest.body:
            case (Loop(kind="parallel", start=start, stop=stop) as loop,) if self._changes(start) or self._changes(
                stop
            ):
                bounds = self.names.fresh(f"bounds_of_{nest.name}")
                self.buffers[bounds] = Buffer(bounds, "int64", (integer(5),), "temporary", (bounds,))
                self.body.append(bounds_nest(bounds, loop, nest))
                nest = replace(nest, bounds=bounds)
        self.body.append(replace(nest, work=most))

    def _close(self) -> None:
        # What comes next is not joined with what was before.
        if self.join:
            self.body[self.begun :] = with_shared_loops(joined(list(nests_of(self.body[self.begun :]))))
        self.begun = len(self.body)

    # -- memory

    def _buffer(self, hint: str, dtype: str, shape: Sequence[Expr], scope: _Scope) -> str:
        name = self.names.fresh(hint)
        extents = tuple(self._largest(with_sizes(extent, scope.sizes), hint) for extent in shape)
        self.buffers[name] = Buffer(name, dtype, extents, "temporary", (name,))
        scope.own.add(name)
        return name

    def _largest(self, extent: Expr, name: str) -> Expr:
        found = bounds_over_rounds(extent, self.ranges)
        if found is None:
            fact = f"nothing bounds an extent of `{name}` over the rounds of a loop"
            raise Diagnostic(ShapeError, fact, hint="give it an extent that is a size of the arguments").error()
        return found[1]

    def _changes(self, expr: Expr) -> bool:
        # Whether it depends on a round.
        return not self.ranges.keys().isdisjoint(size_names(expr))

    def _output(self, name: str, scope: _Scope) -> str:
        buffer = self.buffers[scope.memory[name]]
        if buffer.kind == "temporary" and buffer.name not in self.moving:
            self.buffers[buffer.name] = replace(buffer, kind="output")
            return buffer.name
        return self._copy(buffer.name, "output")

    def _copy(self, source: str, kind: str) -> str:
        name = self.names.fresh(source)
        self.buffers[name] = replace(self.buffers[source], name=name, kind=kind, tensors=(name,))
        self._add(copy_nest(self.buffers[name], source, self.names))
        return name

    def _final(self, updates: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        # What is copied into inputs after the nests. Memory that moves is found by nests alone.
        out: list[tuple[str, str]] = []
        sources = {source for _, source in updates}
        for target, source in updates:
            if source not in self.moving:
                out.append((target, source))
                continue
            into = replace(self.buffers[target], kind="update")
            if target in sources:
                into = replace(into, name=self.names.fresh(target), kind="temporary")
                into = replace(into, tensors=(into.name,))
                out.append((target, into.name))
            self.buffers[into.name] = into
            self._add(copy_nest(into, source, self.names))
        return out

    # -- loops

    def _repeat(self, repeat: Repeat, scope: _Scope, later: set[str]) -> None:
        # The loop, or the nest that it has become.
        body = repeat.body
        counter, *inputs = body.inputs
        updated = dict(body.updates)
        memory: dict[str, str] = {}
        for position, (tensor, given) in enumerate(zip(inputs, repeat.inputs, strict=True)):
            if tensor.name in updated:
                memory[tensor.name] = self._state(tensor, position, repeat, scope, later)
            elif given in scope.memory:
                memory[tensor.name] = scope.memory[given]
        count, most, counted = self._count(repeat, scope)
        label = repeat.number
        start = None if repeat.begin == integer(0) else self._begin(repeat, scope)
        number = self.names.fresh(label)
        carried = frozenset(memory[name] for name in updated)
        self.extents.add(number)
        sizes = self._sizes(repeat, number, scope)
        # A branch is a loop of one round, which has as much to do as one of the loop around it.
        depth = scope.depth if scope.inside and isinstance(repeat.count, Cast) else scope.depth + 1
        within = _Scope(replace(body, outputs=()), memory, sizes, depth, carried)
        around = set(self.buffers)
        if not counter.shape:
            memory[counter.name] = self._buffer(f"{number}_held", "int64", (), within)
        self.ranges[number] = None if most is None else (integer(0), _last(most))
        begun = self.begun
        self._close()
        outside, self.body, self.begun = self.body, [], 0
        changes = self._stages(within)
        swaps = self._carry([(into, source) for into, source in changes if into != source], memory, within)
        self._close()
        inside, self.body = tuple(self.body), outside
        condition = None if repeat.condition is None else memory[repeat.condition]
        scope.memory.update(zip(repeat.results, (memory[name] for name in updated), strict=True))
        held = memory.get(counter.name)
        if held is not None and not any(held in buffers_read(nest.body) for nest in nests_of(inside)):
            held = None
        rounds = Rounds(number, label, count, most, inside, counted, condition, held, swaps, start, repeat.unordered)
        own = self.buffers.keys() - around
        # Host code is called by the thread of the call alone, which may hold what it waits for.
        hosted = any(isinstance(node, ProcedureCall) for each in nests_of(inside) for node in each.body)
        nest = in_one_nest(rounds, own, self.names, with_rows=depth > 1) if self.join and not hosted else None
        if nest is None and self.rows and not hosted:
            nest = row_by_row(rounds, self.names)
        if nest is None:
            self.body.append(rounds)
            self.begun = len(self.body)
        else:
            self.begun = begun
            self._add(nest)

    def _host(self, repeat: Repeat, scope: _Scope, later: set[str]) -> None:
        # A nest that is no part of another one, nor of a loop that would go on threads.
        places = {each.name: place for place, each in enumerate(repeat.body.inputs[1:])}
        inputs = {each.name: each for each in repeat.body.inputs}
        made = [self._state(inputs[name], places[name], repeat, scope, later) for name, _ in repeat.body.updates]
        scope.memory.update(zip(repeat.results, made, strict=True))
        arrays = []
        for name in (*repeat.only_given, *repeat.results):
            tensor = scope.program.tensor(name)
            extents = [with_sizes(extent, scope.sizes) for extent in tensor.shape]
            arrays.append((scope.memory[name], tensor.dtype, extents))
        title = f"host code for {', '.join(repeat.results)}"
        procedure, nest = _host_nest(title, arrays, len(repeat.only_given), self.names, repeat.span)
        self.procedures.append(procedure)
        self._close()
        self._add(nest)
        self.begun = len(self.body)

    def _state(self, tensor: Tensor, position: int, repeat: Repeat, scope: _Scope, later: set[str]) -> str:
        # The memory of what the loop carries: that of its first value, if nothing else needs this.
        given = repeat.inputs[position]
        source = scope.memory[given]
        others = {*later, *repeat.inputs[:position], *repeat.inputs[position + 1 :]}
        if scope.is_free(given, others):
            return source
        made = self._buffer(tensor.name, tensor.dtype, scope.program.tensor(given).shape, scope)
        self._add(copy_nest(self._exact(made, scope.program.tensor(given), scope), source, self.names))
        return made

    def _unchanged(self, given: str, scope: _Scope) -> str:
        # What a loop without rounds makes of a tensor. Arguments may change while it is needed.
        source = scope.memory[given]
        if scope.inside or source in scope.own:
            return source
        scope.own.add(made := self._copy(source, "temporary"))
        return made

    def _exact(self, name: str, tensor: Tensor, scope: _Scope) -> Buffer:
        # The buffer with the extents of this round.
        return replace(self.buffers[name], shape=tuple(with_sizes(extent, scope.sizes) for extent in tensor.shape))

    def _sizes(self, repeat: Repeat, number: str, scope: _Scope) -> dict[Expr, Expr]:
        # What the sizes of the body are, seen from outside.
        counter, *inputs = repeat.body.inputs
        shapes = {
            tensor.name: [with_sizes(extent, scope.sizes) for extent in scope.program.tensor(given).shape]
            for tensor, given in zip(inputs, repeat.inputs, strict=True)
        }
        found: dict[Expr, Expr] = {}
        for size in repeat.body.sizes:
            match size.source:
                case AxisExtent(tensor=tensor, axis=axis):
                    value = (
                        SizeValue(number) if tensor == counter.name else as_extent(shapes[tensor][axis], self.extents)
                    )
                case source:
                    value = with_sizes(source, found)
            found[SizeValue(size.name)] = value
        return found

    def _count(self, repeat: Repeat, scope: _Scope) -> tuple[Expr, Expr | None, str | None]:
        # The number of rounds, what it is at most, and the buffer that keeps it where the sizes alone do not say it.
        count = scope.placed(repeat.count)
        bounds = None if any(True for _ in reads(count)) else bounds_over_rounds(count, self.ranges)
        most = None if repeat.most is None else bounds_over_rounds(scope.placed(repeat.most), self.ranges)
        if bounds == (count, count):
            return count, count, None
        held = self._buffer("rounds", "int64", (), scope)
        title = f"number of rounds of {', '.join(repeat.results)}"
        nodes: tuple[Node, ...] = (Store(held, (), count),)
        if is_affine_index(count):
            # As a bound of loops it is exact: a value would wrap around.
            bound = Define(self.names.fresh("bound"), count, index=True)
            nodes = bound, Store(held, (), Local(bound.name, "int64"))
        self._add(Nest(self.names.fresh("count"), title, nodes, integer(1)))
        return count, None if most is None else most[1], held

    def _begin(self, repeat: Repeat, scope: _Scope) -> str:
        held = self._buffer("begin", "int64", (), scope)
        title = f"first round of {', '.join(repeat.results)}"
        self._add(Nest(self.names.fresh("begin"), title, (Store(held, (), scope.placed(repeat.begin)),), integer(1)))
        return held

    def _carry(
        self, changes: Sequence[tuple[str, str]], memory: Mapping[str, str], within: _Scope
    ) -> tuple[tuple[str, str], ...]:
        # What a round has made becomes what the next one reads.
        scalars = [(into, source) for into, source in changes if not self.buffers[into].shape]
        if scalars:
            self._add(scalars_carried([(self.buffers[into], source) for into, source in scalars], self.names))
        arrays = dict(change for change in changes if change not in scalars)
        movable = within.own | set(arrays)
        extra = {into: self.names.free(f"{into}_copy") for into in arrays}
        found = carrying(arrays, movable, extra)
        for name, source in found.extra:
            self.names.take((name,))
            target = next(into for into, called in extra.items() if called == name)
            self.buffers[name] = replace(self.buffers[target], name=name, tensors=(name,))
            self._add(copy_nest(self.buffers[name], source, self.names))
        for name, source in found.copies:
            self._add(copy_nest(self.buffers[name], source, self.names))
        for one, other in found.swaps:
            self.moving |= {one, other}
            self.buffers[other] = replace(self.buffers[other], shape=self.buffers[one].shape)
        return found.swaps


def _needs(straight: Program) -> set[str]:
    # What a stage reads, returns or updates.
    found = {name for statement in straight.statements for name in tensors_read(statement)}
    return found | {*straight.outputs, *(new for _, new in straight.updates)}


def _cells_read(repeat: Repeat) -> set[str]:
    """The tensors of which a loop reads cells: of others only the extents matter, as of the numbers of rounds."""
    body = repeat.body
    inside = {*body.outputs, *(name for pair in body.updates for name in pair)}
    inside.update(name for statement in body.statements for name in tensors_read(statement))
    inside.update(*map(_cells_read, body.repeats))
    given = zip(body.inputs[1:], repeat.inputs, strict=True)
    return {name for tensor, name in given if tensor.name in inside} | repeat.read_by_ends


def _results(repeat: Repeat) -> list[tuple[str, str]]:
    # Each result, and the tensor that it is at first.
    return [(name, given) for name, (_, _, given) in zip(repeat.results, repeat.carried, strict=True)]


def _never_runs(repeat: Repeat) -> bool:
    # Known for sizes that are constants, as those of bound arrays. Nothing can be said of the body then.
    none = isinstance(repeat.count, Constant) and repeat.count.value <= 0
    return none or bool(size_context(repeat.body).is_empty())


def _last(most: Expr) -> Expr:
    # The number of the last round, or 0.
    return normalized(apply("sub", apply("max", most, integer(1)), integer(1)))


def _host_nest(
    title: str, arrays: Sequence[tuple[str, str, Sequence[Expr]]], given: int, names: FreshNames, span: Span | None
) -> tuple[Procedure, Nest]:
    # The procedure and the nest that call host code on arrays: buffers, their types and extents. The first ``given`` of
    # these are read, the first of all being the cells of the code; the others are written.
    failed = names.fresh("failed")
    parameters = [
        Buffer(f"p{k}", dtype, tuple([SizeValue(f"n{k}_{axis}") for axis in range(len(extents))]), "input", (f"p{k}",))
        for k, (_, dtype, extents) in enumerate(arrays)
    ]
    parameters.append(Buffer("failed", "int64", (integer(1),), "update", ("failed",)))
    procedure = Procedure(names.fresh("host"), tuple(parameters), (), host=True)
    views = [BufferView(name, (integer(0),) * len(extents), tuple(extents)) for name, _, extents in arrays]
    views.append(BufferView(failed, (integer(0),), (integer(1),)))
    status = plain_read(failed, (integer(0),), "int64")
    nodes = (
        LocalBuffer(failed, "int64", (integer(1),), (1,)),
        ProcedureCall(procedure.name, tuple(views[:given]), tuple(views[given:])),
        Check(apply("eq", status, integer(0)), HOSTED, 0, status, integer(1), span),
    )
    return procedure, Nest(names.fresh("hosted"), title, nodes, integer(1))
