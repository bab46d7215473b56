"""Rounds of loops that look for interrupts: as many at a time as are left until the next look.

::

    while begin < last:
        end = min(last, begin + left)
        for t in range(begin, end):
            ...
        left -= end - begin
        if left <= 0:
            if interrupted(frame):
                return
            left = 2**20
        begin = end

So a round costs no more than that of another loop, and LLVM sees loops that it knows. Loops that data end look after
each round, or after four, where these are short. Cells of the rows that rounds go
through count as rounds do. Since only the code knows how long rows are, rounds with rows run in blocks that begin
short. They become twice as long while they are less work than there is between two looks, half as long where more.
"""

from __future__ import annotations

from collections.abc import Callable

from tcdsl.lowering.loopir.loops import Check, Loop
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, interrupted
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["InterruptibleRounds"]

_MANY = 1 << 20
"""After so many rounds of all its loops, some milliseconds, a function looks for interrupts."""
_FEW = 16
"""So many rounds with rows run first."""
_ENDLESS = 1 << 62
"""So many rounds take centuries."""

_SHORT = 16
"""Of so many nodes a round is about as much work as a look."""


class InterruptibleRounds:
    """The rounds of all such loops of a function; ``left`` of them may run before the next look."""

    def __init__(self, builder: ir.Builder) -> None:
        self._builder = builder
        self._left = builder.place(WORD, first=ir.ConstantOperand(WORD, _MANY))

    def loop(
        self,
        frame: ir.Operand,
        first: Scalar,
        last: Scalar,
        condition: Callable[[], ir.Operand] | None,
        some: Callable[[Scalar, Scalar, Callable[[ir.Operand], None] | None], None],
        *,
        rows: bool = False,
    ) -> None:
        """Rounds from ``first`` to ``last``, each of which runs only if the ``condition``, where there is one, holds.

        With ``rows`` they may be more work than a few scalars; `passed` counts it.

        ``some(begin, end, going_on)`` writes those that come before the next look; ``going_on(following)``, if it is
        given, is to be called behind a round, with the number of the next one.
        """
        builder = self._builder
        start, head, after = (builder.append_block() for _ in range(3))
        builder.cbranch(builder.compare_signed("<", first.value, last.value), start, after)
        builder.enter(start)
        if condition is not None:
            begun = builder.append_block()
            builder.cbranch(condition(), begun, after)
            builder.go_on(begun)
        before = builder.block
        builder.branch(head)
        builder.enter(head, loop=True)
        begin = builder.phi(WORD)
        begin.add_incoming(first.value, before)
        begin.least = first.least
        left = first.like(builder.load(WORD, self._left))
        count = FORMULAS["minimum"](first.like(builder.sub(last.value, begin, steady=True)), left)
        length = builder.place(WORD, first=ir.ConstantOperand(WORD, _FEW)) if rows else None
        if length is not None:
            count = FORMULAS["minimum"](count, first.like(builder.load(WORD, length)))
        end = builder.add(begin, builder.opaque(count.value), steady=True)

        def going_on(following: ir.Operand) -> None:
            # Behind a round the condition is that of the next one: so LLVM sees which branches of the round decide it.
            assert condition is not None
            more, out = builder.append_block(), builder.append_block()
            builder.cbranch(condition(), more, out)
            builder.enter(out)
            self._take(begin, following)
            builder.branch(after)
            builder.leave(more)

        some(first.like(begin), first.like(end), None if condition is None else going_on)
        self._take(begin, end)
        if length is not None:
            self._adapt(length, left)
        self._look(frame)
        begin.add_incoming(end, builder.block)
        builder.cbranch(builder.compare_signed("<", end, last.value), head, after)
        builder.leave(start)
        builder.leave(after)

    def on_condition(
        self,
        frame: ir.Operand,
        loop: Loop,
        first: Scalar,
        last: Scalar,
        condition: Callable[[], ir.Operand],
        one: Callable[[Scalar], None],
    ) -> None:
        """The same for rounds of a few scalars of ``loop``, as long as the ``condition`` holds; ``one`` writes one."""
        builder = self._builder
        start, begun, head, after = (builder.append_block() for _ in range(4))
        builder.cbranch(builder.compare_signed("<", first.value, last.value), start, after)
        builder.enter(start)
        builder.cbranch(condition(), begun, after)
        builder.go_on(begun)
        builder.branch(head)
        builder.enter(head, loop=True)
        number = builder.phi(WORD)
        number.add_incoming(first.value, begun)
        number.least = first.least
        following: ir.Operand = number
        left = _together(loop)
        while left:
            one(first.like(following))
            if builder.block.is_terminated:
                break
            following = builder.add(following, ir.ConstantOperand(WORD, 1), steady=True)
            # The condition comes first: so LLVM sees which branches of the round decide it.
            more = builder.append_block()
            builder.cbranch(condition(), more, after)
            builder.go_on(more)
            left -= 1
            if not left:
                self._take(number, following)
                self._look(frame)
                number.add_incoming(following, builder.block)
            onward = builder.append_block() if left else head
            if isinstance(last.value, ir.ConstantOperand) and (last.value.least or 0) >= _ENDLESS:
                builder.branch(onward)
            else:
                builder.cbranch(builder.compare_signed("<", following, last.value), onward, after)
            if left:
                builder.go_on(onward)
        builder.leave(start)
        builder.leave(after)

    def _look(self, frame: ir.Operand) -> None:
        # If no rounds are left, whether there is an interrupt.
        builder = self._builder
        none_left = builder.compare_signed("<=", builder.load(WORD, self._left), ir.ConstantOperand(WORD, 0))
        with builder.seldom(none_left):
            with builder.seldom(interrupted(builder, frame).value):
                builder.ret_void()
            builder.store(ir.ConstantOperand(WORD, _MANY), self._left)

    def passed(self, first: Scalar, last: Scalar) -> None:
        """A row of so many cells has been gone through."""
        cells = FORMULAS["maximum"](
            first.like(self._builder.sub(last.value, first.value, steady=True)), first.constant(0)
        )
        self._take(first.constant(0).value, cells.value)

    def _adapt(self, length: ir.Operand, before: Scalar) -> None:
        # The length of the next block, from how much was left before this one and after it.
        held, left = (before.like(self._builder.load(WORD, each)) for each in (length, self._left))
        work = before - left
        longer = (work < _MANY // 4).choose(FORMULAS["minimum"](held + held, held.constant(_MANY)), held)
        shorter = FORMULAS["maximum"](held >> 1, held.constant(1))
        self._builder.store((work > _MANY).choose(shorter, longer).value, length)

    def _take(self, begin: ir.Operand, end: ir.Operand) -> None:
        # These rounds have run.
        builder = self._builder
        count = builder.sub(end, begin, steady=True)
        builder.store(builder.sub(builder.load(WORD, self._left), count, steady=True), self._left)


def _together(loop: Loop) -> int:
    # How many rounds come before each look.
    nodes = list(walk_nodes(loop.body))
    # Each check has a number of its own.
    return 4 if len(nodes) <= _SHORT and not any(isinstance(each, Check | Loop) for each in nodes) else 1
