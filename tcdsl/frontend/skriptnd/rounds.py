"""Loops and branches on data, as functions of Python's whose loops run in the program.

A body is a function of what the rounds carry, a tuple of tensors; it is staged as one round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

__all__ = ["bounded_rounds", "branch", "counted_rounds", "rounds_while"]

State = tuple[Any, ...]


def _counted(state: State, rounds: Any, body: Callable[[Any, State], State]) -> State:
    for number in rounds:
        state = body(number, state)
    return state


def _while(state: State, going: Any, body: Callable[[State], State], condition: Callable[[State], Any]) -> State:
    while going:
        state = body(state)
        going = condition(state)
    return state


def _bounded(
    state: State,
    rounds: Any,
    body: Callable[[Any, State], State],
    condition: Callable[[State], Any],
    tested_first: bool,
) -> State:
    for number in rounds:
        if tested_first and not condition(state):
            break
        state = body(number, state)
        if not tested_first and not condition(state):
            break
    return state


def _branch(condition: Any, chosen: Callable[[], State], other: Callable[[], State]) -> State:
    return chosen() if condition else other()


@cache
def _template(function: FunctionType) -> Any:
    # Texts without loops on data do without all that rewrites functions of Python's.
    from tcdsl.frontend.python.template import Template
    from tcdsl.frontend.source.function_source import read_source

    return Template(function, read_source(function), False)


def _loop(count: Any) -> Any:
    from tcdsl.frontend.running_loops.round_counts import loop

    return loop(count)


def counted_rounds(state: State, count: Any, body: Callable[[Any, State], State]) -> State:
    """``state = body(t, state)`` for all numbers below ``count``, an int, a size or an integer that data holds."""
    found: State = _template(_counted).run(None, state, _loop(count), body)
    return found


def rounds_while(state: State, going: Any, body: Callable[[State], State], condition: Callable[[State], Any]) -> State:
    """``state = body(state)`` while ``going`` is true, which is ``condition(state)`` after each round."""
    found: State = _template(_while).run(None, state, going, body, condition)
    return found


def bounded_rounds(
    state: State, count: Any, body: Callable[[Any, State], State], condition: Callable[[State], Any], tested_first: bool
) -> State:
    """`counted_rounds` as long as ``condition(state)`` holds before each round, or after it."""
    found: State = _template(_bounded).run(None, state, _loop(count), body, condition, tested_first)
    return found


def branch(condition: Any, chosen: Callable[[], State], other: Callable[[], State]) -> State:
    """``chosen()`` where ``condition`` holds, else ``other()``."""
    found: State = _template(_branch).run(None, condition, chosen, other)
    return found
