"""One function that is being written as LLVM instructions: its names, branches, choices and loops.

Every name has one type, the operands of an operator have the same one, and nothing is promoted. Names that are assigned
again are places on the stack, which LLVM turns into registers. What stands in branches is written by functions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from tcdsl.targets.cpu.emission.emitted_functions import scalar
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["ControlFlow", "require_one_type"]

# LLVM takes half the time for a loop of one vector at a time that it need not choose, which has no second one for what
# is left over. Of loops with branches, as checks are, it would complain on standard error.
_SHORT = ('!{!"llvm.loop.vectorize.width", i32 8}', '!{!"llvm.loop.interleave.count", i32 1}')


def require_one_type(left: Scalar, right: Scalar) -> None:
    """Refuse operands of two types."""
    if left.dtype != right.dtype:
        raise TypeError(f"operands of types {left.dtype} and {right.dtype}")


class ControlFlow:
    """Writes ``function``. ``flags`` are the liberties of floating-point operations, ``moving`` says whether what does
    not change in loops is computed before them.
    """

    def __init__(self, function: ir.Function, flags: str = "", *, moving: bool) -> None:
        # Only where a name accumulates may terms change places: LLVM would make 0 of `2 * x - (x + x)`, also for NaN.
        self._accumulating = flags
        self._builder = ir.Builder(function.append_block(), flags.replace("reassoc ", ""), moving=moving)
        #: Names that stand for one value where they are used, and places of those that are assigned again.
        self._values: dict[Hashable, Any] = {}
        self._places: dict[Hashable, tuple[ir.Operand, ir.Type, str]] = {}

    def _end(self) -> None:
        # Where the statements end, so does the function.
        if self._builder.block.is_terminated:
            return
        if isinstance(self._builder.function.kind.result, ir.VoidType):
            self._builder.ret_void()
        else:
            self._builder.unreachable()

    # -- names

    def _named(self, name: Hashable, flags: str | None = None) -> Scalar:
        place, kind, dtype = self._places[name]
        return Scalar(self._builder, self._builder.load(kind, place), dtype, flags)

    def _placed(self, name: Hashable, value: Scalar) -> ir.Operand:
        # The place of a name that is assigned ``value``.
        if name not in self._places:
            self._places[name] = self._builder.place(value.value.type), value.value.type, value.dtype
        place, kind, dtype = self._places[name]
        if dtype != value.dtype or kind != value.value.type:
            raise TypeError(f"{name} is {dtype} and is assigned {value.dtype}")
        return place

    # -- branches

    def _if(
        self, test: Scalar, yes: Callable[[], None], no: Callable[[], None] | None = None, *, unlikely: bool = False
    ) -> None:
        builder = self._builder
        before, taken, after = builder.block, builder.append_block(), builder.append_block()
        other = after if no is None else builder.append_block()
        builder.cbranch(test.value, taken, other, weights=(1, 99) if unlikely else None)
        for block, write in ((taken, yes), (other, no)):
            if write is not None:
                builder.enter(block)
                write()
                if not builder.block.is_terminated:
                    builder.branch(after)
                builder.leave(before)
        builder.go_on(after)

    def _either(self, test: Scalar, yes: Callable[[], Scalar], no: Callable[[], Scalar], *, lanes: int = 0) -> Scalar:
        # One of two values, of which only that is computed; in ``lanes``, if these are not 0.
        builder = self._builder
        before, taken, other, after = builder.block, *(builder.append_block() for _ in range(3))
        builder.cbranch(test.value, taken, other)
        ends = []
        for block, write in ((taken, yes), (other, no)):
            builder.enter(block)
            written = write().in_lanes(lanes)
            ends.append((written, builder.block))
            builder.branch(after)
            builder.leave(before)
        builder.go_on(after)
        (first, _), (second, _) = ends
        require_one_type(first, second)
        result = builder.phi(first.value.type)
        for value, block in ends:
            result.add_incoming(value.value, block)
        return first.like(result)

    def _short_circuit(self, conjunction: bool, first: Scalar, rest: Callable[[], Scalar]) -> Scalar:
        # ``first and rest`` or ``first or rest``, of which ``rest`` is only computed where it decides.
        builder = self._builder
        before, following, after = builder.block, builder.append_block(), builder.append_block()
        ways = (following, after) if conjunction else (after, following)
        builder.cbranch(first.value, *ways)
        builder.enter(following)
        second, end = rest(), builder.block
        builder.branch(after)
        builder.leave(before)
        builder.go_on(after)
        result = builder.phi(llvm_type("bool"))
        result.add_incoming(first.constant(not conjunction).value, before)
        result.add_incoming(second.value, end)
        return first.like(result)

    # -- loops

    def _steps(
        self,
        first: Any,
        last: Any,
        body: Callable[[Scalar], None],
        step: int = 1,
        *,
        order: str = "",
        seldom: bool = False,
        going_on: Callable[[ir.Operand], None] | None = None,
    ) -> None:
        """``for i in range(first, last, step): body(i)``.

        ``order`` is that of the next step and the last one; where it is "!=", LLVM sees the number of steps at once.
        ``going_on`` writes at the end of a step what leaves the loop before the next one.
        """
        builder = self._builder
        begin, end = scalar(builder, first), scalar(builder, last)
        order = order or ("<" if step > 0 else ">")
        # The test stands behind the body, where LLVM would put it.
        start, head, after = (builder.append_block() for _ in range(3))
        builder.cbranch(builder.compare_signed(order, begin.value, end.value), start, after)
        builder.enter(start)
        builder.branch(head)
        builder.enter(head, loop=True)
        counter = builder.phi(WORD)
        counter.add_incoming(begin.value, start)
        if step > 0:
            counter.least = begin.least
        body(begin.like(counter))
        if not builder.block.is_terminated:
            following = builder.add(counter, ir.ConstantOperand(WORD, step), steady=True)
            if going_on is not None:
                going_on(following)
            counter.add_incoming(following, builder.block)
            straight = seldom and builder.block is head
            note = f", !llvm.loop {builder.module.own_note(*map(builder.module.note, _SHORT))}" if straight else ""
            builder.cbranch(builder.compare_signed(order, following, end.value), head, after, note)
        builder.leave(start)
        builder.leave(after)

    def _while(self, test: Callable[[], Scalar], body: Callable[[], None]) -> None:
        builder = self._builder
        head, inside, after = (builder.append_block() for _ in range(3))
        builder.branch(head)
        builder.enter(head, loop=True)
        builder.cbranch(test().value, inside, after)
        builder.enter(inside)
        body()
        if not builder.block.is_terminated:
            builder.branch(head)
        builder.leave(head)
        builder.leave(after)
