"""Local definitions: values that have a name, so that they are computed once per point however often they are used.

Definitions mention each other, and the same one may be mentioned many times; everything here goes through each of them
once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcdsl.frontend.symbols.values import Product, Value
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    Expr,
    IndexValue,
    Local,
    Reduction,
    SizeValue,
    children,
    transform,
    walk,
)
from tcdsl.span import Span

__all__ = [
    "FACTOR",
    "GENERATED",
    "Definition",
    "all_definitions",
    "bounded",
    "captured",
    "define",
    "definition_name",
    "index_names",
    "is_affine_test",
    "is_definition",
    "marked",
    "outside_names",
    "serial",
]

# Marks names that the user did not write: variables of generators (`j#0`) and local definitions (`z#7`). Both get
# readable names when the statement is complete.
GENERATED = "#"

# Marks the name of a local definition that stands behind its own brackets, as a factor of a product.
FACTOR = "!"

_serial = itertools.count()

# So many nodes of index arithmetic are written out wherever they are used.
_FEW = 32

# A value of more nodes gets a name of its own.
_MANY = 100


Definitions: TypeAlias = "Mapping[str, Definition]"


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A value, the index variables that it mentions, and which outside of reductions, and the definitions in it."""

    value: Value
    names: tuple[str, ...]
    outside: tuple[str, ...]
    mentions: Mapping[str, Definition]

    @staticmethod
    def of(value: Value, mentions: Definitions) -> Definition:
        """The definition of ``value``, which mentions ``mentions``."""
        outside = outside_names(value.expr, mentions)
        return Definition(value, index_names(value.expr, mentions), outside, mentions)


# -- tests ------------------------------------------------------------------------------------------


def is_affine_test(condition: Expr) -> bool:
    """Whether a condition is made of index variables, sizes and numbers alone, so that it can bound a loop."""
    return all(isinstance(node, Apply | Constant | IndexValue | SizeValue) for node in walk(condition))


def _is_plain(expr: Expr) -> bool:
    if isinstance(expr, Local):
        return True  # it has a name
    return next(itertools.islice(walk(expr), _FEW, None), None) is None and is_affine_test(expr)


# -- names ---------------------------------------------------------------------------------------------------


def is_definition(node: Expr) -> bool:
    """Whether ``node`` mentions a local definition."""
    return isinstance(node, Local) and GENERATED in node.name


def definition_name(local: Local) -> str:
    """The name of the definition that ``local`` mentions, as a factor or otherwise."""
    return _own_name(local.name)


def _own_name(key: str) -> str:
    name, rest = key.split(GENERATED, maxsplit=1)
    return f"{name.removesuffix(FACTOR)}{GENERATED}{rest}"


def serial(name: str) -> int:
    """The number of a definition; those that it mentions have smaller ones."""
    return int(name.rsplit(GENERATED, 1)[1])


def _marked(key: str, mark: str) -> str:
    # Another definition of the same readable name and serial number: `z#7` becomes `z#<mark>#7`.
    name, number = key.split(GENERATED, maxsplit=1)[0], key.rsplit(GENERATED, 1)[1]
    return f"{name}{GENERATED}{mark}{GENERATED}{number}"


def index_names(expr: Expr, definitions: Definitions) -> tuple[str, ...]:
    """The index variables that ``expr`` mentions, in the order of their first occurrence."""
    found: dict[str, None] = {}
    for node in walk(expr):
        if isinstance(node, IndexValue) and GENERATED not in node.name:
            found[node.name] = None
        elif isinstance(node, Local) and node.name in definitions:
            found.update(dict.fromkeys(definitions[node.name].names))
    return tuple(found)


def outside_names(expr: Expr, definitions: Definitions) -> tuple[str, ...]:
    """The index variables that occur outside of reductions without a generator, in order."""
    return tuple(dict.fromkeys(_outside(expr, definitions, frozenset())))


def _outside(expr: Expr, definitions: Definitions, hidden: frozenset[str]) -> Iterator[str]:
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, IndexValue):
            if node.name not in hidden:
                yield node.name
        elif isinstance(node, Local) and node.name in definitions:
            yield from (name for name in definitions[node.name].outside if name not in hidden)
        elif isinstance(node, Reduction):
            if node.variables:
                ends = [end for stated in node.ranges for end in (stated.low, stated.high)]
                for part in (*ends, *node.conditions, node.value):
                    yield from _outside(part, definitions, hidden | frozenset(node.variables))
        else:
            stack.extend(reversed(children(node)))


