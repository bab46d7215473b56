"""Consecutive nests as one, because every nest costs a compilation, but for those that stand there again: of these one
is compiled for all places (`tcdsl.targets.cpu.layout.kernel_code`).

::

    layer  loss            the nests, by their kinds:    a b c a b c a b c d e f g
    layer                  joined:                       abc   abc   abc   defg
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from tcdsl.ir.build import apply
from tcdsl.lowering.loopir.kinds import FirstNodes, RenamedNodes, kind_of_nest, nodes_alike
from tcdsl.lowering.loopir.loops import EqualNodes, Loop, Nest, Node, spans_of
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.rewrite.statement_kinds import Named

__all__ = ["joined", "joined_kinds"]

# Nodes of serial nests that are joined at most.
_JOINED = 200


def joined_kinds(nests: Sequence[Nest]) -> list[Nest]:
    """Consecutive nests without parallel loops as one, where either kind stands beside the other wherever it stands."""
    if not any(not _parallel(nodes_alike(one)) and not _parallel(nodes_alike(other)) for one, other in pairwise(nests)):
        return list(nests)
    return _joined(nests, _bonds(nests))


def joined(nests: Sequence[Nest]) -> list[Nest]:
    """Consecutive nests without parallel loops as one."""
    return _joined(nests, [True] * len(nests))


def _joined(nests: Sequence[Nest], bonds: Sequence[bool]) -> list[Nest]:
    out: list[Nest] = []
    count = 0
    together, counts = _Together(), dict[int, int]()
    for nest, bond in zip(nests, bonds, strict=True):
        nodes = nodes_alike(nest)
        own = counts.get(id(nodes))
        if own is None:
            own = counts[id(nodes)] = _JOINED if _parallel(nodes) else sum(1 for _ in walk_nodes(nodes))
        count += own
        if out and bond and count <= _JOINED:
            last = out.pop()
            title = last.title if last.title == nest.title else f"{last.title}\n{nest.title}"
            schedule = tuple(dict.fromkeys((*last.schedule, *nest.schedule)))
            work, declined = apply("add", last.work, nest.work), (*last.declined, *nest.declined)
            code, spans = together.code(last, nest), spans_of((last, nest))
            nest = Nest(nest.name, title, code, work, schedule=schedule, declined=declined, spans=spans)
        else:
            count = own
        out.append(nest)
    return out


class _Together:
    """The bodies of two nests as one: where both are of kinds that were joined before, that one under other names."""

    def __init__(self) -> None:
        self._known: dict[tuple[FirstNodes, FirstNodes], tuple[FirstNodes, RenamedNodes, RenamedNodes]] = {}

    def code(self, one: Nest, other: Nest) -> tuple[Node, ...] | EqualNodes:
        """The nodes of both."""
        mine, its = one.code, other.code
        if not isinstance(mine, RenamedNodes) or not isinstance(its, RenamedNodes):
            return (*one.body, *other.body)
        known = self._known.get((mine.first, its.first))
        if known is None:
            first = FirstNodes((*one.body, *other.body))
            self._known[mine.first, its.first] = first, mine, its
            return first.code()
        first, *before = known
        names: dict[Named, str] = {}
        for old, new in zip(before, (mine, its), strict=True):
            for named, name in zip(old.named, new.names, strict=True):
                if names.setdefault(named, name) != name:
                    return (*one.body, *other.body)
        # Two names that have become one make another kind.
        if len({(named[0], name) for named, name in names.items()}) < len(names):
            return (*one.body, *other.body)
        return RenamedNodes(first, tuple([names[named] for named in first.names]))


def _parallel(nodes: Sequence[Node]) -> bool:
    return any(isinstance(node, Loop) and node.kind == "parallel" for node in nodes)


def _bonds(nests: Sequence[Nest]) -> list[bool]:
    # For each nest whether it is joined to the one before it. What they have in common is a part of what they are.
    numbers: dict[object, int] = {}
    pairs: list[tuple[int, int, tuple[int, ...]]] = []
    before: defaultdict[int, set[object]] = defaultdict(set)
    after: defaultdict[int, set[object]] = defaultdict(set)
    last, places = -1, dict[Named, int]()
    for nest in nests:
        kind, names = kind_of_nest(nest)
        number = numbers.setdefault(kind, len(numbers))
        pair = last, number, tuple(places.get(name, -1) for name in names)
        before[number].add(pair)
        after[last].add(pair)
        pairs.append(pair)
        last, places = number, {name: place for place, name in enumerate(names)}
    after[last].add(None)
    return [len(after[first]) == len(before[second]) == 1 for first, second, _ in pairs]
