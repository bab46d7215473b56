"""Loops whose steps are made several at once: as many vectors as fit, and what they leave over.

Where the processor has masks for the lanes of its vectors, the last vector has fewer lanes; elsewhere what is left
over is done cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cpu.emission.settled_names import Name
from tcdsl.targets.cpu.emission.vector_loops import VectorLoop
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

# LLVM shall leave them as they are.
_DONE = ('!{!"llvm.loop.isvectorized", i32 1}', '!{!"llvm.loop.unroll.disable"}')

__all__ = ["VectorSum", "counted", "once", "plan_of", "sums_of", "where_found", "whole_blocks"]

_LINE = 64
"""Bytes of a line of the cache."""
_NARROWEST = 128
"""Bits of the smallest vectors."""
_MUCH = 25
"""What an elementary function and a little arithmetic are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the steps of a loop are made: lanes of a vector, and vectors side by side."""

    lanes: int
    vectors: int


def plan_of(loop: VectorLoop, machine: Machine) -> Plan:
    """How the steps of ``loop`` are made on ``machine``."""
    # A sum waits for the one before: several beside each other do not. Other steps overlap by themselves.
    most = 4 if loop.work <= _MUCH else 2 if loop.work <= 2 * _MUCH else 1
    vectors = max(1, min(most, 8 // len(loop.sums))) if loop.sums else 1
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
        if operation in ("maximum", "minimum"):
            first = held.in_lanes(lanes)
        else:
            nothing = 1 if operation == "multiply" else -0.0 if held.floating else 0
            first = held.constant(nothing).in_lanes(lanes)
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
        while len(parts) > 1:
            parts = [reduce(self._join, parts[k : k + 2]) for k in range(0, len(parts), 2)]
        return self._reduced(parts[0])

    def _join(self, one: Scalar, other: Scalar) -> Scalar:
        if self._operation in ("maximum", "minimum"):
            return FORMULAS[self._operation](one, other)
        return one * other if self._operation == "multiply" else one + other

    def _extreme_of(self, vector: Scalar) -> Scalar:
        # Half by half; the lanes of the smallest vectors change places.
        builder, value, lanes = vector.builder, vector.value, vector.lanes
        if lanes * vector.bits > _NARROWEST:
            halves = range(lanes // 2), range(lanes // 2, lanes)
            return self._extreme_of(self._join(*(vector.like(builder.shuffled(value, value, each)) for each in halves)))
        step = lanes // 2
        while step:
            turned = builder.shuffled(vector.value, vector.value, [(k + step) % lanes for k in range(lanes)])
            vector = self._join(vector, vector.like(turned))
            step //= 2
        return vector.like(builder.lane(vector.value, ir.ConstantOperand(ir.IntType(32), 0)))

    def _reduced(self, vector: Scalar) -> Scalar:
        # One vector as one number, with what was there before.
        if self._operation in ("maximum", "minimum") and self._held.floating:
            return self._join(self._held, self._extreme_of(vector))
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
        return self._join(held, held.like(held.builder.reduced(function, [vector.value], "")))
