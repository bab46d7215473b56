"""The expressions of the oracle: what one tensor statement says once sizes are numbers.

The oracle is a second implementation of the language's rules for single functions. It imports nothing from tcdsl, so a
fault in the front end or in range inference cannot hide behind the same fault here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "BOUNDARIES",
    "Axis",
    "Cell",
    "Fold",
    "Node",
    "Number",
    "Operation",
    "Variable",
    "free_variables",
    "has_data",
    "variables_of",
    "walk",
]

BOUNDARIES = ("clamp", "wrap", "reflect", "symmetric")


@dataclass(frozen=True, eq=False)
class Number:
    """A Python number: a literal, or a size, which is known here but not to tcdsl when it stages (``symbolic``)."""

    value: bool | int | float
    symbolic: bool = False


@dataclass(frozen=True, eq=False)
class Variable:
    """An index variable. Names are unique in a statement: variables of different reductions have been renamed."""

    name: str


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a read: ``mode`` is ``direct``, ``data``, ``clamp``, ``wrap``, ``reflect`` or ``symmetric``."""

    mode: str
    index: Node


@dataclass(frozen=True, eq=False)
class Cell:
    """A read of one cell, ``A[i, k]``; ``fill`` is the second argument of a ``get`` around it."""

    tensor: str
    axes: tuple[Axis, ...]
    fill: Node | None = None


@dataclass(frozen=True, eq=False)
class Operation:
    """``+ - / // % ** neg``, ``product`` (all its factors), comparisons, ``and or not if where``, functions.

    A boundary around an index of a target is one, too: its extent is not known here.
    """

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Fold:
    """A reduction inside a value: ``sum(E[i, l])`` has ``kind`` ``sum`` and ``variables`` ``("l",)``.

    ``ranges`` holds ``(variable, low, high)`` of a generator; ``conditions`` its ``if``s.
    """

    kind: str
    variables: tuple[str, ...]
    ranges: tuple[tuple[str, int, int], ...]
    conditions: tuple[Node, ...]
    body: Node


Node = Number | Variable | Cell | Operation | Fold


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it."""
    yield node
    match node:
        case Cell(axes=axes, fill=fill):
            for axis in axes:
                yield from walk(axis.index)
            if fill is not None:
                yield from walk(fill)
        case Operation(arguments=arguments):
            for argument in arguments:
                yield from walk(argument)
        case Fold(conditions=conditions, body=body):
            for condition in conditions:
                yield from walk(condition)
            yield from walk(body)


def has_data(node: Node) -> bool:
    """Whether ``node`` reads an array, divides a variable by a size, or is an index of a target under a boundary."""
    return any(isinstance(part, Cell) or (isinstance(part, Operation) and _is_data(part)) for part in walk(node))


def _is_data(node: Operation) -> bool:
    if node.name in ("//", "%"):
        divided, divisor = node.arguments
        by_size = any(isinstance(part, Number) and part.symbolic for part in walk(divisor))
        return by_size and bool(variables_of(divided))
    return node.name in BOUNDARIES


def variables_of(node: Node) -> frozenset[str]:
    """The names of the index variables below ``node``."""
    return frozenset(part.name for part in walk(node) if isinstance(part, Variable))


def free_variables(node: Node) -> frozenset[str]:
    """The same without those of reductions below it."""
    bound = {name for part in walk(node) if isinstance(part, Fold) for name in part.variables}
    return variables_of(node) - bound
