"""Loops of which a derivative keeps some of the states at a time, where its tapes would take too much memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.reversed_rounds import count_of_sizes
from tcdsl.ir.program import Program, Repeat
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.ir.stages import at_most_one
from tcdsl.runtime.calling.entries import Traced
from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.calling.tape_memory import IN_LOOPS_TOO, Derived, allocated_bytes, with_states_that_fit

__all__ = ["derived_within_memory", "with_checkpoints"]


def with_checkpoints(program: Program, count: int) -> Program:
    """``program`` whose derivative keeps so many states of each of its outermost loops at a time; all if 0.

    With ``IN_LOOPS_TOO`` added it is of loops inside of loops as well. What loops ask for themselves stays, but of
    those that data end no more than ``count``.
    """
    if not count:
        return program
    repeats = tuple(_with_checkpoints(repeat, count) for repeat in program.repeats)
    return program if repeats == program.repeats else replace(program, repeats=repeats)


def _with_checkpoints(repeat: Repeat, count: int) -> Repeat:
    if count > IN_LOOPS_TOO:
        repeat = replace(repeat, body=with_checkpoints(repeat.body, count))
    states = count % IN_LOOPS_TOO
    if repeat.checkpoints and not count_of_sizes(repeat):
        # There is a place for each state that may be kept, also for those that no round will be there to fill.
        return replace(repeat, checkpoints=min(repeat.checkpoints, states))
    if at_most_one(repeat) or repeat.checkpointed:
        return repeat
    return replace(repeat, checkpointed=True, checkpoints=states)


def derived_within_memory(program: Program, derive: Callable[[Program], Traced]) -> Traced:
    """What ``derive`` makes of ``program``, whose extents are constants, with as many states as there is room for."""

    def derived(states: int) -> Derived[Traced]:
        made = derive(with_checkpoints(program, states))
        parts = [made.program] if made.linear is None else [made.program, made.linear]
        needed = allocated_bytes(list(map(Executable, parts)))
        return Derived(made, states, needed, int(evaluate_size(needed, {})))

    return with_states_that_fit(derived(0), derived).staged
