"""Functions that return in an arm of a branch, with one return at their end: the rest becomes the other arm.

::

    if n > limit:                  if n > limit:
        return w                       result = w
    w = 2 * w                      else:
    return w                           w = 2 * w
                                       result = w
                                   return result

So the branch may be one that runs. Returns in loops stay what they are.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

__all__ = ["with_single_return"]


def with_single_return(body: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """The body with what it returns in ``name``, or in ``name0``, ``name1``, ... if it always returns so many values.

    A body that has no such branch, or one of which an arm may return and may go on, stays as it is.
    """
    if not any(isinstance(statement, ast.If) and _returns([statement]) for statement in body):
        return list(body)
    found = [each for each in _returns(body) if each is not None]
    lengths = {len(each.value.elts) if _is_display(each.value) else 0 for each in found}  # type: ignore[union-attr]
    count = lengths.pop() if len(lengths) == 1 else 0
    names = [f"{name}{k}" for k in range(count)] or [name]
    made = _ended(list(body), names)
    if made is None:
        return list(body)
    last = body[-1]
    parts: list[ast.expr] = [ast.Name(each, ast.Load()) for each in names]
    result = ast.Return(ast.Tuple(parts, ast.Load()) if count else parts[0])
    return [*made, ast.fix_missing_locations(ast.copy_location(result, last))]


def _is_display(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in value.elts)


def _returns(body: Sequence[ast.stmt]) -> list[ast.Return]:
    # Those outside of loops and of what is not run in order.
    found: list[ast.Return] = []
    for statement in body:
        if isinstance(statement, ast.Return):
            found.append(statement)
        elif isinstance(statement, ast.If):
            found += _returns(statement.body) + _returns(statement.orelse)
    return found


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing runs after ``body``."""
    match body[-1] if body else None:
        case ast.Return() | ast.Raise():
            return True
        case ast.If(body=taken, orelse=otherwise):
            return _ends(taken) and _ends(otherwise)
    return False


def _ended(body: Sequence[ast.stmt], names: Sequence[str]) -> list[ast.stmt] | None:
    """``body`` with assignments in place of returns, and nothing after them; ``None`` if that cannot be."""
    made: list[ast.stmt] = []
    for k, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            return [*made, _assigned(statement, names)]
        if not isinstance(statement, ast.If) or not _returns([statement]):
            made.append(statement)
            continue
        rest = body[k + 1 :]
        taken, otherwise = _ends(statement.body), _ends(statement.orelse)
        if not (taken or otherwise):
            return None
        arms = (
            _ended(statement.body if taken else [*statement.body, *rest], names),
            _ended(statement.orelse if otherwise else [*statement.orelse, *rest], names),
        )
        if arms[0] is None or arms[1] is None:
            return None
        return [*made, ast.copy_location(ast.If(statement.test, arms[0], arms[1]), statement)]
    if made and isinstance(made[-1], ast.Raise):
        return made
    nothing = ast.copy_location(ast.Return(None), body[-1]) if body else ast.Return(None)
    return [*made, _assigned(nothing, names)]


def _assigned(statement: ast.Return, names: Sequence[str]) -> ast.stmt:
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    value = statement.value if statement.value is not None else ast.Constant(None)
    target = targets[0]
    if isinstance(statement.value, ast.Tuple) and len(names) == len(statement.value.elts) and names[0][-1].isdigit():
        target = ast.Tuple(targets, ast.Store())
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), statement))
