"""What a name means in a tensor statement: an index variable, or the value that Python's scoping gives.

In subscripts, conditions and ranges of generators the rule is

1. a name that the function has bound when the statement is staged is that value;
2. another one-letter lower-case name is an index variable, whatever surrounds the function;
3. a longer lower-case one is looked up in enclosing functions, and is an index variable else, unless a module's global
   of that name is a number: then it is an error that says to pass it as a parameter;
4. names that start upper-case are ordinary Python.

In values the statement's index variables come first, then Python's scoping, then the language's own names. A name
that is called, subscripted or followed by a dot follows the rule for values everywhere.

Some parameters of the user's functions index: ``j`` of ``def cell(a, j): return a[j + 1]``. What a tensor statement
gives for them stands in a subscript: in ``s[()] += cell(x, k)`` the name ``k`` is an index variable, as it is in
``s[()] += x[k + 1]``.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Number
from types import CodeType, FunctionType

from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.language_functions import LANGUAGE_FUNCTIONS
from tcdsl.frontend.points.point_scalars import point_of
from tcdsl.frontend.source.function_source import readable_source
from tcdsl.frontend.staging.target_states import UNBOUND
from tcdsl.frontend.surroundings.named_values import is_installed, users_function
from tcdsl.frontend.symbols.recognition import CONSTANTS
from tcdsl.frontend.symbols.symbols import SymbolicArray
from tcdsl.recent import Recent

__all__ = [
    "GlobalNumber",
    "IndexName",
    "Position",
    "index_meaning",
    "index_names",
    "indexing_names",
    "is_letter",
    "is_range",
    "value_meaning",
]


class Position(Enum):
    """Where an expression stands: it decides what names mean, and that integers in subscripts are int64."""

    VALUE = "value"
    INDEX = "index"
    CONDITION = "condition"


@dataclass(frozen=True, slots=True)
class IndexName:
    """The meaning of a name that is an index variable."""

    name: str


@dataclass(frozen=True, slots=True)
class GlobalNumber:
    """The meaning of a name that would be an index variable if the module did not have a number of that name."""

    value: object


def is_letter(name: str) -> bool:
    """Whether ``name`` is an index variable wherever the function has not bound it."""
    return len(name) == 1 and name.islower()


def index_meaning(name: str, environment: FunctionScope) -> object:
    """What a name in a subscript, a condition or a range is: `IndexName`, `GlobalNumber`, a value, ``UNBOUND``."""
    own = environment.own(name)
    if own is not UNBOUND:
        return own
    if is_letter(name):
        return IndexName(name)
    if name.lstrip("_")[:1].isupper():
        return value_meaning(name, environment)
    if environment.is_unwritten(name):
        return IndexName(name)
    outer = environment.enclosing(name)
    if outer is not UNBOUND:
        return outer
    surrounding = environment.module(name)
    if isinstance(surrounding, Number):
        return GlobalNumber(surrounding)
    return IndexName(name)


def value_meaning(name: str, environment: FunctionScope) -> object:
    """The meaning of a name in a value, apart from index variables; ``UNBOUND`` if it has none."""
    found = environment.value_of(name)
    return CONSTANTS.get(name, LANGUAGE_FUNCTIONS.get(name, UNBOUND)) if found is UNBOUND else found


def index_names(
    indices: Sequence[ast.expr],
    value: ast.expr,
    conditions: Sequence[ast.expr],
    environment: FunctionScope,
    hidden: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    """The index variables of a statement in the order of their first occurrence, without those of generators, and of
    what ``hidden`` names stand for.
    """
    found: dict[str, None] = {}
    for node in indices:
        found.update(dict.fromkeys(_names(node, True, hidden, environment)))
    found.update(dict.fromkeys(_names(value, False, hidden, environment)))
    for node in conditions:
        found.update(dict.fromkeys(_names(node, True, hidden, environment)))
    return tuple(found)


def _names(node: ast.AST, indexing: bool, hidden: frozenset[str], environment: FunctionScope) -> Iterator[str]:
    # The names below node that are index variables; `hidden` ones belong to a generator or a lambda.
    match node:
        case ast.Name(id=name):
            if name not in hidden:
                yield from (found for found in _name(name, indexing, environment) if found not in hidden)
        case ast.Subscript(value=base, slice=index):
            yield from _base_names(base, indexing, hidden, environment)
            yield from _names(index, True, hidden, environment)
        case ast.Attribute(value=base):
            yield from _base_names(base, indexing, hidden, environment)
        case ast.Call(func=function, args=arguments, keywords=keywords):
            yield from _base_names(function, indexing, hidden, environment)
            for argument in (*arguments, *(keyword.value for keyword in keywords)):
                yield from _names(argument, indexing, hidden, environment)
            for argument in index_arguments(node, environment):
                # Its letters; longer names are what Python has for them, as in every argument.
                yield from (name for name in _names(argument, True, hidden, environment) if is_letter(name))
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element) | ast.SetComp(elt=element):
            for clause in node.generators:
                yield from _names(clause.iter, is_range(clause.iter, environment), hidden, environment)
                hidden |= {name.id for name in ast.walk(clause.target) if isinstance(name, ast.Name)}
                for condition in clause.ifs:
                    yield from _names(condition, True, hidden, environment)
            yield from _names(element, indexing, hidden, environment)
        case ast.Lambda(args=arguments, body=body):
            yield from _names(body, indexing, hidden | {argument.arg for argument in arguments.args}, environment)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _names(child, indexing, hidden, environment)


def index_arguments(call: ast.Call, environment: FunctionScope) -> list[ast.expr]:
    """The arguments of a call that stand for indices: of functions of the user's that index with them, and letters that
    mean nothing else.
    """
    function = _called(call.func, environment)
    return [*indexing_arguments(function, call), *_free_letters(function, call, environment)]


def indexing_names(node: ast.AST, environment: FunctionScope) -> frozenset[str]:
    """The names in the subscripts of ``node``, and in what it gives functions of the user's to index with."""
    parts: list[ast.expr] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript):
            parts.append(part.slice)
        elif isinstance(part, ast.Call):
            parts.extend(indexing_arguments(_called(part.func, environment), part))
    return frozenset(each.id for part in parts for each in ast.walk(part) if isinstance(each, ast.Name))


