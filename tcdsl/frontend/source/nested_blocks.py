"""Functions of more nested blocks than Python compiles: inner ones stand in functions of their own.

::

    for arm in RECORDER.arms(...):        def inner():
        ...                                   nonlocal y
            for arm in RECORDER.arms(...):    for arm in RECORDER.arms(...):
                y = y + 1                         y = y + 1

                                          for arm in RECORDER.arms(...):
                                              ...
                                                  inner()

Python counts loops, `with` and `try`, and no `if`; in rewritten functions every branch that may run is a loop. What the
function holds is in its own frame, where all names stay (`own_frame`).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from types import CodeType, FrameType
from typing import cast

__all__ = ["INNER", "own_frame", "with_few_blocks", "without_inner_names"]

INNER = "__tcdsl__inner"
"""How the names of inner functions begin."""

#: What Python allows in all versions, and where in between an inner function begins.
_MOST, _ENOUGH = 20, 10
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Calls that look at the function they stand in.
_FRAME_CALLS = frozenset(("super", "locals", "vars", "dir", "eval", "exec"))


def own_frame() -> FrameType:
    """The frame of the rewritten function that calls the caller, from itself or from an inner one."""
    frame = sys._getframe(2)
    while frame.f_code.co_qualname == INNER:
        frame = cast(FrameType, frame.f_back)
    return frame


def with_few_blocks(definition: ast.FunctionDef) -> None:
    """Move blocks of ``definition`` into functions where it has more of them in each other than Python compiles."""
    if max(map(_depth, definition.body)) > _MOST:
        names = {name for each in _of_this_scope(definition) if isinstance(each, ast.Global) for name in each.names}
        definition.body = _Inner(names).moved(definition.body, 0)


def without_inner_names(code: CodeType) -> CodeType:
    """``code``, where inner functions have its name in tracebacks."""
    parts = tuple(_named_as(part, code) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_consts=parts)


def _named_as(part: CodeType, code: CodeType) -> CodeType:
    if not part.co_name.startswith(INNER):
        return part
    return without_inner_names(part.replace(co_name=code.co_name, co_qualname=INNER))


class _Inner:
    def __init__(self, global_names: Collection[str]) -> None:
        self._global = global_names
        self._number = 0

    def moved(self, body: list[ast.stmt], around: int) -> list[ast.stmt]:
        """``body``, with ``around`` blocks of the same function around it."""
        made: list[ast.stmt] = []
        for statement in body:
            if around + _depth(statement) > _MOST:
                if around >= _ENOUGH and not _belongs_here(statement):
                    made.extend(self._function(statement))
                    continue
                for block in _bodies(statement):
                    block[:] = self.moved(block, around + _blocks(statement))
            made.append(statement)
        return made

    def _function(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        # A name is the outer function's if that binds it: it does so in a line that never runs, and is not compiled.
        bound = set(_bound(statement))
        names, others = sorted(bound.difference(self._global)), sorted(bound.intersection(self._global))
        self._number += 1
        function = f"{INNER}{self._number}"
        none = ast.arguments([], [], None, [], [], None, [])
        inner = ast.FunctionDef(function, none, self.moved([statement], 0), [], None, None)
        if others:
            inner.body.insert(0, ast.Global(others))
        if names:
            inner.body.insert(0, ast.Nonlocal(names))
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
            never = ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])
            yield _placed(never, statement)
        yield _placed(inner, statement)
        yield _placed(ast.Expr(ast.Call(ast.Name(function, ast.Load()), [], [])), statement)


def _placed(made: ast.stmt, statement: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(made, statement))


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    # The lists of statements in a statement, but those of functions and classes.
    if not isinstance(node, _SCOPES):
        yield from (part for name in ("body", "orelse", "finalbody") if (part := getattr(node, name, None)))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield inner.body


def _blocks(node: ast.AST) -> int:
    # How many blocks what stands in it is in, at most: a handler of `try` is in three.
    match node:
        case ast.For() | ast.AsyncFor() | ast.While():
            return 1
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return len(items)
        case ast.Try() | ast.TryStar():
            return 3
    return 0


def _depth(statement: ast.stmt) -> int:
    # How many blocks stand in each other.
    deepest, pending = 0, [(statement, 0)]
    while pending:
        node, depth = pending.pop()
        depth += _blocks(node)
        deepest = max(deepest, depth)
        pending.extend((each, depth) for body in _bodies(node) for each in body)
    return deepest


def _belongs_here(statement: ast.stmt) -> bool:
    # Whether it leaves a loop around it, or the function, or asks for the frame it stands in.
    kinds = ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal
    for node in _of_this_scope(statement):
        if isinstance(node, kinds) or (isinstance(node, ast.Name) and node.id in _FRAME_CALLS):
            return True
    return _jumps(statement)


def _jumps(node: ast.stmt) -> bool:
    if isinstance(node, ast.Break | ast.Continue):
        return True
    loop = isinstance(node, ast.For | ast.AsyncFor | ast.While)
    bodies = [node.orelse] if loop else _bodies(node)  # type: ignore[attr-defined]
    return any(_jumps(each) for body in bodies for each in body)


def _of_this_scope(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, _SCOPES):
        return
    for part in ast.iter_child_nodes(node):
        yield from _of_this_scope(part)


def _bound(node: ast.AST) -> Iterator[str]:
    # The names that a statement binds in the function it stands in.
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name)
        ):
            yield name
        case ast.MatchMapping(rest=str() as name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
    if isinstance(node, _SCOPES):
        return
    if isinstance(node, _COMPREHENSIONS):
        yield from (part.target.id for part in _of_this_scope(node) if isinstance(part, ast.NamedExpr))
        return
    for part in ast.iter_child_nodes(node):
        yield from _bound(part)
