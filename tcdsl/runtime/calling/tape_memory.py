"""Derivatives whose tapes would take too much memory: their loops keep some of their states at a time instead.

What a tape takes is known when the sizes of a call are. A derivative is therefore staged as it is, and for calls whose
memory exceeds the limit once more, with binomial checkpointing (`tcdsl.autodiff.loop_derivatives`) of its outermost
loops, and of those inside where that is not enough. Each serves the calls that it is for. So is a function that takes a
gradient while it is staged, and a routine of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from tcdsl.config import settings, tape_memory
from tcdsl.frontend.staging.session import BroadcastGuard
from tcdsl.ir.build import apply, integer, product_of
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Expr
from tcdsl.ir.sizes.known_sizes import never_negative, never_negative_in
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.polyhedra.linear import normalized
from tcdsl.runtime.calling.arguments import Call
from tcdsl.runtime.calling.entries import Entry
from tcdsl.runtime.calling.execution import Executable

__all__ = ["IN_LOOPS_TOO", "Derived", "allocated_bytes", "staged_within_memory", "with_states_that_fit"]

Staged = TypeVar("Staged")

#: Added to a number of states where loops inside of loops are to keep no more of theirs either.
IN_LOOPS_TOO = 1 << 20

# States to begin with, and the fewest.
_MANY, _FEWEST = 256, 2


@dataclass(frozen=True, slots=True)
class Derived(Generic[Staged]):
    """What has been ``staged`` with so many ``states`` of each outermost loop, 0 for a tape.

    It allocates the bytes ``needed`` in any call, and those ``taken`` in the one that it is for.
    """

    staged: Staged
    states: int
    needed: Expr
    taken: int


def with_states_that_fit(first: Derived[Staged], derived: Callable[[int], Derived[Staged]]) -> Derived[Staged]:
    """``first``, which has tapes, or what is derived with as many states as there is room for."""
    limit = tape_memory()
    if first.taken <= limit:
        return first
    count, before = _MANY, first.needed
    while True:
        fewer = derived(count)
        same, before = fewer.needed == before, fewer.needed
        if same and count == _MANY:
            count += IN_LOOPS_TOO  # No outermost loop has a tape: one in a branch may.
            continue
        if same and count == _MANY + IN_LOOPS_TOO:
            return first
        if fewer.taken <= limit:
            return fewer
        inside = count - count % IN_LOOPS_TOO
        count -= inside
        if count > _FEWEST:
            count = max(_FEWEST, min(count // 2, 9 * count * limit // (10 * fewer.taken)))
        elif inside:
            return fewer  # Less cannot be had.
        else:
            # What outermost loops keep is not what takes most.
            inside, count = IN_LOOPS_TOO, _MANY
        count += inside


def staged_within_memory(
    call: Call, seeds: Sequence[np.ndarray], entry: Entry, stage: Callable[[Call, int], Entry]
) -> Entry:
    """``entry``, which is ``stage(call, 0)``, or with another number of states, if its tapes would be too large.

    ``seeds`` are its last inputs.
    """
    if not entry.executable.program.repeats:
        return entry

    def derived(made: Entry, states: int) -> Derived[Entry]:
        parts = [made.executable] if made.linear is None else [made.executable, made.linear.executable]
        needed = allocated_bytes(parts)
        arrays = made.arrays(call, seeds)
        assert arrays is not None
        made.checkpoints, made.tape_memory = states, settings().tape_memory
        return Derived(made, states, needed, int(evaluate_size(needed, made.executable.sizes(arrays))))

    limit = tape_memory()
    found = with_states_that_fit(derived(entry, 0), lambda states: derived(stage(call, states), states))
    if found.taken <= limit:
        found.staged.guards = (*found.staged.guards, BroadcastGuard(found.needed, integer(limit), "most"))
        found.staged.guarded = None
    return found.staged


def allocated_bytes(parts: Sequence[Executable]) -> Expr:
    """What a run of all ``parts`` allocates, as short as `cache_info` can show it."""
    known = never_negative_in(parts[0].program)
    wanted: dict[Expr, int] = {}
    for buffer in (buffer for part in parts for buffer in part.kernel(settings().optimize).buffers):
        if buffer.kind in ("output", "temporary"):
            cells = product_of(
                extent if never_negative(extent, known) else apply("max", extent, integer(0)) for extent in buffer.shape
            )
            wanted[cells] = wanted.get(cells, 0) + numpy_dtype(buffer.dtype).itemsize
    total: Expr = integer(0)
    for cells, count in wanted.items():
        total = apply("add", total, apply("mul", integer(count), cells))
    return normalized(total)
