"""Results that are kept for equal programs, each with the places of its own source.

Programs are equal whatever the places are that they come from: ``x[p[i]]`` in one function is that in another one. What
was made of the one names its lines, and messages about the other one must not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TypeVar

from tcdsl.ir.expressions import walk
from tcdsl.ir.program import Program, Statement, statement_expressions
from tcdsl.recent import Recent
from tcdsl.span import Span

__all__ = ["kept_with_spans"]

Made = TypeVar("Made", Program, Statement)


def kept_with_spans(limit: int) -> Callable[[Callable[[Made], Made]], Callable[[Made], Made]]:
    """``@kept_with_spans(4096)`` keeps what a function has made of equal values from the same places."""

    def keeping(make: Callable[[Made], Made]) -> Callable[[Made], Made]:
        known: Recent[Made, tuple[Made, Made]] = Recent(limit)

        @wraps(make)
        def kept(value: Made) -> Made:
            found = known.get(value)
            if found is not None and (found[0] is value or all(map(_same, _spans(found[0]), _spans(value)))):
                return found[1]
            made = make(value)
            known[value] = value, made
            return made

        return kept

    return keeping


def _same(one: Span | None, other: Span | None) -> bool:
    return one is other or one == other


def _spans(value: Program | Statement) -> Iterator[Span | None]:
    if isinstance(value, Statement):
        yield value.span
        yield value.target.span
        for expr in statement_expressions(value):
            for node in walk(expr):
                yield node.span
        return
    for tensor in (*value.inputs, *value.tensors):
        yield tensor.span
    for assertion in value.assertions:
        yield assertion.span
    for statement in value.statements:
        yield from _spans(statement)
    for repeat in value.repeats:
        yield repeat.span
        yield from _spans(repeat.body)
