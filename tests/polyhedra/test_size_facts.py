"""Facts about some sizes answer as all that is known does."""

from __future__ import annotations

import random
from functools import reduce

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Expr, SizeValue
from tcdsl.polyhedra.affine import condition_set, knowing, knowing_all, universe
from tcdsl.polyhedra.size_facts import SizeFacts

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


def test_facts_joined_in_pairs_are_those_taken_one_by_one() -> None:
    for seed in range(40):
        source = random.Random(seed)
        context = universe((), NAMES).params()
        facts: list[Expr] = []
        while len(facts) < 20:
            fact = condition(source, 0.1)
            convex = isinstance(fact, Apply) and fact.primitive != "ne"
            if convex and not reduce(knowing, [*facts, fact], context).is_empty():
                facts.append(fact)
        assert knowing_all(context, facts).is_equal(reduce(knowing, facts, context))
        # Alternatives come after what is certain.
        facts.insert(3, apply("ne", SizeValue("K"), SizeValue("L")))
        facts.insert(5, apply("eq", apply("mul", SizeValue("K"), SizeValue("L")), SizeValue("M")))
        certain = [*facts[:3], facts[4], *facts[6:], facts[3]]
        assert knowing_all(context, facts).is_equal(reduce(knowing, certain, context))
