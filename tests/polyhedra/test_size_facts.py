"""Facts about some sizes answer as all that is known does."""

from __future__ import annotations

import random
from itertools import pairwise

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Expr, SizeValue
from tcdsl.polyhedra.affine import condition_set, universe
from tcdsl.polyhedra.size_facts import SizeFacts
from tcdsl.polyhedra.spaces import parameter_names

NAMES = "KLMNPQ"


# So many facts may be alternatives: what multiplies is left out (`knowing`), and less is known.
ALTERNATIVES = 2


def condition(source: random.Random, equal: float) -> Expr:
    left, right, other = (SizeValue(name) for name in source.sample(NAMES, 3))
    if source.random() < equal:
        return apply("eq", left, right)
    shifted = apply("add", right, integer(source.randint(-1, 1)))
    return apply(source.choice(["lt", "le", "eq", "ne"]), left, source.choice([shifted, apply("add", right, other)]))


def answers(seed: int) -> set[bool]:
    source = random.Random(seed)
    context = universe((), NAMES).params()
    facts = SizeFacts(())
    found = set()
    alternatives = 0
    for _ in range(8):
        fact = condition(source, 0.3)
        alternatives += isinstance(fact, Apply) and fact.primitive == "ne"
        if alternatives > ALTERNATIVES:
            break
        taken = context.intersect(condition_set(fact, context))
        if not taken.is_empty():
            context = taken
            facts.add(fact)
        for _ in range(6):
            asked = condition(source, 0.3)
            known = context.intersect(condition_set(asked, context)).is_empty()
            assert facts.never(asked) == known, (asked, context)
            found.add(known)
        assert facts.about(NAMES).is_equal(context)
    return found


def test_facts_answer_as_the_whole_context() -> None:
    assert set().union(*map(answers, range(40))) == {True, False}


def test_facts_about_many_sizes_answer_as_the_whole_context() -> None:
    others = [apply("ge", SizeValue(f"O{k}"), integer(0)) for k in range(40)]
    for seed in range(40):
        source = random.Random(seed)
        context = universe((), NAMES).params()
        facts = SizeFacts(others)
        for _ in range(6):
            fact = condition(source, 0.6)
            taken = context.intersect(condition_set(fact, context))
            if isinstance(fact, Apply) and fact.primitive != "ne" and not taken.is_empty():
                context = taken
                facts.add(fact)
        assert facts.about(NAMES).is_equal(context)
        other = facts.copy()
        other.add(apply("lt", SizeValue("K"), integer(-9)))
        assert facts.about(NAMES).is_equal(context)
        assert other.never(apply("ge", SizeValue("K"), integer(0)))


def test_of_equal_sizes_among_many_one_stands_for_all() -> None:
    names = [f"N{k}" for k in range(40)]
    facts = SizeFacts([apply("eq", SizeValue(one), SizeValue(other)) for one, other in pairwise(names)])
    assert len({facts.told(SizeValue(name)) for name in names}) == 1
    assert set(parameter_names(facts.about(["N3", "N17"]))) == {"N0", "N3", "N17"}
    assert facts.never(apply("ne", SizeValue("N3"), SizeValue("N17")))
