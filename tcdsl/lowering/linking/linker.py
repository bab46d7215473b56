"""Programs with loops as one kernel: the nests of all stages and bodies, in order, in one name space.

Each stretch of straight code, in the program and in bodies, is lowered on its own and placed here: its buffers get
names of their own, the sizes of a body become expressions of the sizes around it and of the number of the round. What a
loop carries lies in temporaries, which bodies change in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tcdsl.errors import Diagnostic, ShapeError
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Constant, Expr, Read, SizeValue, reads, size_names, transform
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.program import AxisExtent, Program, Repeat, Tensor, tensors_read
from tcdsl.ir.stages import needed_by, stage_programs
from tcdsl.lowering.linking.carrying import carrying
from tcdsl.lowering.linking.copies import copy_nest, scalars_carried
from tcdsl.lowering.linking.placing import loop_variables, placed, scalar_names, with_sizes
from tcdsl.lowering.linking.round_bounds import Bounds, bounds_over_rounds
from tcdsl.lowering.loopir.loops import Buffer, Kernel, Loop, Nest, Rounds, Store
from tcdsl.lowering.loopir.traversal import buffers_read, serial
from tcdsl.lowering.nests.nests import joined
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.size_facts import size_context

__all__ = ["LowerPart", "linked"]

LowerPart = Callable[[Program, bool], Kernel]
"""Lowers straight code. With True its inputs are the kernel's own memory, which may be changed whatever fails later."""

_MUCH = 1 << 40  # Points, where nothing is known.


def linked(program: Program, lower_part: LowerPart, *, join: bool) -> Kernel:
    """``program``, which has loops, as a kernel, whose indices have no widths yet; ``join`` joins serial nests."""
    return _Linker(program, lower_part, join).kernel()


@dataclass(slots=True)
class _Scope:
    """The names of a program or a body: the buffer of each tensor, an expression for each size.

    ``own`` are the buffers that it has made; ``private`` says that it may change those of its inputs.
    """

    program: Program
    memory: dict[str, str]
    sizes: dict[Expr, Expr]
    private: bool
    own: set[str] = field(default_factory=set)


