"""The nodes of a nest, or of a procedure, as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, plain_read
from tcdsl.ir.dtypes import DTYPES, WIDE_INTEGERS, compute_dtype, is_floating, numpy_dtype
from tcdsl.ir.expressions import Cast, Constant, Expr, Local, Read, walk
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    BufferView,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Node,
    Procedure,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.loopir.tiles import length_of_loop, most_steps
from tcdsl.lowering.loopir.traversal import size_extents, walk_nodes
from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, scalar
from tcdsl.targets.cpu.emission.expression_emission import ExpressionEmission
from tcdsl.targets.cpu.emission.primitive_code import ARITHMETIC, EXTREMES, operation
from tcdsl.targets.cpu.emission.rounds import InterruptibleRounds
from tcdsl.targets.cpu.emission.settled_names import Name, local_name, settled_names
from tcdsl.targets.cpu.emission.transposed_copies import TransposedCopy, transposed_copy, transposition
from tcdsl.targets.cpu.emission.vector_loops import (
    VectorLoop,
    first_place,
    flat_rows,
    is_short,
    part_of_row,
    sums_across,
    vector_loop,
)
from tcdsl.targets.cpu.emission.vector_steps import (
    FEW_TERMS,
    OWN_VECTORS,
    VectorScan,
    VectorSum,
    counted,
    once,
    plan_of,
    sums_of,
    where_found,
    whole_blocks,
)
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import (
    WORD,
    BufferKind,
    BufferValue,
    box,
    cell_address,
    fail,
    local_buffer,
    store,
)
from tcdsl.targets.cpu.intrinsics.lanes import Lanes
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.layout.kernel_code import shown_loops

__all__ = ["KernelContext", "KnownWords", "NestEmission"]


@dataclass(slots=True)
class KernelContext:
    """What a function needs to know of its kernel.

    ``call(builder, name, arguments)`` writes a call of one of the ``procedures``. Checks have the ``numbers``, and show
    the loops that are ``shown``. ``checked`` code tests every access, and knows local buffers by their ``slots``. Loops
    use the vectors of the ``machine``, if it is known.
    """

    call: Callable[[ir.Builder, str, list[BufferValue | Scalar]], None]
    procedures: Mapping[str, Procedure] = field(default_factory=dict)
    machine: Machine | None = None
    checked: bool = False
    numbers: Iterator[int] = field(default_factory=lambda: iter(()))
    shown: frozenset[str] = frozenset()
    slots: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class KnownWords:
    """The sizes and buffers of a function."""

    sizes: dict[str, Scalar] = field(default_factory=dict)
    buffers: dict[str, BufferValue] = field(default_factory=dict)


class NestEmission(ExpressionEmission):
    """``NestEmission(function, flags, around).body(nodes)`` writes the function.

    ``flags`` are the liberties of floating-point operations; `given` says what the function's parameters are.
    """

    def __init__(self, function: ir.Function, flags: str, around: KernelContext) -> None:
        super().__init__(function, flags)
        #: The loops that LLVM has to improve, and why.
        self.plain_loops: list[tuple[Loop | None, Declined | None]] = []
        self._around = around
        self._machine = around.machine
        self._frame: Scalar | None = None
        #: The rounds of its loops that look for interrupts, if there are any.
        self._rounds: InterruptibleRounds | None = None
        #: The loop whose bounds are given, and these; and the loops around.
        self._split: tuple[Loop, Scalar, Scalar] | None = None
        self._loops: list[Loop] = []
        #: Whether the loops at hand are those of rows that do not lie one behind the other.
        self._flat = False
        #: What is accumulated in lanes over several loops.
        self._across: dict[Name, VectorSum] = {}
        #: What its steps accumulate and use, where they are made at once.
        self._scans: dict[Name, VectorScan] = {}
        self._slots = dict(around.slots)

    @property
    def builder(self) -> ir.Builder:
        """Where the function is written."""
        return self._builder

    def given(
        self, words: KnownWords, frame: Scalar | None = None, split: tuple[Loop, Scalar, Scalar] | None = None
    ) -> None:
        """What the sizes and buffers of the nodes are, and the frame; and a loop whose bounds are parameters."""
        self._sizes.update(words.sizes)
        self._memory.update(words.buffers)
        self._frame, self._split = frame, split

    def body(self, nodes: Sequence[Node]) -> None:
        """Write ``nodes`` and the function's end."""
        self._settled = settled_names(nodes)
        self._block(nodes)
        self._end()

    # -- nodes

    def _block(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._node(node)

    def _node(self, node: Node) -> None:
        match node:
            case Define(name=name, value=value):
                self._assign(local_name(name, value.dtype), self._scalar(value), varies=not node.index)
            case Accumulate():
                self._accumulate(node)
            case Store(buffer=buffer, indices=indices, value=value):
                self._stored(buffer, indices, value)
            case Update():
                self._update(node)
            case Loop():
                self._loops.append(node)
                self._loop(node)
                self._loops.pop()
            case Branch():
                self._branch(node)
            case Check():
                self._check(node)
            case LocalBuffer():
                self._local(node)
            case ProcedureCall():
                self._call(node)

    def _assign(self, name: Name, value: Scalar, *, varies: bool = False) -> None:
        if name in self._settled:
            self._values[name] = value
            return
        if self._lanes is not None and (value.floating or varies):
            value = value.in_lanes(self._lanes.count)
        place = self._placed(name, value)
        # What is behind the last step is never stored.
        own = self._vectors is not None and bool(self._vectors.own)
        masked = self._here is not None and self._here.mask is not (self._here.there if own else None)
        if self._here is not None and self._here.mask is not None and masked:
            value = value.like(self._here.mask, "bool").choose(value, self._named(name))
        self._builder.store(value.value, place)

    def _accumulate(self, node: Accumulate) -> None:
        name, value = local_name(node.name, node.value.dtype), node.value
        if name in self._scans and self._here is not None:
            added = self._scalar(value)
            lane = -added if node.accumulate == "subtract" else added
            self._values[name] = self._scans[name].steps(lane, self._here.mask)
        elif node.accumulate in ARITHMETIC:
            held = self._named(name, self._accumulating)
            self._assign(name, operation(ARITHMETIC[node.accumulate], held, self._scalar(value)), varies=True)
        elif node.accumulate in EXTREMES:
            joined = FUNCTIONS[EXTREMES[node.accumulate]](self._builder, self._held(*name), self._value(value))
            self._assign(name, joined, varies=True)
        else:
            joined = apply(ACCUMULATORS[node.accumulate].primitive, Local(node.name, value.dtype), value)
            self._assign(name, self._scalar(joined), varies=True)

    def _update(self, node: Update) -> None:
        buffer, indices, value = node.buffer, node.indices, node.value
        dtype = compute_dtype(self._memory[buffer].kind.dtype)
        if compute_dtype(value.dtype) != dtype:
            value = Cast(value, dtype)
        if node.accumulate in ARITHMETIC:
            # Storing wraps narrow integers and rounds float16.
            held = self._load(buffer, indices)
            self._store(buffer, indices, operation(ARITHMETIC[node.accumulate], held, self._scalar(value)))
        else:
            joined = apply(ACCUMULATORS[node.accumulate].primitive, plain_read(buffer, indices, dtype), value)
            self._stored(buffer, indices, joined)

    def _stored(self, buffer: str, indices: tuple[Expr, ...], value: Expr) -> None:
        self._cell = buffer, indices
        written = self._scalar(value)
        self._cell = None
        self._store(buffer, indices, written)

    def _store(self, buffer: str, indices: tuple[Expr, ...], value: Scalar) -> None:
        memory, positions = self._memory[buffer], self._positions(indices)
        lanes = self._lanes_of(indices)
        if lanes is None:
            store(self._builder, memory, positions, value)
        else:
            backwards = self._vectors is not None and (buffer, indices) in self._vectors.backwards
            lanes.store(memory, positions, value, backwards=backwards)

    def _branch(self, node: Branch) -> None:
        lanes = self._lanes
        own = lanes is not None and self._vectors is not None and self._vectors.own
        ends = part_of_row(node.condition, lanes.variable) if lanes is not None and own else None
        if lanes is not None and ends is not None:
            first, stop = self._positions(ends)
            self._in_lanes(lanes.between(first, stop), lambda: self._block(node.body))
            return
        test = self._scalar(node.condition)
        if test.lanes:
            self._where(test, lambda: self._block(node.body))
            if node.otherwise:
                self._where(~test, lambda: self._block(node.otherwise))
            return
        otherwise = (lambda: self._block(node.otherwise)) if node.otherwise else None
        self._if(test, lambda: self._block(node.body), otherwise)

    def _check(self, node: Check) -> None:
        number = next(self._around.numbers)

        def stop() -> None:
            given = (node.value, node.extent)
            exact = [each if each.dtype in ("int64", *WIDE_INTEGERS) else Cast(each, "int64") for each in given]
            value, extent = map(self._scalar, exact)
            shown = [self._held("", loop.variable) for loop in shown_loops(self._loops, self._around.shown)]
            assert self._frame is not None
            fail(self._builder, self._frame.value, number, value, extent, shown)
            self._builder.ret_void()

        # What ends the call is unlikely.
        self._if(~self._scalar(node.condition), stop, unlikely=True)

    def _local(self, node: LocalBuffer) -> None:
        builder = self._builder
        slot = self._slots.setdefault(node.name, len(self._slots))
        description = f"{node.dtype}[{', '.join(map(str, node.bounds))}]"
        if self._around.checked:
            assert self._frame is not None
            extents = [self._scalar(extent) for extent in node.shape]
            made = local_buffer(builder, slot, description, self._frame.value, extents)
        else:
            made = local_buffer(builder, slot, description)
        self._memory[node.name] = made

    def _call(self, node: ProcedureCall) -> None:
        self.plain_loops.append((None, None))
        frame = [] if self._frame is None or not self._around.checked else [self._frame]
        views = [self._view(view) for view in node.views]
        extents = size_extents(self._around.procedures[node.procedure], node).values()
        self._around.call(self._builder, node.procedure, [*frame, *views, *map(self._scalar, extents)])

    def _view(self, view: BufferView) -> BufferValue:
        starts = [self._scalar(start) for start in view.starts]
        extents = [None if extent is None else self._scalar(extent) for extent in view.extents]
        return box(self._builder, self._memory[view.buffer], starts, extents)

    # -- loops

    def _bounds(self, loop: Loop) -> tuple[Any, Any]:
        if self._split is None or self._split[0] is not loop:
            first, last = self._indices((loop.start, loop.stop))
            return first, last
        begin, end = self._split[1:]
        if loop.step == 1:
            return begin, end
        # Blocks count iterations, so that they begin on a step.
        (start,) = self._positions((loop.start,))
        ends = (operation(ARITHMETIC["multiply"], each, start.constant(loop.step), exact=True) for each in (begin, end))
        first, last = (operation(ARITHMETIC["add"], start, each, exact=True) for each in ends)
        return first, last

    def _loop(self, loop: Loop) -> None:
        if loop.kind == "vector":
            self._at_once(loop)
            return
        first, last = self._bounds(loop)
        self._looped(loop, first, last)
        if self._rounds is not None and self._is_row(loop):
            self._rounds.passed(scalar(self._builder, first), scalar(self._builder, last))

    def _is_row(self, loop: Loop) -> bool:
        # Whether it is work that rounds around it do: an innermost loop, whose length the code alone knows.
        if loop.rounds or self._lanes is not None or not any(each.rounds for each in self._loops):
            return False
        return not is_short(loop) and not any(isinstance(each, Loop) for each in walk_nodes(loop.body))

    def _looped(self, loop: Loop, first: Any, last: Any) -> None:
        copy = None if self._machine is None or self._lanes is not None else transposed_copy(loop, self._kind_of)
        if copy is not None and {("", copy.along_source), ("", copy.along_target)} <= self._settled:
            self._transposed(loop, copy, scalar(self._builder, first), scalar(self._builder, last))
            return
        vectors = self._vector_loop(loop)
        if loop.rounds:
            self._in_rounds(loop, scalar(self._builder, first), scalar(self._builder, last), vectors)
        elif vectors is not None:
            begin, end = scalar(self._builder, first), scalar(self._builder, last)
            condition = first_place(loop)
            if condition is not None and not loop.seldom:
                begin, end = self._around_first(loop, vectors, condition, begin, end)
            self._in_vectors(loop, vectors, begin, end)
        else:
            sums = self._sums_across(loop)
            self._across.update(sums)
            self._in_rows(
                loop,
                scalar(self._builder, first),
                scalar(self._builder, last),
                lambda: self._steps(first, last, lambda at: self._step(loop, at), loop.step, seldom=loop.seldom),
            )
            for name, each in sums.items():
                del self._across[name]
                self._joined(name, each)

    def _in_rows(self, loop: Loop, first: Scalar, last: Scalar, one_by_one: Callable[[], None]) -> None:
        # The loops along rows that lie one behind the other are one; elsewhere they run ``one_by_one``.
        rows = None
        if self._machine is not None and self._lanes is None and not self._flat:
            rows = flat_rows(loop, self._kind_of)
        known = None if rows is None else self._known_vectors(rows[0][-1], short=True)
        if rows is None or not known:
            one_by_one()
            return
        builder, (loops, cells) = self._builder, rows
        firsts, length, tests = [first], first.constant(1), []
        for depth in range(len(loops) - 1, 0, -1):
            begin, end = (scalar(builder, bound) for bound in self._bounds(loops[depth]))
            firsts.insert(1, begin)
            steps = begin.like(builder.sub(end.value, begin.value, steady=True))
            tests.append((steps > 0).value)
            length = begin.like(builder.mul(length.value, steps.value))
            strides = {self._memory[buffer].strides[depth - 1 - len(loops)] for buffer, _ in cells}
            tests += [builder.compare_signed("==", stride, length.value) for stride in strides]
        count = builder.mul(length.value, builder.sub(last.value, first.value, steady=True))

        def at_once() -> None:
            for each, begin in zip(loops, firsts, strict=True):
                self._values["", each.variable] = begin
            self._in_vectors(
                loops[-1], known, firsts[-1], first.like(builder.add(firsts[-1].value, count, steady=True))
            )

        def in_turn() -> None:
            self._flat = True
            one_by_one()
            self._flat = False

        self._if(first.like(reduce(partial(builder.whole, "and"), tests), "bool"), at_once, in_turn)

    def _sums_across(self, loop: Loop) -> dict[Name, VectorSum]:
        # What is accumulated in lanes from the beginning of ``loop`` to its end.
        machine = self._machine
        if machine is None or self._lanes is not None or not any(isinstance(each, Loop) for each in loop.body):
            return {}
        loops = sums_across(loop, self._known_vectors, lambda name: name not in self._across and self._adds(name))
        sums = {name: sums_of(each, name, self._named(name), machine) for name, each in loops.items()}
        return {name: each for name, each in sums.items() if each is not None}

    def _joined(self, name: Name, lanes: VectorSum) -> None:
        total = lanes.total(self._named(name), self._accumulating)
        self._builder.store(total.value, self._places[name][0])

    def _step(self, loop: Loop, at: Scalar) -> None:
        self._assign(("", loop.variable), at)
        self._block(loop.body)

    def _in_rounds(self, loop: Loop, first: Scalar, last: Scalar, vectors: VectorLoop | None) -> None:
        assert loop.step == 1
        assert self._frame is not None
        condition = loop.condition
        self._rounds = found = self._rounds or InterruptibleRounds(self._builder)
        holds = None if condition is None else lambda: self._scalar(condition).value
        rows = any(isinstance(each, Loop) and not each.rounds for each in walk_nodes(loop.body))
        if holds is not None and not rows and vectors is None:
            found.on_condition(self._frame.value, loop, first, last, holds, partial(self._step, loop))
            return

        def some(begin: Scalar, end: Scalar, going_on: Callable[[ir.Operand], None] | None) -> None:
            if vectors is not None:
                self._in_vectors(loop, vectors, begin, end)
            else:
                self._steps(begin, end, lambda at: self._step(loop, at), order="!=", going_on=going_on)

        found.loop(self._frame.value, first, last, holds, some, rows=rows)

    def _at_once(self, loop: Loop) -> None:
        # The steps of a loop, in lanes: its variable is that of the first one.
        count = most_steps(loop.start, loop.stop)
        assert count is not None
        start = self._scalar(loop.start)
        # As many as there are at most; where there may be less, also where they end.
        end = None if isinstance(length_of_loop(loop), Constant) else self._scalar(loop.stop)
        self._assign(("", loop.variable), start)
        self._lanes = Lanes.of(self._builder, loop.variable, count, start, end)
        self._block(loop.body)
        self._lanes = None

    def _vector_loop(self, loop: Loop) -> VectorLoop | None:
        # What is known of a loop whose steps may be lanes.
        if self._lanes is not None:
            return None
        nested = any(isinstance(each, Loop) for each in walk_nodes(loop.body))
        found = self._known_vectors(loop, short=nested)
        if not (nested or loop.seldom or isinstance(found, VectorLoop)):
            self.plain_loops.append((loop, found))
        return found or None

    def _known_vectors(self, loop: Loop, *, short: bool = False) -> VectorLoop | Declined | None:
        if self._machine is None or (is_short(loop) and not short):
            return None
        return vector_loop(loop, self._settled, self._kind_of, self._adds, masks=self._machine.masks)

    def _kind_of(self, buffer: str) -> BufferKind:
        return self._memory[buffer].kind

    def _adds(self, name: Name) -> bool:
        # Whether it may be added up in any order.
        if name not in self._places:
            return False
        dtype = self._places[name][2]
        return dtype in DTYPES and (not is_floating(dtype) or "reassoc" in self._accumulating)

    def _in_vectors(self, loop: Loop, known: VectorLoop, first: Scalar, last: Scalar) -> None:
        many = partial(self._in_many_vectors, loop, known, first, last)
        steady = isinstance(last.value, ir.ConstantOperand) or len(self._loops) < 2 or loop.seldom
        if known.own:
            self._if(first < last, lambda: self._in_wide_vectors(loop, known, first, last))
        elif steady or known.scans or not known.sums or self._across.keys() & known.sums.keys():
            many()
        else:
            # A sum of its own in each step of a loop around may have few terms.
            count = first.like(self._builder.sub(last.value, first.value, steady=True))
            in_turn = partial(counted, self._builder, first, last, 1, partial(self._step, loop))
            self._if(count < FEW_TERMS, in_turn, many)

    def _in_many_vectors(self, loop: Loop, known: VectorLoop, first: Scalar, last: Scalar) -> None:
        assert self._machine is not None
        builder, plan, variable = self._builder, plan_of(known, self._machine), ("", loop.variable)
        start, after = builder.append_block(), builder.append_block()
        builder.cbranch(builder.compare_signed("<", first.value, last.value), start, after)
        builder.enter(start)
        before = dict(self._places)
        own = {
            name: VectorSum(self._named(name), operation, plan.lanes, plan.vectors)
            for name, operation in known.sums.items()
            if name not in self._across and name not in known.scans
        }
        sums = own | {name: self._across[name] for name in known.sums if name in self._across}
        self._scans = {
            name: VectorScan(self._named(name), known.sums[name], plan.lanes) for name in sorted(known.scans)
        }
        for name in known.scans:
            del self._places[name]
        self._vectors = known
        # One loop is enough for what runs seldom.
        seldom = loop.seldom
        end, rest = (first, True) if seldom else whole_blocks(first, last, plan.lanes * plan.vectors)

        def vectors(at: Scalar, count: int, stop: Scalar | None) -> None:
            for k in range(count):
                for name, each in sums.items():
                    self._places[name] = each.places[k], each.kind, before[name][2]
                position = at.like(builder.add(at.value, ir.ConstantOperand(WORD, k * plan.lanes), steady=True))
                self._lanes = Lanes.of(builder, loop.variable, plan.lanes, position, stop)
                self._values[variable] = position
                self._block(loop.body)
            self._lanes = None

        if not seldom:
            counted(builder, first, end, plan.lanes * plan.vectors, lambda at: vectors(at, plan.vectors, None))
        if rest and self._machine.masks and plan.vectors == 1 and not seldom:
            once(builder, end, last, lambda at: vectors(at, 1, last))
        elif rest and self._machine.masks:
            counted(builder, end, last, plan.lanes, lambda at: vectors(at, 1, last))
        elif rest and plan.vectors > 1:
            whole, rest = whole_blocks(end, last, plan.lanes)
            counted(builder, end, whole, plan.lanes, lambda at: vectors(at, 1, None))
            end = whole
        self._vectors = None
        self._places.update(before)
        for name, each in own.items():
            self._joined(name, each)
        for name, scan in self._scans.items():
            builder.store(scan.total().value, self._places[name][0])
        self._scans = {}
        if rest and not self._machine.masks:
            counted(builder, end, last, 1, lambda at: self._step(loop, at))
        builder.branch(after)
        builder.leave(after)

    def _in_wide_vectors(self, loop: Loop, known: VectorLoop, first: Scalar, last: Scalar) -> None:
        # Steps that have loops: several vectors at a time, as one, then one at a time. Where vectors may be masked,
        # several are worth it for more than half of their lanes.
        assert self._machine is not None
        builder, masks, lanes = self._builder, self._machine.masks, plan_of(known, self._machine).lanes
        self._vectors, begin = known, first
        for count, more in ((lanes, lanes // 2 - 1), (lanes // OWN_VECTORS, lanes // OWN_VECTORS - 1)):

            def steps(at: Scalar, count: int = count) -> None:
                self._lanes = Lanes.of(builder, loop.variable, count, at, last if masks else None)
                self._step(loop, at)
                self._lanes = None
                # They have other places where there are more lanes.
                for name in known.own:
                    del self._places[name]

            length = builder.sub(last.value, begin.value, steady=True)
            length = builder.add(length, ir.ConstantOperand(WORD, more if masks else 0), steady=True)
            whole = builder.whole("and", length, ir.ConstantOperand(WORD, -count))
            end = first.like(builder.add(begin.value, whole, steady=True))
            counted(builder, begin, end, count, steps)
            begin = end
        self._vectors = None
        if not masks:
            counted(builder, begin, last, 1, lambda at: self._step(loop, at))

    def _around_first(
        self, loop: Loop, known: VectorLoop, condition: Expr, first: Scalar, last: Scalar
    ) -> tuple[Scalar, Scalar]:
        # Between which steps the first one is that the ``condition`` holds for.
        assert self._machine is not None
        builder, variable = self._builder, ("", loop.variable)
        lanes = self._machine.vector_bytes // max(
            numpy_dtype(self._kind_of(part.tensor).dtype).itemsize for part in walk(condition) if isinstance(part, Read)
        )

        def found(at: Scalar) -> ir.Operand:
            self._vectors, self._lanes = known, Lanes.of(builder, loop.variable, lanes, at, None)
            self._values[variable] = at
            test = self._scalar(condition).in_lanes(lanes).value
            self._vectors = self._lanes = None
            bits = ir.IntType(lanes)
            return builder.compare_unsigned("!=", builder.cast("bitcast", test, bits), ir.ConstantOperand(bits, 0))

        begin = where_found(builder, first, last, lanes, found)
        end = begin.like(builder.add(begin.value, ir.ConstantOperand(WORD, lanes), steady=True))
        return begin, (end < last).choose(end, last)

    def _transposed(self, loop: Loop, copy: TransposedCopy, first: Scalar, last: Scalar) -> None:
        builder = self._builder
        begin, stop = (scalar(builder, bound) for bound in self._bounds(copy.inner))
        firsts = {loop.variable: first, copy.inner.variable: begin}
        counts = {
            name: end.like(builder.sub(end.value, firsts[name].value, steady=True))
            for name, end in ((loop.variable, last), (copy.inner.variable, stop))
        }

        def line(buffer: str, indices: tuple[Expr, ...], across: str) -> tuple[ir.Operand, ir.Operand]:
            # Where the first cell is, and how many bytes behind it the first one of the next row.
            places = []
            for step in range(2):
                self._values.update({("", name): value for name, value in firsts.items()})
                start = firsts[across]
                here = builder.add(start.value, ir.ConstantOperand(WORD, step), steady=True)
                self._values["", across] = start.like(here)
                places.append(cell_address(builder, self._memory[buffer], self._positions(indices)))
            one, other = (builder.cast("ptrtoint", place, WORD) for place in places)
            return places[0], builder.sub(other, one)

        def whole() -> None:
            source = line(copy.source.tensor, copy.source.indices, copy.along_target)
            target = line(copy.target.buffer, copy.target.indices, copy.along_source)
            rows, columns = counts[copy.along_target], counts[copy.along_source]
            function = transposition(builder.module, copy.size)
            builder.call(function, [*source, *target, rows.value, columns.value])

        self._if(counts[loop.variable] > 0, lambda: self._if(counts[copy.inner.variable] > 0, whole))
