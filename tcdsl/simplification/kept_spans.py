"""Results that are kept for equal programs, each with the places of its own source.

Programs are equal whatever the places are that they come from: ``x[p[i]]`` in one function is that in another one. What
was made of the one names its lines, and messages about the other one must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from tcdsl.ir.expressions import children
from tcdsl.ir.program import Access, Assertion, Program, Repeat, Statement, Tensor, statement_expressions
from tcdsl.recent import Recent

__all__ = ["kept_with_spans"]

Made = TypeVar("Made", Program, Statement)


def kept_with_spans(limit: int) -> Callable[[Callable[[Made], Made]], Callable[[Made], Made]]:
    """``@kept_with_spans(4096)`` keeps what a function has made of equal values from the same places."""

    def keeping(make: Callable[[Made], Made]) -> Callable[[Made], Made]:
        known: Recent[Made, tuple[Made, Made]] = Recent(limit)

        @wraps(make)
        def kept(value: Made) -> Made:
            found = known.get(value)
            if found is not None and _from_same_places(found[0], value):
                return found[1]
            made = make(value)
            known[value] = value, made
            return made

        return kept

    return keeping


def _from_same_places(one: Any, other: Any) -> bool:
    # Of equal values; parts that they share are not looked into: loops in loops are compared at each depth.
    if one is other:
        return True
    match one:
        case Program():
            return _all_from_same_places(_parts(one), _parts(other))
        case Repeat():
            return one.span == other.span and _from_same_places(one.body, other.body)
        case Statement():
            expressions = map(statement_expressions, (one, other))
            return (
                one.span == other.span
                and _all_from_same_places((one.target,), (other.target,))
                and (_all_from_same_places(*expressions))
            )
        case Tensor() | Assertion() | Access():
            return bool(one.span == other.span)
    return one.span == other.span and _all_from_same_places(children(one), children(other))


def _all_from_same_places(ones: Iterable[Any], others: Iterable[Any]) -> bool:
    return all(map(_from_same_places, ones, others))


def _parts(program: Program) -> tuple[Tensor | Assertion | Statement | Repeat, ...]:
    return *program.inputs, *program.tensors, *program.assertions, *program.statements, *program.repeats
