"""Loops for some of their results: they carry and are given no more than these need."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tcdsl.ir.program import Program, Repeat, with_statements
from tcdsl.ir.stages import tensors_needed
from tcdsl.recent import Recent
from tcdsl.rewrite.needed_inputs import with_needed_inputs

__all__ = ["trimmed"]


# Derivatives of loops in loops ask for the same of the same loops at each depth. By the id of the loop, which is kept
# alive.
_KNOWN: Recent[tuple[int, frozenset[str]], tuple[Repeat, Repeat]] = Recent(300)


def trimmed(repeat: Repeat, needed: Collection[str]) -> Repeat:
    """``repeat`` for those of its results that are ``needed``, and those that they need in turn."""
    key = id(repeat), frozenset(each for each in repeat.results if each in needed)
    known = _KNOWN.get(key)
    if known is None:
        known = _KNOWN[key] = repeat, _trimmed(repeat, key[1])
    return known[1]


def _trimmed(repeat: Repeat, needed: Collection[str]) -> Repeat:
    body = repeat.body
    wanted = {name for result, (name, _) in zip(repeat.results, body.updates, strict=True) if result in needed}
    wanted.update(body.outputs)
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
    kept = with_needed_inputs(alive, [counter.name, *(each.name for each in others if each.name in read | carried)])
    given = dict(zip((each.name for each in others), repeat.inputs, strict=True))
    results = zip(repeat.results, body.updates, strict=True)
    return replace(
        repeat,
        results=tuple(result for result, (name, _) in results if name in carried),
        body=kept,
        inputs=tuple(given[each.name] for each in kept.inputs[1:]),
    )


def _needed(body: Program, names: Collection[str]) -> tuple[tuple[Repeat, ...], set[str]]:
    """The loops of a body for what ``names`` need of them, and all that these need."""
    while True:
        read = tensors_needed(body, names)
        repeats = tuple(
            trimmed(inner, read) if not read.isdisjoint(inner.results) and not read.issuperset(inner.results) else inner
            for inner in body.repeats
        )
        if repeats == body.repeats:
            return repeats, read
        body = replace(body, repeats=repeats)
