"""What is known about sizes: in a whole program (`size_context`), where it grows, as far as one statement is concerned
(`statement_context`), and where there are many, asked about a few (`SizeFacts`).

isl takes cubic time in the number of sizes, whether a question is about all of them or about two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import islpy as isl

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, size_names, substitute
from tcdsl.ir.program import Assertion, AxisExtent, Program, Size
from tcdsl.ir.sizes.known_sizes import equal_sizes, never_negative_in
from tcdsl.polyhedra.affine import condition_set, knowing, knowing_all, universe
from tcdsl.polyhedra.linear import has_cases
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.spaces import parameter_names

__all__ = ["SizeFacts", "size_context", "statement_context"]

# Projecting costs more than it saves where only a few sizes could go.
_FEW = 6


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
        return knowing_all(universe((), sorted(found)).params(), list(wanted))

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


def size_context(program: Program) -> isl.Set:
    """A set of parameters: all sizes of ``program`` for which a call gets as far as its first statement.

    Of sizes that the assertions make equal it speaks of the first only.
    """
    positive = never_negative_in(program)
    return _size_context(
        program.sizes, program.assertions, tuple(each.name for each in program.sizes if positive(each.name))
    )


@lru_cache(maxsize=256)
def _size_context(sizes: tuple[Size, ...], assertions: tuple[Assertion, ...], positive: tuple[str, ...]) -> isl.Set:
    # isl takes cubic time in the number of sizes, so those equal to another one are never mentioned.
    equal = equal_sizes(sizes, assertions)
    known = universe((), [each.name for each in sizes if each.name not in equal])
    facts: list[Expr] = [apply("ge", size(name), integer(0)) for name in positive]
    facts.extend(apply("eq", size(each.name), each.source) for each in sizes if not isinstance(each.source, AxisExtent))
    facts.extend(assertion.condition for assertion in assertions)
    for fact in dict.fromkeys(_told(each, equal) for each in facts):
        if not has_cases(fact):
            known = knowing(known, fact)
    return known.params()


def _told(fact: Expr, equal: Mapping[str, str]) -> Expr:
    return substitute(fact, {size(name): size(equal[name]) for name in size_names(fact) & equal.keys()})


def statement_context(scope: ProgramScope, names: Iterable[str]) -> isl.Set:
    """The scope's context as far as it speaks of ``names`` and of the sizes made from them; exact for those."""
    context = scope.context()
    parameters = parameter_names(context)
    if len(parameters) <= _FEW:
        return context
    keep = set(names)
    for name in parameters:  # an expression's sizes are defined before it
        source = scope.size(name).source
        if isinstance(source, AxisExtent):
            continue
        used = size_names(source)
        if name in keep:
            keep |= used
        elif used & keep:
            keep.add(name)
    drop = [k for k, name in enumerate(parameters) if name not in keep]
    if len(drop) <= _FEW:
        return context
    while drop:
        last = drop.pop()
        count = 1
        while drop and drop[-1] == last - count:
            drop.pop()
            count += 1
        context = context.project_out(isl.dim_type.param, last - count + 1, count)
    return context
