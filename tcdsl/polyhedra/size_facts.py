"""What is known about sizes: in a whole program (`size_context`), and while one grows (`SizeFacts`).

isl takes cubic time in the number of sizes, whether a question is about all of them or about two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import islpy as isl

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, size_names, substitute
from tcdsl.ir.program import Assertion, AxisExtent, Program, Size
from tcdsl.ir.sizes.known_sizes import equal_sizes, never_negative_in
from tcdsl.polyhedra.affine import condition_set, knowing, universe
from tcdsl.polyhedra.limits import new_question
from tcdsl.polyhedra.linear import has_cases
from tcdsl.polyhedra.spaces import parameter_names

__all__ = ["SizeFacts", "size_context"]

# With more sizes than these, equal ones have one name.
_MANY = 24


class SizeFacts:
    """What is known about the sizes of a program, while it grows.

    ::

        facts = SizeFacts([N >= 0, M >= 0, N == M])
        facts.about({"N"})                             # a set of parameters, of N and what the facts tie it to
        facts.never(N < M)                             # True

    Of many sizes, one of those that are equal stands for all, so that sets have fewer parameters.
    """

    def __init__(self, facts: Sequence[Expr] = ()) -> None:
        self._many = len(frozenset().union(*map(size_names, facts))) > _MANY
        self._same: dict[str, str] = {}
        #: What is known of a size and of those that it is tied to, the same set for all of these.
        self._tied: dict[str, isl.Set] = {}
        self._news = list(facts)
        self._answers: dict[frozenset[str], isl.Set] = {}

    def copy(self) -> SizeFacts:
        """The same knowledge, for what may turn out wrong."""
        self._learn()
        made = SizeFacts()
        made._many, made._same = self._many, dict(self._same)
        made._tied, made._answers = dict(self._tied), dict(self._answers)
        return made

    def add(self, fact: Expr) -> None:
        """Take a condition as known."""
        self._news.append(fact)

    def about(self, names: Iterable[str]) -> isl.Set:
        """What is known about some sizes and all that the facts tie them to, as a set of parameters.

        Where there are few, about all sizes.
        """
        self._learn()
        asked = frozenset(names) if self._many else frozenset(names).union(self._tied)
        if asked not in self._answers:
            self._answers[asked] = self._joined(asked)
        return self._answers[asked]

    def never(self, condition: Expr) -> bool:
        """Whether a condition cannot hold. `NotAffine` if isl cannot say it."""
        told = self.told(condition)
        if isinstance(told, Constant):
            return not told.value
        known = self.about(size_names(told))
        return bool(known.intersect(condition_set(told, known)).is_empty())

    def told(self, expr: Expr) -> Expr:
        """An expression, of many equal sizes by the one that stands for them."""
        self._learn()
        return self._spoken(expr)

    def _learn(self) -> None:
        if not self._news:
            return
        self._answers.clear()
        news, self._news = self._news, []
        for fact in news:
            told = self._spoken(fact)
            names = size_names(told)
            if not names or isinstance(told, Constant):
                continue
            new_question()
            known = knowing(self._joined(names), told).coalesce()
            match told:
                case Apply(primitive="eq", arguments=(SizeValue(name=left), SizeValue(name=right))) if (
                    self._many and left != right
                ):
                    self._same[right] = left
                    self._tied.pop(right, None)
                    position = known.find_dim_by_name(isl.dim_type.param, right)
                    known = known.project_out(isl.dim_type.param, position, 1)
            for name in parameter_names(known):
                self._tied[name] = known

    def _joined(self, names: Iterable[str]) -> isl.Set:
        stand = {name: self._representative(name) for name in names}
        space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[], params=sorted({*stand, *stand.values()}))
        equal = isl.BasicSet.universe(space)
        for name, other in stand.items():
            if name != other:
                equal = equal.add_constraint(isl.Constraint.eq_from_names(space, {name: 1, other: -1}))
        known = isl.Set.from_basic_set(equal).params()
        tied = [self._tied[name] for name in sorted(set(stand.values())) if name in self._tied]
        for each in {id(each): each for each in tied}.values():
            known = each.intersect(known)  # in the order of the sizes of the latter
        return known

    def _spoken(self, expr: Expr) -> Expr:
        names = {name: self._representative(name) for name in size_names(expr) & self._same.keys()}
        return substitute(expr, {SizeValue(name): SizeValue(stands) for name, stands in names.items()})

    def _representative(self, name: str) -> str:
        while name in self._same:
            name = self._same[name]
        return name


# A program is asked by each of its statements. By identity: to compare two programs takes as long as they are.
_ASKED: deque[tuple[Program, isl.Set]] = deque(maxlen=4)


def size_context(program: Program) -> isl.Set:
    """A set of parameters: all sizes of ``program`` for which a call gets as far as its first statement.

    Of sizes that the assertions make equal it speaks of the first only.
    """
    for asked, known in tuple(_ASKED):
        if asked is program:
            return known
    positive = never_negative_in(program)
    found = _size_context(
        program.sizes, program.assertions, tuple(each.name for each in program.sizes if positive(each.name))
    )
    _ASKED.appendleft((program, found))
    return found


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
