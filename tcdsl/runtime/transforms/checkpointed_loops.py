"""Loops of which a derivative keeps some of the states at a time, where its tapes would take too much memory."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.reversed_rounds import at_most_one
from tcdsl.ir.program import Program, Repeat
from tcdsl.runtime.calling.tape_memory import IN_LOOPS_TOO

__all__ = ["with_checkpoints"]


def with_checkpoints(program: Program, count: int) -> Program:
    """``program`` whose derivative keeps so many states of each of its outermost loops at a time; all if 0.

    With ``IN_LOOPS_TOO`` added it is of loops inside of loops as well. What loops ask for themselves stays.
    """
    if not count:
        return program
    repeats = tuple(_with_checkpoints(repeat, count) for repeat in program.repeats)
    return program if repeats == program.repeats else replace(program, repeats=repeats)


def _with_checkpoints(repeat: Repeat, count: int) -> Repeat:
    if count > IN_LOOPS_TOO:
        repeat = replace(repeat, body=with_checkpoints(repeat.body, count))
    if at_most_one(repeat) or repeat.checkpointed:
        return repeat
    return replace(repeat, checkpointed=True, checkpoints=count % IN_LOOPS_TOO)
