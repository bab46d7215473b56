"""What is known about the sizes of large programs, so that questions cost no more than the sizes they are about.

isl takes cubic time in the number of sizes, whether a question is about all of them or about two.
"""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl

from tcdsl.ir.build import apply
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, size_names, substitute
from tcdsl.polyhedra.affine import condition_set, knowing, universe

__all__ = ["SizeFacts"]


class SizeFacts:
    """Conditions that hold, found by the sizes in them. Of sizes that are equal one stands for all."""

    def __init__(self, facts: Iterable[Expr]) -> None:
        self._same: dict[str, str] = {}
        self._facts: dict[str, dict[Expr, None]] = {}
        for fact in facts:
            self.add(fact)

    def add(self, fact: Expr) -> None:
        """Take a condition as known."""
        match self.told(fact):
            case Apply(primitive="eq", arguments=(SizeValue(name=left), SizeValue(name=right))) if left != right:
                # The one with fewer facts goes, so that what many are equal to is not told again and again.
                if len(self._facts.get(left, ())) < len(self._facts.get(right, ())):
                    left, right = right, left
                moved = self._facts.pop(right, {})
                self._same[right] = left
                for known in moved:
                    for name in size_names(known) - {right}:
                        del self._facts[name][known]
                for known in moved:
                    self._note(self.told(known))
            case told:
                self._note(told)

    def never(self, condition: Expr) -> bool:
        """Whether a condition cannot hold. `NotAffine` if isl cannot say it."""
        told = self.told(condition)
        if isinstance(told, Constant):
            return not told.value
        known = self.about(size_names(told))
        return bool(known.intersect(condition_set(told, known)).is_empty())

    def about(self, names: Iterable[str]) -> isl.Set:
        """What is known about some sizes, as a set of parameters: these and all that the facts tie them to."""
        wanted: dict[Expr, None] = {}
        found: set[str] = set()
        waiting = sorted(names)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            facts = list(self._facts.get(name, ()))
            stands = self._representative(name)
            if stands != name:
                facts.append(apply("eq", SizeValue(name), SizeValue(stands)))
            wanted.update(dict.fromkeys(facts))
            waiting.extend(other for fact in facts for other in sorted(size_names(fact)))
        known = universe((), sorted(found)).params()
        for fact in wanted:
            known = knowing(known, fact)
        return known

    def told(self, condition: Expr) -> Expr:
        """An expression with each size called by the one that stands for it."""
        names: dict[Expr, Expr] = {}
        for name in size_names(condition):
            stands = self._representative(name)
            if stands != name:
                names[SizeValue(name)] = SizeValue(stands)
        return substitute(condition, names) if names else condition

    def _representative(self, name: str) -> str:
        stands = name
        while stands in self._same:
            stands = self._same[stands]
        if stands != name:
            self._same[name] = stands
        return stands

    def _note(self, fact: Expr) -> None:
        for name in size_names(fact):
            self._facts.setdefault(name, {})[fact] = None
