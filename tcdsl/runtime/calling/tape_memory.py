"""Derivatives whose tapes would take too much memory: their loops keep some of their states at a time instead.

What a tape takes is known when the sizes of a call are. A derivative is therefore staged as it is, and for calls whose
memory exceeds the limit once more, with binomial checkpointing (`tcdsl.autodiff.loop_derivatives`) of its outermost
loops, and of those inside where that is not enough. Each serves the calls that it is for. So is a function that takes a
gradient while it is staged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

__all__ = ["IN_LOOPS_TOO", "staged_within_memory"]

Stage = Callable[[Call, int], Entry]
"""Stages for a call, with so many states of each outermost loop, or 0 for a tape."""

#: Added to a number of states where loops inside of loops are to keep no more of theirs either.
IN_LOOPS_TOO = 1 << 20

# States to begin with, and the fewest.
_MANY, _FEWEST = 256, 2


def staged_within_memory(call: Call, seeds: Sequence[np.ndarray], entry: Entry, stage: Stage) -> Entry:
    """``entry``, which is ``stage(call, 0)``, or with another number of states, if its tapes would be too large.

    ``seeds`` are its last inputs.
    """
    limit = tape_memory()
    if not entry.executable.program.repeats:
        return entry
    entry.tape_memory = settings().tape_memory
    needed = _bytes(entry)
    if _at(call, seeds, entry, needed) <= limit:
        return _for_calls(entry, needed, limit)
    count = _MANY
    while True:
        fewer = stage(call, count)
        fewer.checkpoints, fewer.tape_memory = count, settings().tape_memory
        before, needed = needed, _bytes(fewer)
        if needed == before and count == _MANY:
            count += IN_LOOPS_TOO  # No outermost loop has a tape: one in a branch may.
            continue
        if needed == before and count == _MANY + IN_LOOPS_TOO:
            return entry
        taken = _at(call, seeds, fewer, needed)
        if taken <= limit:
            return _for_calls(fewer, needed, limit)
        inside = count - count % IN_LOOPS_TOO
        count -= inside
        if count > _FEWEST:
            count = max(_FEWEST, min(count // 2, 9 * count * limit // (10 * taken)))
        elif inside:
            return fewer  # Less cannot be had.
        else:
            # What outermost loops keep is not what takes most.
            inside, count = IN_LOOPS_TOO, _MANY
        count += inside


def _for_calls(entry: Entry, needed: Expr, limit: int) -> Entry:
    entry.guards = (*entry.guards, BroadcastGuard(needed, integer(limit), "most"))
    return entry


def _bytes(entry: Entry) -> Expr:
    # What a call allocates, as short as `cache_info` can show it.
    known = never_negative_in(entry.executable.program)
    total: Expr = integer(0)
    parts = [entry.executable] if entry.linear is None else [entry.executable, entry.linear.executable]
    for buffer in (buffer for part in parts for buffer in part.kernel(settings().optimize).buffers):
        if buffer.kind in ("output", "temporary"):
            cells = product_of(
                extent if never_negative(extent, known) else apply("max", extent, integer(0)) for extent in buffer.shape
            )
            total = apply("add", total, apply("mul", integer(numpy_dtype(buffer.dtype).itemsize), cells))
    return normalized(total)


def _at(call: Call, seeds: Sequence[np.ndarray], entry: Entry, needed: Expr) -> int:
    arrays = entry.arrays(call, seeds)
    assert arrays is not None
    return int(evaluate_size(needed, entry.executable.sizes(arrays)))
