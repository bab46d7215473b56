"""Loops of which a derivative keeps some of the states at a time, where its tapes would take too much memory."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.reversed_rounds import at_most_one
from tcdsl.ir.program import Program

__all__ = ["with_checkpoints"]


def with_checkpoints(program: Program, count: int) -> Program:
    """``program`` whose derivative keeps so many states of each of its outermost loops at a time; all if 0."""
    if not count:
        return program
    repeats = tuple(
        replace(repeat, checkpointed=True, checkpoints=count)
        if not at_most_one(repeat) and not repeat.checkpointed
        else repeat
        for repeat in program.repeats
    )
    return program if repeats == program.repeats else replace(program, repeats=repeats)
