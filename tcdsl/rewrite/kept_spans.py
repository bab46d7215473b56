"""Results that are kept for equal programs, each with the places of its own source.

Programs are equal whatever the places are that they come from: ``x[p[i]]`` in one function is that in another one. What
was made of the one names its lines, and messages about the other one must not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from tcdsl.ir.program import Assertion, Program, Repeat, Statement, Tensor
from tcdsl.recent import Recent
from tcdsl.rewrite.renaming import statement_with_tensors_renamed
from tcdsl.rewrite.statement_kinds import Named, kind_of_statement, places_of

__all__ = ["kept_with_spans", "once_per_kind"]


def kept_with_spans(limit: int) -> Callable[[Callable[[Program], Program]], Callable[[Program], Program]]:
    """``@kept_with_spans(1024)`` keeps what a function has made of equal programs from the same places."""

    def keeping(make: Callable[[Program], Program]) -> Callable[[Program], Program]:
        known: Recent[Program, tuple[Program, Program]] = Recent(limit)

        @wraps(make)
        def kept(value: Program) -> Program:
            found = known.get(value)
            if found is not None and _from_same_places(found[0], value):
                return found[1]
            made = make(value)
            known[value] = value, made
            return made

        return kept

    return keeping


@dataclass(frozen=True, slots=True)
class _OfKind:
    # What was made of the first statement of a kind, its names, and those that the result has besides.
    given: Statement
    made: Statement
    names: tuple[Named, ...]
    others: frozenset[str]

    def of(self, statement: Statement, names: tuple[Named, ...]) -> Statement | None:
        if self.made is self.given:
            return statement
        if places_of(self.given) != places_of(statement):
            return None
        renamed = {old[1]: new[1] for old, new in zip(self.names, names, strict=True) if old != new}
        return statement_with_tensors_renamed(self.made, renamed) if self.others.isdisjoint(renamed.values()) else None


def once_per_kind(make: Callable[[Statement], Statement]) -> Callable[[Statement], Statement]:
    """Keeps what ``make`` has made of a statement for all from the same places that differ in the names of tensors
    alone, with which it may do nothing but put them in an order.
    """
    known: Recent[object, _OfKind] = Recent(4096)

    @wraps(make)
    def kept(statement: Statement) -> Statement:
        kind, names = kind_of_statement(statement)
        tensors = [name for what, name in names if what == "buffer"]
        order = tuple(sorted(range(len(tensors)), key=tensors.__getitem__))
        key = kind, statement.label, order, tuple([named for named in names if named[0] != "buffer"])
        first = known.get(key)
        found = None if first is None else first.of(statement, names)
        if found is not None:
            return found
        made = make(statement)
        if made == statement and places_of(made) == places_of(statement):
            made = statement
        others = {name for _, name in kind_of_statement(made)[1]}.difference(name for _, name in names)
        known[key] = _OfKind(statement, made, names, frozenset(others))
        return made

    return kept


def _from_same_places(one: Any, other: Any) -> bool:
    # Of equal values; parts that they share are not looked into: loops in loops are compared at each depth.
    if one is other:
        return True
    match one:
        case Program():
            return all(map(_from_same_places, _parts(one), _parts(other)))
        case Repeat():
            return one.span == other.span and _from_same_places(one.body, other.body)
        case Statement():
            return places_of(one) == places_of(other)
        case _:
            return bool(one.span == other.span)


def _parts(program: Program) -> tuple[Tensor | Assertion | Statement | Repeat, ...]:
    return *program.inputs, *program.tensors, *program.assertions, *program.statements, *program.repeats