def _called(node: ast.expr, environment: FunctionScope) -> object:
    # What a call calls, as far as names and attributes say.
    match node:
        case ast.Name(id=name):
            return value_meaning(name, environment)
        case ast.Attribute(value=base, attr=name):
            holder = _called(base, environment)
            return UNBOUND if isinstance(holder, SymbolicArray) else getattr(holder, name, UNBOUND)
    return UNBOUND


def _free_letters(function: object, call: ast.Call, environment: FunctionScope) -> Iterator[ast.expr]:
    if is_users(function):
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            letter = isinstance(argument, ast.Name) and is_letter(argument.id)
            if letter and value_meaning(argument.id, environment) is UNBOUND:  # type: ignore[attr-defined]
                yield argument


def _name(name: str, indexing: bool, environment: FunctionScope) -> Iterator[str]:
    point = point_of(environment.own(name))
    if point is not None:
        # A local definition: its index variables become those of the statement that uses it.
        yield from point.index_names()
    elif name in environment.letters or (
        indexing and isinstance(index_meaning(name, environment), IndexName | GlobalNumber)
    ):
        yield name


def _base_names(base: ast.expr, indexing: bool, hidden: frozenset[str], environment: FunctionScope) -> Iterator[str]:
    if not isinstance(base, ast.Name):
        yield from _names(base, indexing, hidden, environment)


def is_range(node: ast.expr, environment: FunctionScope) -> bool:
    """Whether ``node`` is a call of Python's ``range``."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return value_meaning(name, environment) is range
        case _:
            return False


_KNOWN: Recent[CodeType, frozenset[str]] = Recent(1000)


def is_users(function: object) -> bool:
    """Whether a call of ``function`` runs Python code of the user's."""
    plain, _ = users_function(function)
    return plain is not None and not is_installed(plain.__code__.co_filename)


def indexing_arguments(function: object, call: ast.Call) -> list[ast.expr]:
    """The arguments of ``call``, of ``function``, that stand for indices there."""
    plain, receiver = users_function(function)
    if plain is None or not is_users(plain):
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
