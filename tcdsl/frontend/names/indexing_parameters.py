"""Which parameters of the user's functions index: ``j`` of ``def cell(a, j): return a[j + 1]``.

What a tensor statement gives for them stands in a subscript: in ``s[()] += cell(x, k)`` the name ``k`` is an index
variable, as it is in ``s[()] += x[k + 1]``.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

from tcdsl.frontend.source.function_source import readable_source
from tcdsl.frontend.staging.called_functions import is_installed, users_function
from tcdsl.recent import Recent

__all__ = ["indexing_arguments", "is_users"]

_KNOWN: Recent[CodeType, frozenset[str]] = Recent(1000)


def is_users(function: object) -> bool:
    """Whether a call of ``function`` runs Python code of the user's."""
    plain, _ = users_function(function)
    return plain is not None and not is_installed(plain.__code__.co_filename)


def indexing_arguments(function: object, call: ast.Call) -> list[ast.expr]:
    """The arguments of ``call``, of ``function``, that stand for indices there."""
    plain, receiver = users_function(function)
    if plain is None or is_installed(plain.__code__.co_filename):
        return []
    names = _indexing(plain)
    positional = [*plain.__code__.co_varnames[: plain.__code__.co_argcount]][receiver is not None :]
    starred = next((k for k, each in enumerate(call.args) if isinstance(each, ast.Starred)), len(call.args))
    given = [each for name, each in zip(positional, call.args[:starred], strict=False) if name in names]
    return [*given, *(each.value for each in call.keywords if each.arg in names)]


def _indexing(function: FunctionType) -> frozenset[str]:
    code = function.__code__
    found = _KNOWN.get(code)
    if found is None:
        _KNOWN[code] = frozenset()  # while it is looked for: functions may call each other
        source = readable_source(function)
        if source is None:
            return frozenset()
        surroundings = inspect.getclosurevars(function)
        around = {**surroundings.globals, **surroundings.nonlocals}
        names = {each for node in ast.walk(source.definition) for each in _indices(node, around)}
        found = _KNOWN[code] = frozenset(names & set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]))
    return found


def _indices(node: ast.AST, around: dict[str, object]) -> Iterator[str]:
    match node:
        case ast.Subscript(slice=index):
            parts: list[ast.expr] = [index]
        case ast.Call(func=ast.Name(id=name)):
            parts = indexing_arguments(around.get(name), node)
        case _:
            return
    yield from (each.id for part in parts for each in ast.walk(part) if isinstance(each, ast.Name))
