"""The end of a round: what tensors have become moves to where the next round reads it.

A tensor that a round makes anew, as a step of a grid does that reads neighbours, is not copied: its memory and that of
the state change places. Where the same cells become several tensors, or stay needed, they are copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

__all__ = ["Carrying", "carrying"]


@dataclass(frozen=True, slots=True)
class Carrying:
    """First ``copies`` of the cells of the second buffer into the first one, then ``swaps`` of memory, in order.

    For each of ``extra`` there is a new buffer, like the first one, that the copies fill with the second one's cells.
    """

    copies: tuple[tuple[str, str], ...]
    extra: tuple[tuple[str, str], ...]
    swaps: tuple[tuple[str, str], ...]


def carrying(changes: Mapping[str, str], movable: Set[str], extra_name: Mapping[str, str]) -> Carrying:
    """For ``target: source`` of all ``changes``, which happen at once. Memory of ``movable`` buffers may move.

    ``extra_name`` has for every target what a buffer like it would be called.
    """
    moved: dict[str, str] = {}
    copies: list[tuple[str, str]] = []
    extra: list[tuple[str, str]] = []
    used = Counter(changes.values())
    for target, source in changes.items():
        if source in movable and source not in moved.values():
            moved[target] = source
        elif used[target]:
            # Something else is made of what the target held.
            extra.append((extra_name[target], source))
            moved[target] = extra_name[target]
        else:
            copies.append((target, source))
    return Carrying(tuple(copies), tuple(extra), tuple(_swaps(moved)))


def _swaps(moved: dict[str, str]) -> list[tuple[str, str]]:
    # Every buffer gets the memory of the one that ``moved`` gives; the last of a chain gets that of the first.
    out: list[tuple[str, str]] = []
    left = dict(moved)
    sources = set(moved.values())
    while left:
        current = next((target for target in left if target not in sources), next(iter(left)))
        first = current
        while current in left:
            source = left.pop(current)
            if source != first:
                out.append((current, source))
            current = source
    return out
