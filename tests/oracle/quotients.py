"""Quotients of products: the factors of a numerator, brackets among them, are factors of the quotient.

::

    (k > 0) * a / b         product((k > 0), a / b)
    -(m * a) // b           product(m, -(a) // b)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tests.oracle.kinds import is_bool, kind_of
from tests.oracle.nodes import Axis, Cell, Fold, Node, Number, Operation

__all__ = ["with_brackets_in_front"]

_NUMERATOR_FIRST = ("/", "//", "%", "neg")


def with_brackets_in_front(node: Node, dtypes: Mapping[str, np.dtype]) -> Node:
    """``node`` with the brackets of numerators as factors of the quotients, everywhere."""

    def again(part: Node) -> Node:
        return with_brackets_in_front(part, dtypes)

    match node:
        case Cell(axes=axes, fill=fill):
            moved = tuple(Axis(axis.mode, again(axis.index)) for axis in axes)
            return replace(node, axes=moved, fill=None if fill is None else again(fill))
        case Fold(conditions=conditions, body=body):
            return replace(node, conditions=tuple(map(again, conditions)), body=again(body))
        case Operation(name=name, arguments=arguments):
            parts = tuple(map(again, arguments))
            return _lifted(name, parts, dtypes)
    return node


def _lifted(name: str, parts: tuple[Node, ...], dtypes: Mapping[str, np.dtype]) -> Operation:
    if name == "product":
        return Operation(name, tuple(factor for part in parts for factor in _factors(part)))
    numerator = parts[0]
    factors = _factors(numerator) if name in _NUMERATOR_FIRST else ()
    brackets = tuple(factor for factor in factors if is_bool(kind_of(factor, dtypes)))
    if not brackets or (name == "neg" and len(factors) == 1):
        return Operation(name, parts)
    rest = tuple(factor for factor in factors if factor not in brackets)
    numerator = Operation("product", rest) if len(rest) > 1 else rest[0] if rest else Number(1)
    return Operation("product", (*brackets, Operation(name, (numerator, *parts[1:]))))


def _factors(node: Node) -> tuple[Node, ...]:
    return node.arguments if isinstance(node, Operation) and node.name == "product" else (node,)
