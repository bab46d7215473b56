"""Nests that differ in names alone: what is made of one of them is made of the others by renaming it.

::

    equal = EqualNests.of(nests, memory)
    nests = equal.spread([rewritten(nest) for nest in equal.firsts])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.kinds import Named, kind_of, with_names
from tcdsl.lowering.loopir.loops import Check, Nest

__all__ = ["EqualNests"]


@dataclass(frozen=True, slots=True)
class EqualNests:
    """Nests by their kinds: ``firsts`` are the first ones of each.

    ``members`` has for each nest its number among them, and for those that come later both lists of names.
    """

    nests: tuple[Nest, ...]
    firsts: tuple[Nest, ...]
    members: tuple[tuple[int, tuple[Named, ...], tuple[Named, ...]], ...]
    memory: Mapping[str, object]

    @staticmethod
    def of(nests: Sequence[Nest], memory: Mapping[str, object]) -> EqualNests:
        """``nests``, of which those of a kind have buffers for which ``memory`` says the same."""
        known: dict[object, tuple[int, tuple[Named, ...]]] = {}
        firsts: list[Nest] = []
        members: list[tuple[int, tuple[Named, ...], tuple[Named, ...]]] = []
        for nest in nests:
            kind, names = kind_of(nest.body)
            alike = tuple(memory.get(name) if what == "buffer" else name for what, name in names if what != "scalar")
            found = known.get((kind, alike))
            # What is told of a check are the user's own names and place; bounds are told by another nest.
            if found is None or Check in kind or nest.bounds is not None:
                found = known[kind, alike] = len(firsts), names
                firsts.append(nest)
                members.append((found[0], (), ()))
            else:
                members.append((*found, names))
        return EqualNests(tuple(nests), tuple(firsts), tuple(members), memory)

    def spread(self, made: Sequence[Nest]) -> list[Nest]:
        """All nests, where ``made`` has been made of the first ones."""
        inside: dict[int, tuple[Named, ...]] = {}
        out: list[Nest] = []
        for nest, (number, old, new) in zip(self.nests, self.members, strict=True):
            if not old or made[number] is self.firsts[number]:
                out.append(made[number] if not old else nest)
                continue
            if number not in inside:
                inside[number] = kind_of(made[number].body)[1]
            others = {known: name for known, (_, name) in zip(old, new, strict=True)}
            fresh = FreshNames((name for _, name in new), short=True, elsewhere=self.memory.__contains__)
            for named in inside[number]:
                if named not in others and named[0] != "size":
                    others[named] = fresh.fresh(named[1])
            out.append(replace(nest, body=with_names(made[number].body, others)))
        return out
