"""Loops for some of their results: they carry and are given no more than these need."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tcdsl.ir.program import Program, Repeat, with_statements
from tcdsl.ir.stages import needed_by, needed_of, what_makes
from tcdsl.recent import Recent
from tcdsl.rewrite.needed_inputs import with_needed_inputs

__all__ = ["trimmed"]


# Derivatives of loops in loops ask for the same of the same bodies at each depth: there are more than loops, since they
# ask for each result alone. By the id of the body, which is kept alive.
_KNOWN: Recent[tuple[int, frozenset[str]], tuple[Program, Program]] = Recent(3000)


def trimmed(repeat: Repeat, needed: Collection[str]) -> Repeat:
    """``repeat`` for those of its results that are ``needed``, and those that they need in turn."""
    if repeat.host:
        return repeat
    body = repeat.body
    wanted = frozenset(name for result, (name, _) in zip(repeat.results, body.updates, strict=True) if result in needed)
    known = _KNOWN.get((id(body), wanted))
    if known is None:
        smaller = _trimmed(body, wanted)
        known = _KNOWN[id(body), wanted] = body, body if smaller == body else smaller
    kept = known[1]
    if kept is body:
        return repeat
    given = dict(zip((each.name for each in body.inputs[1:]), repeat.inputs, strict=True))
    result = {name: each for each, (name, _) in zip(repeat.results, body.updates, strict=True)}
    return replace(
        repeat,
        results=tuple(result[name] for name, _ in kept.updates),
        body=kept,
        inputs=tuple(given[each.name] for each in kept.inputs[1:]),
    )


def _trimmed(body: Program, names: Collection[str]) -> Program:
    """The body of a loop for those of its updated inputs."""
    wanted = {*names, *body.outputs}
    carried: set[str] = set()
    read: set[str] = set()
    inside = body.repeats
    while wanted - carried:
        carried |= wanted
        # Loops inside are for what is needed of them only, which may need less in turn.
        inside, read = _needed(body, [new for name, new in body.updates if name in carried])
        wanted.update(name for name, _ in body.updates if name in read)
    counter, *others = body.inputs
    alive = with_statements(
        replace(
            body,
            updates=tuple((name, new) for name, new in body.updates if name in carried),
            rules=tuple(rule for rule in body.rules if read.intersection(rule.outputs)),
            repeats=tuple(inner for inner in inside if read.intersection(inner.results)),
        ),
        (statement for statement in body.statements if statement.target.tensor in read),
    )
    return with_needed_inputs(alive, [counter.name, *(each.name for each in others if each.name in read | carried)])


def _needed(body: Program, names: Collection[str]) -> tuple[tuple[Repeat, ...], set[str]]:
    """The loops of a body for what ``names`` need of them, and all that these need."""
    repeats = list(body.repeats)
    made_of, rules = what_makes(body), body.ruled

    def ruled(name: str) -> tuple[tuple[str, ...], ...]:
        return (rules[name].named,) if name in rules else ()

    while True:
        read = needed_of(made_of, names)
        changed = False
        for place, inner in enumerate(repeats):
            if read.isdisjoint(inner.results) or read.issuperset(inner.results):
                continue
            repeats[place] = smaller = trimmed(inner, read)
            if (smaller.results, smaller.inputs) != (inner.results, inner.inputs):
                changed = True
                needs = needed_by(smaller)
                made_of.update(
                    (name, needs.union(rules[name].named) if name in rules else needs) for name in inner.results
                )
        if not changed:
            return tuple(repeats), read
