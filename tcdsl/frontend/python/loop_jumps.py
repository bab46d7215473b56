"""Bodies of loops without jumps: what comes after a branch that ends in ``break`` or ``continue`` is its other arm.

::

    for t in range(n):                 for t in range(n):
        x = step(x)                        left = False
        if done(x):                        x = step(x)
            break                          if done(x):
        y = x                                  left = True
                                           else:
                                               y = x
                                           if RECORDER.leaves(STATEMENT, left):
                                               break

So the loop may be one that runs: another round is one that was not left.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

__all__ = ["breaks", "without_jumps"]


def _jumps(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    # Those of this loop: not in loops inside it, nor in what is not run in order.
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Break | ast.Continue):
            found.append(statement)
        elif isinstance(statement, ast.If):
            found += _jumps(statement.body) + _jumps(statement.orelse)
    return found


def breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether the rounds of a loop may be left by ``break``, as far as `without_jumps` sees."""
    return any(isinstance(each, ast.Break) for each in _jumps(body))


def without_jumps(body: Sequence[ast.stmt], left: str) -> list[ast.stmt]:
    """``body`` with assignments to ``left`` in place of ``break``; as it is where an arm may jump or go on."""
    if not _jumps(body):
        return list(body)
    made = _straight(body, left)
    if made is None:
        return list(body)
    if not breaks(body):
        return made
    first = ast.copy_location(_assigned(left, False), body[0])
    return [ast.fix_missing_locations(first), *made]


def _assigned(name: str, value: bool) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))


def _ends(body: Sequence[ast.stmt]) -> bool:
    match body[-1] if body else None:
        case ast.Break() | ast.Continue() | ast.Return() | ast.Raise():
            return True
        case ast.If(body=taken, orelse=otherwise):
            return _ends(taken) and _ends(otherwise)
    return False


def _straight(body: Sequence[ast.stmt], left: str) -> list[ast.stmt] | None:
    made: list[ast.stmt] = []
    for k, statement in enumerate(body):
        if isinstance(statement, ast.Break):
            return [*made, ast.fix_missing_locations(ast.copy_location(_assigned(left, True), statement))]
        if isinstance(statement, ast.Continue):
            return [*made, ast.copy_location(ast.Pass(), statement)]
        if not isinstance(statement, ast.If) or not _jumps([statement]):
            made.append(statement)
            continue
        rest = body[k + 1 :]
        taken, otherwise = _ends(statement.body), _ends(statement.orelse)
        if not (taken or otherwise) and rest:
            return None
        arms = (
            _straight(statement.body if taken else [*statement.body, *rest], left),
            _straight(statement.orelse if otherwise else [*statement.orelse, *rest], left),
        )
        if arms[0] is None or arms[1] is None:
            return None
        return [*made, ast.copy_location(ast.If(statement.test, arms[0], arms[1]), statement)]
    return made
