"""Rewritten definitions as functions: with the closure, globals and defaults of the original, and a few names more."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from types import CellType, CodeType, FunctionType

from tcdsl.frontend.source.nested_blocks import with_few_blocks, without_inner_names

__all__ = [
    "ARM",
    "CHOICE",
    "DEFINITION",
    "RECORDER",
    "RESULT",
    "STATEMENTS",
    "compiled_definition",
    "is_result",
    "thunk",
    "with_closure",
]

RECORDER = "__tcdsl__"
"""The closure variable of a rewritten function that holds its recorder; other names made up there begin with it."""

RESULT = f"{RECORDER}result"
"""What a function returns that has several `return`s."""

STATEMENTS = f"{RECORDER}statements"
"""The closure variable that holds what the recorder is told of each statement."""

CHOICE = f"{RECORDER}choice"
"""What `a if c else b` gives."""

DEFINITION = f"{RECORDER}definition"
"""What a local definition computes, as a function, where it may be a branch as well."""

ARM = f"{RECORDER}arm"
"""How names begin that say which arm of a branch, or which round of a ``while``, is being staged."""


def is_result(name: str) -> bool:
    """Whether a name, or a part of what it holds, is what a function returns."""
    return name.startswith(RESULT)


def thunk(body: ast.expr) -> ast.Lambda:
    """The expression ``lambda: body``."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


def compiled_definition(
    function: FunctionType, definition: ast.FunctionDef, added: Collection[str], filename: str
) -> CodeType:
    """The code of a rewritten definition of ``function``, in which ``added`` are free variables too."""
    # It is compiled inside a function that has the closure's names as parameters, so that Python makes them free
    # variables; there the definition must not bind the function's own name, which its body may mean.
    names = (*function.__code__.co_freevars, *added)
    given = ast.arguments([], [ast.arg(name, None, None) for name in names], None, [], [], None, [])
    with_few_blocks(definition)
    definition.name = "rewritten"
    factory = ast.FunctionDef("factory", given, [definition], [], None, None)
    ast.copy_location(factory, definition)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    outer = _code_named("factory", compile(module, filename, "exec"))
    code = _code_named(definition.name, outer)
    return without_inner_names(code.replace(co_name=function.__name__, co_qualname=function.__qualname__))


def with_closure(function: FunctionType, code: CodeType, added: Mapping[str, object]) -> FunctionType:
    """The function of `compiled_definition`, with the values of the names ``added``."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells.update({name: CellType(value) for name, value in added.items()})
    closure = tuple(cells[name] for name in code.co_freevars)
    rewritten = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    rewritten.__kwdefaults__ = function.__kwdefaults__
    rewritten.__qualname__ = function.__qualname__
    return rewritten


def _code_named(name: str, code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
