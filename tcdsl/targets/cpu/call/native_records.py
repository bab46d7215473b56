"""Records of calls without Python: what `tcdsl.targets.cpu.call.native_calls` finds and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path

import numpy as np

from tcdsl.targets.cache.store import store
from tcdsl.targets.cpu.call.launch_plans import LaunchPlan
from tcdsl.targets.cpu.layout import call_block, frame
from tcdsl.targets.cpu.machine.machine_code import compiled_driver
from tcdsl.targets.cpu.machine.object_code import LoadedObject
from tcdsl.targets.protocol import native_words
from tcdsl.targets.protocol.native_words import ALIGNED_TO, ITEMS

__all__ = ["native_calls", "record_words"]


@cache
def native_calls(cache_dir: Path | None) -> LoadedObject:
    """The machine code of `tcdsl.targets.cpu.call.native_calls`, which is never given up: code of others calls it."""
    text = Path(__file__).with_name("native_calls.py").read_text(encoding="utf-8")
    named = vars(call_block) | vars(frame) | vars(native_words)
    constants = {name: word for name, word in named.items() if name.isupper()}
    return compiled_driver(store(cache_dir), text, constants)


def record_words(
    plan: LaunchPlan,
    *,
    words: tuple[int, int],
    rows: int,
    functions: tuple[int, int, int],
    slots: Sequence[int],
    numbers: Sequence[tuple[int, int]],
    given: Sequence[int | np.ndarray],
    results: Mapping[int, int],
    itemsizes: Sequence[int],
    key: Sequence[int],
) -> np.ndarray:
    """The record of calls by ``plan``, which is kept as long as the record is.

    ``words`` are those of the frame before a call, and all of them; ``functions`` those that run the table's ``rows``
    and look for interrupts.
    ``slots`` are the words of the temporaries, ``numbers`` those of the frame and of the operands. ``given`` says where
    in the operands the array of each row stands, or is the array itself; ``results``, in order, which of the arrays
    made they are, and where those stand.
    """
    behind = -(-8 * words[1] // ALIGNED_TO) * ALIGNED_TO
    size = -(-plan.size // ALIGNED_TO) * ALIGNED_TO
    places: list[int] = []
    fixed: list[int] = []
    start = ITEMS + 2 * len(slots) + 2 * len(numbers) + len(given) + len(plan.made)
    for each in given:
        if isinstance(each, np.ndarray):
            places.append(-1 - start - len(fixed))
            fixed += [each.__array_interface__["data"][0], *each.shape, *each.strides]
        else:
            places.append(each)
    for number, (shape, itemsize) in enumerate(zip(plan.made, itemsizes, strict=True)):
        if number in results:
            places.append(results[number])
        else:
            places.append(-1 - size)
            size += -(-prod(shape) * itemsize // ALIGNED_TO) * ALIGNED_TO
    answer = [(behind + size) // 8 + ALIGNED_TO // 8]
    for number in results:
        answer += [0, *plan.made[number]]
    temporaries = [word for slot, offset in zip(slots, plan.offsets.tolist(), strict=True) for word in (slot, offset)]
    head = plan.address - plan.head
    record = [0, start + len(fixed), plan.address, head, words[0], behind, len(slots), len(numbers), rows, *functions]
    items = [*temporaries, *(word for pair in numbers for word in pair), *places]
    return np.array([*record, *items, *fixed, *key, *answer], np.int64)
