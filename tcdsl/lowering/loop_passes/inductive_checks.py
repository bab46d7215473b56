"""Checks that cannot fail because of what each round keeps: bounds of the integers that loops carry, by induction.

::

    j = t                                              # t < N
    for round in 0 .. n while going:                   # going: j > 0 and ...
        check j - 1 >= 0 and j - 1 < N                 # cannot fail: 0 <= j <= t before each round
        ...
        j = j - 1

A bound is guessed from what a name holds before the loop, from the extents that checks compare it with, and from the
condition of the loop. It is one if it holds before the first round, and if a round at whose start all guesses hold
ends with it. Guesses that do not are dropped until none is: what is left holds before each round and behind the loop.
Positions made of such integers are computed in 64 bits where these suffice.
A round is followed as `IntegerFacts` say: what may wrap around, or comes from data, is unknown. Behind a branch holds
what holds at the end of both arms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, cast, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Local
from tcdsl.lowering.loopir.integer_facts import IMPOSSIBLE, IntegerFacts, Sum, added, places
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Nest, Node, RepeatedNests
from tcdsl.lowering.loopir.traversal import buffers_written, changed_names, scalars_of, walk_nodes

__all__ = ["without_inductive_checks"]

_MOST_PASSES = 4  # of guesses about one loop
_MOST_NAMES = 6  # that one loop carries, of which bounds are asked
_MOST_LEVELS = 3  # of loops in loops: each pass over one makes all passes over those inside


@dataclass(frozen=True, slots=True)
class Guess:
    """``sum of factor * name + rest >= 0``, where names hold what they hold by then, and nothing changes ``rest``."""

    factors: tuple[tuple[str, int], ...]
    rest: Sum

    def at(self, facts: IntegerFacts) -> Sum | None:
        """The sum, of what the names hold now."""
        total = self.rest
        for name, factor in self.factors:
            held = facts.held(name)
            if held is None:
                return None
            total = added(total, held, factor)
        return total

    def ahead(self, loop: Loop) -> Guess:
        """The bound by what the variable of ``loop`` holds in the next round."""
        return replace(self, rest=added(self.rest, {"": loop.step}, dict(self.factors).get(loop.variable, 0)))

    def renamed(self, names: set[str]) -> Iterator[Guess]:
        """The bound with each of ``names`` in it, and with one of them for another name."""
        for place, (name, factor) in enumerate(self.factors):
            for other in (name,) if name in names else sorted(names):
                yield Guess((*self.factors[:place], (other, factor), *self.factors[place + 1 :]), self.rest)

    def holds(self, facts: IntegerFacts) -> bool:
        """Whether it is sure to hold now."""
        total = self.at(facts)
        return total is not None and facts.implies(total)


def without_inductive_checks(
    nests: Sequence[Nest], repeated: Sequence[RepeatedNests], facts: IntegerFacts
) -> list[Nest]:
    """``nests`` without such checks, some of which are ``repeated``; ``facts`` are what is known of sizes."""
    again = {place for each in repeated for place in range(each.first, each.end)}
    changing = {name for place in again for name in buffers_written(nests[place].body)}
    changing.update(name for each in repeated for name in each.rounds.held)
    # Constants in memory of rank 0, which a nest before has stored.
    stored: dict[str, Sum] = {}
    found = []
    for nest in nests:
        here = facts.copy()
        for name, constant in stored.items():
            here.hold(name, constant)
        found.append(_nest(nest, here))
        for name in buffers_written(nest.body):
            held = here.held(name)
            stored.pop(name, None)
            if held is not None and set(held) <= {""} and name not in changing:
                stored[name] = held
    return found


def _nest(nest: Nest, facts: IntegerFacts) -> Nest:
    loops = (node for node in walk_nodes(nest.body) if isinstance(node, Loop) and node.rounds)
    if any(isinstance(inner, Check) for loop in loops for inner in walk_nodes(loop.body)):
        return replace(nest, code=_block(nest.body, facts, ()))
    for _ in places(nest.body, facts):
        pass
    return nest


def _block(nodes: Sequence[Node], facts: IntegerFacts, asked: Sequence[Guess]) -> tuple[Node, ...]:
    """``nodes`` without checks that cannot fail; then ``facts`` are those behind them, as far as ``asked``."""
    out: list[Node] = []
    for node in nodes:
        match node:
            case Check(condition=condition) if facts.proves(condition):
                continue
            case Loop():
                out.append(_loop(node, facts))
            case Branch():
                out.append(_branch(node, facts, asked))
            case Define(value=Apply() as value) if value.dtype == INTEGER:
                out.append(
                    node if (short := _short(value, facts)) is None else replace(node, value=cast(short, INTEGER))
                )
                facts.passes(node)
            case _:
                out.append(node)
                facts.passes(node)
    return tuple(out)


def _short(expr: Expr, facts: IntegerFacts) -> Expr | None:
    # A position as a value of 64 bits, where no part of it can be larger: LLVM sees what it shares with others.
    match expr:
        case Cast(operand=operand) if operand.dtype == "int64":
            return operand
        case Constant(value=value):
            return integer(int(value)) if abs(value) < 2**62 else None
        case Apply(primitive="add" | "sub" | "mul" | "neg" | "floor_div" | "shift_right" as primitive):
            parts = [short for part in expr.arguments if (short := _short(part, facts)) is not None]
            if len(parts) == len(expr.arguments) and facts.is_within_int64(facts.sum_of(expr)):
                return apply(primitive, *parts)
    return None


def _branch(branch: Branch, facts: IntegerFacts, asked: Sequence[Guess]) -> Branch:
    arms = facts.copy(), facts.copy()
    bodies = []
    for arm, body, holds in zip(arms, (branch.body, branch.otherwise), (True, False), strict=True):
        arm.learn(branch.condition, holds)
        bodies.append(_block(body, arm, asked))
    tests = facts.consequences(branch.condition), facts.consequences(branch.condition, False)
    changed, integers = changed_names((branch,)), _integers((branch,))
    facts.forget(changed)
    for name in changed:
        one, other = (arm.held(name) for arm in arms)
        if one is not None and other is not None and (one == other or name in integers):
            facts.hold(name, one if one == other else facts.unknown())
        facts.hold_truth(name, *_joined(tests, [arm.follows(name) for arm in arms]))
    # Also of names that become those which the bounds are of.
    # Most become the same bound, and most do not hold.
    candidates: list[Guess] = []
    for each in (each for bound in asked for each in bound.renamed(integers)):
        if each not in candidates:
            candidates.append(each)
    facts.assume(_totals([each for each in candidates if all(map(each.holds, arms))], facts))
    return replace(branch, body=bodies[0], otherwise=bodies[1])


def _joined(tests: tuple[list[Sum], list[Sum]], arms: Sequence[tuple[list[Sum], list[Sum]]]) -> Iterator[list[Sum]]:
    # A truth value that holds in one arm alone tells that this one has run.
    for side in (0, 1):
        one, other = (arm[side] for arm in arms)
        if IMPOSSIBLE in other:
            yield [*tests[0], *one]
        elif IMPOSSIBLE in one:
            yield [*tests[1], *other]
        else:
            yield []


def _loop(loop: Loop, facts: IntegerFacts) -> Loop:
    changed, integers = changed_names((loop,)), _integers((loop,))
    before, mark = facts.copy(), facts.mark()
    guesses = _guesses(loop, before, integers) if loop.rounds else []
    facts.forget(changed)
    going: list[Guess] = []  # what holds where the condition does
    for number in range(_MOST_PASSES + 1):
        if number == _MOST_PASSES:
            guesses, going = [], []
        head = facts.copy()
        _begin(head, loop, integers, guesses, going)
        start = head.held(loop.variable)
        # At the end of the round its number is the next one.
        body = _block(loop.body, head, [*guesses, *(each.ahead(loop) for each in guesses)])
        if start is not None and head.held(loop.variable) == start:
            head.hold(loop.variable, added(start, {"": loop.step}))
        if not number and loop.kind == "serial":
            said = _said_by_condition(loop, head, {name for name in integers if before.held(name) is not None}, mark)
            going = [each for each in said if _holds_going(loop, before, each)]
            if going:
                continue
        kept = [each for each in guesses if each.holds(head)]
        still = [each for each in going if _holds_going(loop, head, each)]
        if len(kept) == len(guesses) and len(still) == len(going):
            break
        guesses, going = kept, still
    behind = [each for each in guesses if loop.variable not in dict(each.factors)]
    _hold_bounds(facts, behind, integers)
    return replace(loop, body=body)


def _guesses(loop: Loop, before: IntegerFacts, integers: set[str]) -> list[Guess]:
    # Those that hold before the first round.
    if loop.kind != "serial" or loop.step != 1 or _levels(loop) > _MOST_LEVELS:
        return []
    changed = changed_names((loop,))
    checks = [node for node in walk_nodes(loop.body) if isinstance(node, Check)]
    extents = [before.sum_of(check.extent) for check in checks if scalars_of(check.extent).isdisjoint(changed)]
    start = before.sum_of(loop.start)
    found: list[Guess] = []
    for name in _carried(loop, checks, before, integers):
        first = before.held(name) or {}
        minus = added({}, first, -1)
        found += [Guess(((name, 1),), {}), Guess(((name, 1),), minus), Guess(((name, -1),), first)]
        found += [Guess(((name, -1),), added(extent, {"": less})) for extent in extents for less in (0, -1)]
        # One step in each round at most.
        found.append(Guess(((name, -1), (loop.variable, 1)), added(first, start, -1)))
        found.append(Guess(((name, 1), (loop.variable, 1)), added(minus, start, -1)))
    begun = before.copy()
    begun.hold(loop.variable, start)
    return [each for place, each in enumerate(found) if each not in found[:place] and each.holds(begun)]


def _levels(loop: Loop) -> int:
    inner = [_levels(node) for node in walk_nodes(loop.body) if isinstance(node, Loop) and node.rounds]
    return 1 + max(inner, default=0)


def _integers(nodes: tuple[Node, ...]) -> set[str]:
    # The names of type int64 that nodes set, and by nothing but their values.
    found: set[str] = set()
    others: set[str] = set()
    for node in walk_nodes(nodes):
        match node:
            case Define(name=name, value=value):
                (found if value.dtype == "int64" else others).add(name)
            case Accumulate(name=name) | Loop(variable=name):
                others.add(name)
    return found - others


def _carried(loop: Loop, checks: Sequence[Check], before: IntegerFacts, integers: set[str]) -> list[str]:
    # The names that a loop carries, and that checks depend on.
    reached = {name for check in checks for name in scalars_of(check.condition)}
    defined = [(node.name, scalars_of(node.value)) for node in walk_nodes(loop.body) if isinstance(node, Define)]
    while True:
        more = {name for target, names in defined if target in reached for name in names} - reached
        if not more:
            break
        reached |= more
    found = [name for name in sorted(reached & integers) if before.held(name) is not None]
    return found if len(found) <= _MOST_NAMES else []


def _begin(
    head: IntegerFacts, loop: Loop, integers: set[str], guesses: Sequence[Guess], going: Sequence[Guess]
) -> None:
    # A round begins: names hold anything for which all guesses are right, and the condition holds.
    head.enter(loop)
    _hold_bounds(head, guesses, integers, going)
    if loop.condition is not None:
        head.learn(loop.condition)
    head.assume(_totals(going, head))


def _hold_bounds(
    facts: IntegerFacts, bounds: Sequence[Guess], integers: set[str], others: Sequence[Guess] = ()
) -> None:
    # What names hold that have changed is unknown, but for these bounds. ``others`` are of such names too.
    for name in {name for each in (*bounds, *others) for name, _ in each.factors} & integers:
        facts.hold(name, facts.unknown())
    facts.assume(_totals(bounds, facts))


def _totals(bounds: Iterable[Guess], facts: IntegerFacts) -> list[Sum]:
    return [total for each in bounds if (total := each.at(facts)) is not None]


def _said_by_condition(loop: Loop, end: IntegerFacts, integers: set[str], mark: int) -> list[Guess]:
    # What follows from the condition at the end of a round, as bounds of what names hold then. Unknowns from before
    # the ``mark`` are the same in all rounds.
    if not isinstance(loop.condition, Local):
        return []
    named: dict[str, tuple[str, Sum]] = {}
    for name in sorted(integers):
        held = end.held(name) or {}
        match [each for each in held.items() if not end.is_before(each[0], mark)]:
            case [(unknown, 1)]:
                named.setdefault(unknown, (name, added(held, {unknown: -1})))
    found = []
    for total in end.follows(loop.condition.name)[0]:
        factors: list[tuple[str, int]] = []
        rest: Sum = {name: factor for name, factor in total.items() if end.is_before(name, mark)}
        for unknown in total.keys() - rest.keys():
            if unknown not in named:
                break
            name, more = named[unknown]
            factors.append((name, total[unknown]))
            rest = added(rest, more, -total[unknown])
        else:
            found.append(Guess(tuple(sorted(factors)), rest))
    return found


def _holds_going(loop: Loop, facts: IntegerFacts, bound: Guess) -> bool:
    # Whether the bound holds wherever the condition does.
    if loop.condition is None:
        return False
    facts = facts.copy()
    facts.learn(loop.condition)
    return bound.holds(facts)