class _Linker:
    def __init__(self, program: Program, lower_part: LowerPart, join: bool) -> None:
        self.program = program
        self.lower_part = lower_part
        self.join = join
        self.names: FreshNames = names_of(program)
        self.variables: set[str] = set()
        self.buffers: dict[str, Buffer] = {}
        self.nests: list[Nest] = []
        self.begun = 0  # From here on nests may be joined.
        self.ranges: dict[str, Bounds | None] = {}
        self.moving: set[str] = set()
        for statement in program.statements:
            self.variables.update(statement.domain.variables)

    def kernel(self) -> Kernel:
        program = self.program
        for tensor in program.inputs:
            self.buffers[tensor.name] = Buffer(tensor.name, tensor.dtype, tensor.shape, "input", (tensor.name,))
        scope = _Scope(program, {name: name for name in self.buffers}, {}, private=False)
        rounds, updates = self._stages(scope)
        outputs = tuple(self._output(name, scope) for name in program.outputs)
        copied = tuple(self._final([(into, source) for into, source in updates if into != source]))
        self._close()
        buffers = [self.buffers[name] for name in dict.fromkeys((*(t.name for t in program.inputs), *outputs))]
        buffers += [each for each in self.buffers.values() if each not in buffers]
        return Kernel(program, tuple(buffers), tuple(self.nests), outputs, copied, 0, (), tuple(rounds))

    # -- stages

    def _stages(self, scope: _Scope) -> tuple[list[Rounds], list[tuple[str, str]]]:
        # The loops of the program, and the updates that are left to do after the last stage.
        rounds: list[Rounds] = []
        updates: list[tuple[str, str]] = []
        parts = list(stage_programs(scope.program))
        needs = [_needs(straight, repeat) for straight, repeat in parts]
        for k, (straight, repeat) in enumerate(parts):
            updates = self._straight(straight, scope)
            if repeat is None:
                continue
            if _never_runs(repeat):
                scope.memory.update((name, scope.memory[given]) for name, (_, _, given) in _results(repeat))
            else:
                rounds.append(self._repeat(repeat, scope, set[str]().union(*needs[k + 1 :])))
        return rounds, updates

    def _straight(self, program: Program, scope: _Scope) -> list[tuple[str, str]]:
        made = {statement.target.tensor for statement in program.statements}
        program = replace(program, outputs=tuple(dict.fromkeys(name for name in program.outputs if name in made)))
        if not made:
            return [(scope.memory[into], scope.memory[new]) for into, new in program.updates]
        kernel = self.lower_part(program, scope.private)
        held: dict[str, str] = {}
        for buffer in kernel.buffers:
            if buffer.kind in ("input", "update"):
                if buffer.name not in scope.memory:
                    continue  # the number of the round, of which only the extent matters
                held[buffer.name] = name = scope.memory[buffer.name]
                if buffer.kind == "update" and self.buffers[name].kind == "input":
                    self.buffers[name] = replace(self.buffers[name], kind="update")
            else:
                held[buffer.name] = self._buffer(buffer.name, buffer.dtype, buffer.shape, scope)
        for nest in kernel.nests:
            self._place(nest, held, scope.sizes)
        scope.memory.update(zip(program.outputs, (held[name] for name in kernel.outputs), strict=True))
        return [(held[into], held[source]) for into, source in kernel.updates]

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
        self._add(replace(nest, name=self.names.fresh(nest.name), body=body, work=with_sizes(nest.work, sizes)))

    def _add(self, nest: Nest) -> None:
        found = bounds_over_rounds(nest.work, self.ranges)
        nest = replace(nest, work=integer(_MUCH) if found is None else found[1])
        match nest.body:
            case (Loop(kind="parallel", start=start, stop=stop),) if self._changes(start) or self._changes(stop):
                nest = replace(nest, body=serial(nest.body))
        self.nests.append(nest)

    def _close(self) -> None:
        # What comes next is not joined with what was before.
        if self.join:
            self.nests[self.begun :] = joined(self.nests[self.begun :])
        self.begun = len(self.nests)

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
        own = Buffer(self.names.fresh(buffer.name), buffer.dtype, buffer.shape, "output", ())
        self.buffers[own.name] = replace(own, tensors=(own.name,))
        self._add(copy_nest(own, buffer.name, self.names))
        return own.name

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

    def _repeat(self, repeat: Repeat, scope: _Scope, later: set[str]) -> Rounds:
        body = repeat.body
        counter, *inputs = body.inputs
        updated = dict(body.updates)
        memory = {
            tensor.name: self._state(tensor, position, repeat, scope, later)
            if tensor.name in updated
            else scope.memory[repeat.inputs[position]]
            for position, tensor in enumerate(inputs)
        }
        count, most = self._count(repeat, scope)
        label = next((size.name for size in body.sizes if size.source == AxisExtent(counter.name, 0)), counter.name)
        number = self.names.fresh(label)
        within = _Scope(replace(body, outputs=()), memory, self._sizes(repeat, number, scope), private=True)
        if not counter.shape:
            memory[counter.name] = self._buffer(f"{number}_held", "int64", (), within)
        self.ranges[number] = None if most is None else (integer(0), _last(most))
        self._close()
        first = len(self.nests)
        inner, changes = self._stages(within)
        swaps = self._carry([(into, source) for into, source in changes if into != source], memory, within)
        self._close()
        condition = None if repeat.condition is None else memory[repeat.condition]
        scope.memory.update(zip(repeat.results, (memory[name] for name in updated), strict=True))
        held = memory.get(counter.name)
        if held is not None and not any(held in buffers_read(nest.body) for nest in self.nests[first:]):
            held = None
        return Rounds(number, label, count, most, first, len(self.nests), condition, held, swaps, tuple(inner))

    def _state(self, tensor: Tensor, position: int, repeat: Repeat, scope: _Scope, later: set[str]) -> str:
        # The memory of what the loop carries: that of its first value, if nothing else needs this.
        given = repeat.inputs[position]
        source = scope.memory[given]
        others = {*later, *repeat.inputs[:position], *repeat.inputs[position + 1 :]}
        if source in scope.own and not any(scope.memory.get(name) == source for name in others):
            return source
        made = self._buffer(tensor.name, tensor.dtype, scope.program.tensor(given).shape, scope)
        self._add(copy_nest(self._exact(made, scope.program.tensor(given), scope), source, self.names))
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
                    value = SizeValue(number) if tensor == counter.name else _extent(shapes[tensor][axis], self.program)
                case source:
                    value = with_sizes(source, found)
            found[SizeValue(size.name)] = value
        return found

    def _count(self, repeat: Repeat, scope: _Scope) -> tuple[Expr, Expr | None]:
        # The number of rounds, of sizes or kept in a buffer, and what it is at most.
        def rule(node: Expr) -> Expr:
            return replace(node, tensor=scope.memory[node.tensor]) if isinstance(node, Read) else node

        count = transform(with_sizes(repeat.count, scope.sizes), rule)
        bounds = None if any(True for _ in reads(count)) else bounds_over_rounds(count, self.ranges)
        if bounds == (count, count):
            return bounds
        held = self._buffer("rounds", "int64", (), scope)
        title = f"number of rounds of {', '.join(repeat.results)}"
        self._add(Nest(self.names.fresh("count"), title, (Store(held, (), count),), integer(1)))
        return Read(held, (), (), "int64"), None if bounds is None else bounds[1]

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


def _needs(straight: Program, repeat: Repeat | None) -> set[str]:
    # What a stage and its loop read, return or update.
    found = {name for statement in straight.statements for name in tensors_read(statement)}
    found |= {*straight.outputs, *(new for _, new in straight.updates)}
    return found | (set() if repeat is None else needed_by(repeat))


def _results(repeat: Repeat) -> Iterator[tuple[str, tuple[str, str, str]]]:
    return zip(repeat.results, repeat.carried, strict=True)


def _never_runs(repeat: Repeat) -> bool:
    # Known for sizes that are constants, as those of bound arrays. Nothing can be said of the body then.
    none = isinstance(repeat.count, Constant) and repeat.count.value <= 0
    return none or bool(size_context(repeat.body).is_empty())


def _last(most: Expr) -> Expr:
    # The number of the last round, or 0.
    return normalized(apply("sub", apply("max", most, integer(1)), integer(1)))


def _extent(extent: Expr, program: Program) -> Expr:
    # An extent as arrays have it: none is below 0.
    inputs = {SizeValue(size.name) for size in program.sizes if isinstance(size.source, AxisExtent)}
    if extent in inputs or (isinstance(extent, Constant) and extent.value >= 0):
        return extent
    return apply("max", extent, integer(0))