# -- definitions ---------------------------------------------------------------------------------------------


def define(name: str, value: Value, definitions: Definitions, span: Span | None) -> tuple[Value, Definitions]:
    """``value`` under a name, and the definitions that it mentions then.

    Its brackets stay those of every product that it becomes a factor of. What is made of indices and numbers alone gets
    no name, so that it can be an index or bound a loop.
    """
    if _is_plain(value.expr):
        return value, definitions
    made: dict[str, Definition] = {}
    product = value.product
    if product is not None:
        brackets = tuple(_bracket(f"{name}_if", test, definitions, made, span) for test in product.brackets)
        value = replace(value, product=replace(product, brackets=brackets))
    mentioned = _mentioned(value, {**definitions, **made})
    key = f"{name}{GENERATED}{next(_serial)}"
    made[key] = Definition.of(value, mentioned)
    local = value.with_expr(Local(key, value.expr.dtype, span))
    if product is not None:
        rest = product.rest
        if not _is_plain(rest.expr):
            factor = key.replace(GENERATED, FACTOR + GENERATED)
            made[factor] = made[key]
            rest = local.with_expr(Local(factor, local.expr.dtype, span))
        local = replace(local, product=Product(brackets, rest))
    return local, _mentioned(local, {**definitions, **made})


def marked(name: str, value: Value, definitions: Definitions, span: Span | None) -> tuple[Value, Definitions]:
    """``value`` under a name, whatever it is."""
    key = f"{name}{GENERATED}{next(_serial)}"
    return value.with_expr(Local(key, value.expr.dtype, span)), {
        key: Definition.of(value, _mentioned(value, definitions))
    }


def bounded(value: Value, definitions: Definitions, span: Span | None, nodes: int = _MANY) -> tuple[Value, Definitions]:
    """``value``, under a name of its own if it has many nodes: what is made of it does not grow with every use then."""
    if next(itertools.islice(walk(value.expr), nodes, None), None) is None or is_affine_test(value.expr):
        return value, definitions
    return define("part", value, definitions, span)


def _bracket(name: str, test: Expr, definitions: Definitions, made: dict[str, Definition], span: Span | None) -> Expr:
    if _is_plain(test):
        return test
    value = Value(test, None, "bool")
    mentioned = _mentioned(value, definitions)
    key = f"{name}{GENERATED}{next(_serial)}"
    made[key] = Definition.of(value, mentioned)
    return Local(key, test.dtype, span)


def _mentioned(value: Value, definitions: Definitions) -> Definitions:
    exprs = [value.expr]
    if value.product is not None:
        exprs += [*value.product.brackets, value.product.rest.expr]
    names = {node.name for expr in exprs for node in walk(expr) if isinstance(node, Local)}
    return {name: definitions[name] for name in names if name in definitions}


def all_definitions(definitions: Definitions) -> dict[str, Definition]:
    """``definitions`` and all that they mention, in the order in which they were made."""
    found: dict[str, Definition] = {}
    stack = list(definitions.items())
    while stack:
        name, definition = stack.pop()
        if name not in found:
            found[name] = definition
            stack.extend(definition.mentions.items())
    # One that is mentioned as a factor alone is found under its own name too.
    found = {**{_own_name(name): definition for name, definition in found.items()}, **found}
    return {name: found[name] for name in sorted(found, key=serial)}


def captured(value: Value, definitions: Definitions, scope: Mapping[str, Expr]) -> tuple[Value, Definitions]:
    """The same value where ``scope`` says what its index variables are: inside of a generator that binds them."""
    names = [name for name in index_names(value.expr, definitions) if name in scope]
    if not names:
        return value, definitions
    mark = "_".join(repr(scope[name]) for name in names)
    made: dict[str, Definition] = {}
    keys: dict[str, str] = {}

    def rule(node: Expr) -> Expr:
        if isinstance(node, IndexValue):
            return scope.get(node.name, node)
        return replace(node, name=keys[node.name]) if isinstance(node, Local) and node.name in keys else node

    def renamed(given: Value) -> Value:
        return given.mapped(lambda expr: transform(expr, rule))

    for key, definition in all_definitions(definitions).items():
        if not scope.keys().isdisjoint(definition.names):
            new = renamed(definition.value)
            keys[key] = _marked(key, mark)
            mentions = {
                keys.get(name, name): made.get(keys.get(name, name), held) for name, held in definition.mentions.items()
            }
            made[keys[key]] = Definition.of(new, mentions)
    return renamed(value), {**definitions, **made}
