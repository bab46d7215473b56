"""Functions that return in arms of branches and in loops, with one return at their end.

What comes after a branch that ends by ``return`` is its other arm. A loop is left by ``break``, and what comes after it
is the other arm of a branch on whether it has returned::

    for t in range(n):                 returned = False
        if x[t] > v:                   for t in range(n):
            return t                       if x[t] > v:
    return -1                                  result = t
                                               returned = True
                                               break
                                       if not returned:
                                           result = -1
                                       return result

So the branch, or the loop, may be one that runs.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from tcdsl.frontend.python.jumps import JumpRemoval, assigned
from tcdsl.frontend.python.loop_jumps import breaks
from tcdsl.frontend.source.rewritten_functions import RECORDER, RESULT

__all__ = ["Leaving", "with_single_return"]

_RETURNED = f"{RECORDER}returned"
_LOOPS = ast.For | ast.While


def with_single_return(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a function with one ``return`` of the name `RESULT`; as it is if it has no other one."""
    found = list(_returns(body))
    if not any(isinstance(statement, _LOOPS | ast.If) and any(_returns([statement])) for statement in body):
        return list(body)
    names = [] if all(_is_nothing(each.value) for each in found) else [RESULT]
    within = _leaving_loops(body, names)
    made = _Returns(names, body[-1]).without_jumps(within)
    first = [] if within == list(body) else [assigned(_RETURNED, ast.Constant(False), body[0])]
    result = ast.Return(ast.Name(RESULT, ast.Load()) if names else None)
    return [*first, *made, ast.fix_missing_locations(ast.copy_location(result, body[-1]))]


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _returns(body: Sequence[ast.stmt]) -> Iterator[ast.Return]:
    # Those of branches and loops: in other blocks they stay what they are.
    for statement in body:
        if isinstance(statement, ast.Return):
            yield statement
        elif isinstance(statement, _LOOPS):
            yield from _returns(statement.body)
        elif isinstance(statement, ast.If):
            yield from _returns([*statement.body, *statement.orelse])


class _Held(ast.Return):
    """A ``return`` of what `RESULT` holds already."""


class Leaving(ast.Break):
    """A ``break`` that stands for ``return``."""


class _Returns(JumpRemoval):
    def __init__(self, names: Sequence[str], last: ast.stmt) -> None:
        super().__init__((ast.Return,), _RETURNED)
        self._names, self._last = names, last

    def replaced(self, jump: ast.stmt) -> list[ast.stmt]:
        return [] if isinstance(jump, _Held) else _stored(jump, self._names)

    def ending(self) -> list[ast.stmt]:
        # A function that comes to its end returns None.
        return _stored(ast.copy_location(ast.Return(None), self._last), self._names)


def _stored(jump: ast.stmt, names: Sequence[str]) -> list[ast.stmt]:
    assert isinstance(jump, ast.Return)
    value = ast.Constant(None) if jump.value is None else jump.value
    return [assigned(name, value, jump) for name in names]


def _leaving_loops(body: Sequence[ast.stmt], names: Sequence[str], inside: bool = False) -> list[ast.stmt]:
    # `body` with `break` for `return` in loops, and behind each of them what the function, or a loop around, does.
    made: list[ast.stmt] = []
    for statement in body:
        if inside and isinstance(statement, ast.Return):
            flag = assigned(_RETURNED, ast.Constant(True), statement)
            return [*made, *_stored(statement, names), flag, ast.copy_location(Leaving(), statement)]
        if isinstance(statement, ast.If) and any(_returns([statement])):
            arms = [_leaving_loops(arm, names, inside) for arm in (statement.body, statement.orelse)]
            made.append(ast.copy_location(ast.If(statement.test, *arms), statement))
        elif isinstance(statement, _LOOPS) and any(_returns(statement.body)):
            endless = isinstance(statement, ast.While) and _is_true(statement.test) and not breaks(statement.body)
            left: ast.stmt = ast.copy_location(Leaving() if inside else _Held(None), statement)
            if not endless:
                left = ast.copy_location(ast.If(ast.Name(_RETURNED, ast.Load()), [left], []), statement)
            changed = copy.copy(statement)
            changed.body = _leaving_loops(statement.body, names, True)
            made += [changed, ast.fix_missing_locations(left)]
        else:
            made.append(statement)
    return made


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)
