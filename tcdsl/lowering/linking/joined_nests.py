"""Consecutive nests as one, because every nest costs a compilation, but for those that stand there again: of these one
is compiled for all places (`tcdsl.targets.cpu.layout.kernel_code`).

::

    layer  loss            the nests, by their kinds:    a b c a b c a b c d e f g
    layer                  joined:                       abc   abc   abc   defg
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tcdsl.ir.build import apply
from tcdsl.lowering.loopir.kinds import Named, kind_of
from tcdsl.lowering.loopir.loops import Loop, Nest
from tcdsl.lowering.loopir.traversal import walk_nodes

__all__ = ["joined", "joined_kinds"]

# Nodes of serial nests that are joined at most.
_JOINED = 200


def joined_kinds(nests: Sequence[Nest]) -> list[Nest]:
    """Consecutive nests without parallel loops as one, where either kind stands beside the other wherever it stands."""
    return _joined(nests, _bonds(nests))


def joined(nests: Sequence[Nest]) -> list[Nest]:
    """Consecutive nests without parallel loops as one."""
    return _joined(nests, [True] * len(nests))


def _joined(nests: Sequence[Nest], bonds: Sequence[bool]) -> list[Nest]:
    out: list[Nest] = []
    count = 0
    for nest, bond in zip(nests, bonds, strict=True):
        own = _JOINED if _parallel(nest) else sum(1 for _ in walk_nodes(nest.body))
        count += own
        if out and bond and count <= _JOINED:
            last = out.pop()
            title = last.title if last.title == nest.title else f"{last.title}\n{nest.title}"
            schedule = tuple(dict.fromkeys((*last.schedule, *nest.schedule)))
            work, declined = apply("add", last.work, nest.work), (*last.declined, *nest.declined)
            nest = Nest(nest.name, title, (*last.body, *nest.body), work, schedule=schedule, declined=declined)
        else:
            count = own
        out.append(nest)
    return out


def _parallel(nest: Nest) -> bool:
    return any(isinstance(node, Loop) and node.kind == "parallel" for node in nest.body)


def _bonds(nests: Sequence[Nest]) -> list[bool]:
    # For each nest whether it is joined to the one before it. What they have in common is a part of what they are.
    numbers: dict[object, int] = {}
    pairs: list[tuple[int, int, tuple[int, ...]]] = []
    before: defaultdict[int, set[object]] = defaultdict(set)
    after: defaultdict[int, set[object]] = defaultdict(set)
    last, places = -1, dict[Named, int]()
    for nest in nests:
        kind, names = kind_of(nest.body)
        number = numbers.setdefault(kind, len(numbers))
        pair = last, number, tuple(places.get(name, -1) for name in names)
        before[number].add(pair)
        after[last].add(pair)
        pairs.append(pair)
        last, places = number, {name: place for place, name in enumerate(names)}
    after[last].add(None)
    return [len(after[first]) == len(before[second]) == 1 for first, second, _ in pairs]
