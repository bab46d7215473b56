"""Loops whose steps are made several at once: as many vectors as fit, and what they leave over.

Where the processor has masks for the lanes of its vectors, the last vector has fewer lanes; elsewhere what is left
over is done cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cpu.emission.settled_names import Name
from tcdsl.targets.cpu.emission.vector_loops import VectorLoop
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

# LLVM shall leave them as they are.
_DONE = ('!{!"llvm.loop.isvectorized", i32 1}', '!{!"llvm.loop.unroll.disable"}')

__all__ = [
    "FEW_TERMS",
    "OWN_VECTORS",
    "VectorScan",
    "VectorSum",
    "counted",
    "once",
    "plan_of",
    "sums_of",
    "where_found",
    "whole_blocks",
]

_LINE = 64
"""Bytes of a line of the cache."""
_NARROWEST = 128
"""Bits of the smallest vectors."""
OWN_VECTORS = 4
"""Vectors in which steps with loops of their own are made."""
FEW_TERMS = 7
"""So many terms, and more, are added up in lanes: joining these takes about as long as adding six terms in turn."""
_MUCH = 25
"""What an elementary function and a little arithmetic are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the steps of a loop are made: lanes of a vector, and vectors side by side."""

    lanes: int
    vectors: int


def plan_of(loop: VectorLoop, machine: Machine) -> Plan:
    """How the steps of ``loop`` are made on ``machine``."""
    if loop.own:
        # Sums in registers, as many as wait for each other, share what the loops inside take.
        return Plan(OWN_VECTORS * machine.vector_bytes // loop.cell, 1)
    # A sum waits for the one before: several beside each other do not. Other steps overlap by themselves.
    most = 4 if loop.work <= _MUCH else 2 if loop.work <= 2 * _MUCH else 1
    vectors = max(1, min(most, 8 // len(loop.sums))) if loop.sums and not loop.scans else 1
    # What is read beside a vector straddles two lines of the cache; of vectors of half a line every second one does.
    narrow = loop.shifted and not loop.sums and loop.work <= _MUCH and machine.vector_bytes == _LINE
    return Plan(machine.vector_bytes // loop.cell // (2 if narrow else 1), vectors)


def sums_of(loops: Sequence[VectorLoop], name: Name, held: Scalar, machine: Machine) -> VectorSum | None:
    """The lanes in which all of ``loops`` accumulate ``name``, if these are the same."""
    plans = [plan_of(each, machine) for each in loops]
    alike = {(plan.lanes, each.sums[name]) for plan, each in zip(plans, loops, strict=True)}
    if len(alike) > 1:
        return None
    ((lanes, operation),) = alike
    return VectorSum(held, operation, lanes, max(plan.vectors for plan in plans))


def counted(builder: ir.Builder, first: Scalar, last: Scalar, step: int, body: Callable[[Scalar], None]) -> None:
    """``for i in range(first, last, step): body(i)``, for steps forward; what does not change is computed before."""
    start, head, after = (builder.append_block() for _ in range(3))
    builder.cbranch(builder.compare_signed("<", first.value, last.value), start, after)
    builder.enter(start, loop=True)
    builder.branch(head)
    builder.enter(head, loop=True)
    counter = builder.phi(WORD)
    counter.add_incoming(first.value, start)
    counter.least = first.least
    body(first.like(counter))
    note = f", !llvm.loop {builder.module.own_note(*map(builder.module.note, _DONE))}"
    following = builder.add(counter, ir.ConstantOperand(WORD, step), steady=True)
    counter.add_incoming(following, builder.block)
    builder.cbranch(builder.compare_signed("<", following, last.value), head, after, note)
    builder.leave(start)
    builder.leave(after)


def where_found(
    builder: ir.Builder, first: Scalar, last: Scalar, step: int, found: Callable[[Scalar], ir.Operand]
) -> Scalar:
    """Where the first of the blocks of so many steps begins of which ``found`` tells that there is what is looked for,
    or the one that ends behind ``last``.
    """
    start, head, further, after = (builder.append_block() for _ in range(4))
    place = builder.place(WORD)
    builder.store(first.value, place)
    end = builder.sub(last.value, ir.ConstantOperand(WORD, step - 1), steady=True)
    builder.cbranch(builder.compare_signed("<", first.value, end), start, after)
    builder.enter(start, loop=True)
    builder.branch(head)
    builder.enter(head, loop=True)
    at = builder.phi(WORD)
    at.add_incoming(first.value, start)
    builder.store(at, place)
    test = found(first.like(at))
    following = builder.add(at, ir.ConstantOperand(WORD, step), steady=True)
    builder.cbranch(test, after, further)
    builder.enter(further)
    builder.store(following, place)
    at.add_incoming(following, builder.block)
    note = f", !llvm.loop {builder.module.own_note(*map(builder.module.note, _DONE))}"
    builder.cbranch(builder.compare_signed("<", following, end), head, after, note)
    builder.leave(head)
    builder.leave(start)
    builder.leave(after)
    return first.like(builder.load(WORD, place))


def once(builder: ir.Builder, first: Scalar, last: Scalar, body: Callable[[Scalar], None]) -> None:
    """``if first < last: body(first)``; what does not change in a loop is computed before."""
    inside, after = builder.append_block(), builder.append_block()
    builder.cbranch(builder.compare_signed("<", first.value, last.value), inside, after)
    builder.enter(inside, loop=True)
    body(first)
    builder.branch(after)
    builder.leave(after)


def whole_blocks(first: Scalar, last: Scalar, block: int) -> tuple[Scalar, bool]:
    """Where the blocks of so many steps end that fit between ``first`` and ``last``, and whether steps may be left."""
    builder = first.builder
    if isinstance(first.value, ir.ConstantOperand) and isinstance(last.value, ir.ConstantOperand):
        assert first.least is not None
        assert last.least is not None
        left = (last.least - first.least) % block
        return first.constant(last.least - left), left > 0
    count = builder.sub(last.value, first.value, steady=True)
    whole = builder.whole("and", count, ir.ConstantOperand(WORD, -block))
    return first.like(builder.add(first.value, whole, steady=True)), True


class VectorSum:
    """What a name accumulates, in the lanes of so many vectors; ``held`` is what it holds before."""

    def __init__(self, held: Scalar, operation: str, lanes: int, vectors: int) -> None:
        self._held = held
        self._operation = operation
        first = (_neutral(held, operation) or held).in_lanes(lanes)
        #: The vectors, where they are kept.
        self.kind = first.value.type
        self.places = [held.builder.place(self.kind) for _ in range(vectors)]
        for place in self.places:
            held.builder.store(first.value, place)

    def total(self, held: Scalar, flags: str) -> Scalar:
        """All that was accumulated, with what the name holds by now; ``flags`` are the liberties of sums."""
        builder = held.builder
        self._held = held
        parts = [Scalar(builder, builder.load(self.kind, place), held.dtype, flags) for place in self.places]
        join = partial(_joined, self._operation)
        while len(parts) > 1:
            parts = [reduce(join, parts[k : k + 2]) for k in range(0, len(parts), 2)]
        return self._reduced(parts[0])

    def _extreme_of(self, vector: Scalar) -> Scalar:
        # Half by half; the lanes of the smallest vectors change places.
        builder, value, lanes = vector.builder, vector.value, vector.lanes
        if lanes * vector.bits > _NARROWEST:
            halves = range(lanes // 2), range(lanes // 2, lanes)
            parts = (vector.like(builder.shuffled(value, value, each)) for each in halves)
            return self._extreme_of(_joined(self._operation, *parts))
        step = lanes // 2
        while step:
            turned = builder.shuffled(vector.value, vector.value, [(k + step) % lanes for k in range(lanes)])
            vector = _joined(self._operation, vector, vector.like(turned))
            step //= 2
        return vector.like(builder.lane(vector.value, ir.ConstantOperand(ir.IntType(32), 0)))

    def _reduced(self, vector: Scalar) -> Scalar:
        # One vector as one number, with what was there before.
        if self._operation in ("maximum", "minimum") and self._held.floating:
            return _joined(self._operation, self._held, self._extreme_of(vector))
        held, element = self._held, self._held.value.type
        names = {"multiply": "mul", "add": "add", "subtract": "add", "maximum": "max", "minimum": "min"}
        name = names[self._operation]
        begun = held.floating and name in ("mul", "add")
        if held.floating:
            name = f"f{name}"
        elif name in ("max", "min"):
            name = f"{'s' if held.signed else 'u'}{name}"
        given = [element, vector.value.type] if begun else [vector.value.type]
        function = held.builder.module.intrinsic(
            f"llvm.vector.reduce.{name}", [vector.value.type], ir.FunctionType(element, given)
        )
        if begun:
            total = held.builder.reduced(function, [held.value, vector.value], vector.flags or "")
            return held.like(total)
        return _joined(self._operation, held, held.like(held.builder.reduced(function, [vector.value], "")))


class VectorScan:
    """What a name accumulates while the steps use it, in all ``lanes`` of a vector; ``held`` is what it holds before.

    ::

        for k in range(n):                    for k in lanes(8):
            total += x[k]                         lane = x[k], joined with those 1, 2 and 4 before it
            y[k] = total                          y[k] = total + lane
                                                  total = total + the last lane

    A step waits for the one before once in a vector, not once in a cell. Maxima of floating numbers are those of whole
    numbers in the same order, which take one instruction each.
    """

    def __init__(self, held: Scalar, operation: str, lanes: int) -> None:
        self._ranked = held.floating and operation in ("maximum", "minimum")
        self._held = held = _rank(held, operation) if self._ranked else held
        self._operation = operation
        self._lanes = lanes
        first = held.in_lanes(lanes)
        self._kind = first.value.type
        self._place = held.builder.place(self._kind)
        held.builder.store(first.value, self._place)

    def steps(self, value: Scalar, mask: ir.Operand | None) -> Scalar:
        """What it holds after each step that adds a lane of ``value``, those where ``mask`` holds."""
        builder, lanes = self._held.builder, self._lanes
        before = self._held.like(builder.load(self._kind, self._place))
        nothing = _neutral(self._held, self._operation)
        # What is accumulated again changes neither a maximum nor a minimum.
        other = before if nothing is None else nothing.in_lanes(lanes)
        lane = value.in_lanes(lanes)
        lane = _rank(lane, self._operation) if self._ranked else lane
        if mask is not None:
            lane = lane.like(mask, "bool").choose(lane, other)
        lane = self._up_to(lane, None if nothing is None else other)
        last = lane.like(builder.shuffled(lane.value, lane.value, [lanes - 1] * lanes))
        builder.store(_joined(self._operation, before, last).value, self._place)
        return self._number(_joined(self._operation, before, lane))

    def total(self) -> Scalar:
        """All that was accumulated."""
        builder = self._held.builder
        vector = builder.load(self._kind, self._place)
        return self._number(self._held.like(builder.lane(vector, ir.ConstantOperand(ir.IntType(32), 0))))

    def _number(self, held: Scalar) -> Scalar:
        return _with_order_of_bits(held).reinterpret(f"float{held.bits}") if self._ranked else held

    def _up_to(self, lane: Scalar, nothing: Scalar | None) -> Scalar:
        # Each lane joined with all before it.
        builder, lanes = self._held.builder, self._lanes
        if lane.dtype == "bool" and lanes > 1:
            return self._bits_up_to(lane)
        step = 1
        while step < lanes:
            order = [k - step if k >= step else k if nothing is None else lanes + k for k in range(lanes)]
            before = lane.like(builder.shuffled(lane.value, (nothing or lane).value, order))
            lane = _joined(self._operation, before, lane)
            step *= 2
        return lane

    def _bits_up_to(self, lane: Scalar) -> Scalar:
        # Carries go from bit to bit: ``-b`` has those from the lowest one on, ``b + 1`` changes those up to a zero.
        builder, kind = self._held.builder, ir.IntType(self._lanes)
        bits = Scalar(builder, builder.cast("bitcast", lane.value, kind), f"uint{self._lanes}")
        found = bits | -bits if self._operation == "or" else bits & ~(bits + 1)
        return lane.like(builder.cast("bitcast", found.value, lane.value.type))


def _rank(number: Scalar, operation: str) -> Scalar:
    # A whole number: as large beside others as the floating one, -0.0 below 0.0, and NaN beyond all.
    rank = _with_order_of_bits(number.reinterpret(f"int{number.bits}"))
    end = 2 ** (rank.bits - 1) - 1
    return number.differs(number).choose(rank.constant(end if operation == "maximum" else -end - 1), rank)


def _with_order_of_bits(bits: Scalar) -> Scalar:
    # The larger the bits behind the sign of a negative number, the smaller it is; done again, it is as it was.
    behind: int = 2 ** (bits.bits - 1) - 1
    return bits ^ (bits >> bits.bits - 1 & behind)


def _neutral(held: Scalar, operation: str) -> Scalar | None:
    # What changes nothing; None of what is accumulated as often as one likes.
    if operation in ("maximum", "minimum"):
        return None
    if operation in ("or", "and"):
        return held.constant(operation == "and")
    return held.constant(1 if operation == "multiply" else -0.0 if held.floating else 0)


def _joined(operation: str, one: Scalar, other: Scalar) -> Scalar:
    if operation in ("maximum", "minimum"):
        return FORMULAS[operation](one, other)
    if operation in ("or", "and"):
        return one | other if operation == "or" else one & other
    return one * other if operation == "multiply" else one + other
