"""Products, and Iverson's brackets: a comparison or truth value as a factor of a product.

``I[k] * (k <= i) * w[k]`` is one product with one bracket. Where the bracket is false the product is 0 and nothing
behind it is evaluated: no NaN, no read out of range. Brackets are collected over the whole product, however it is
parenthesized or negated, and guard all of its other factors.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tcdsl.frontend.evaluator import Evaluator
from tcdsl.frontend.names import Position
from tcdsl.frontend.operations import binary, negated
from tcdsl.frontend.values import Value
from tcdsl.ir.build import constant

__all__ = ["product"]


@dataclass(frozen=True, slots=True)
class _Product:
    # The brackets of a product in order, and what its other factors make; None if there are no others.
    brackets: tuple[object, ...]
    rest: object | None


def product(evaluation: Evaluator, node: ast.BinOp | ast.UnaryOp, position: Position) -> object:
    """The value of a binary operation or a negation, with its brackets guarding its factors."""
    parts = _factors(evaluation, node, position)
    if not parts.brackets:
        return parts.rest
    guard: object = parts.brackets[0]
    for bracket in parts.brackets[1:]:
        guard = binary(evaluation, ast.Mult, guard, bracket, node)
    return guard if parts.rest is None else binary(evaluation, ast.Mult, guard, parts.rest, node)


def _factors(evaluation: Evaluator, node: ast.expr, position: Position) -> _Product:
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            one, other = _factors(evaluation, left, position), _factors(evaluation, right, position)
            brackets = (*one.brackets, *other.brackets)
            if one.rest is None or other.rest is None:
                return _Product(brackets, other.rest if one.rest is None else one.rest)
            return _Product(brackets, binary(evaluation, ast.Mult, one.rest, other.rest, node))
        case ast.BinOp(op=kind, left=left, right=right):
            first, second = evaluation.evaluate(left, position), evaluation.evaluate(right, position)
            return _factor(binary(evaluation, type(kind), first, second, node))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _factors(evaluation, operand, position)
            if inner.brackets and inner.rest is None:
                # A negated truth value is an integer.
                minus_one = Value(constant(-1, "int64", evaluation.span(node)), None, "int64")
                return _Product(inner.brackets, minus_one)
            return _Product(inner.brackets, negated(evaluation, inner.rest, node))
        case _:
            return _factor(evaluation.evaluate(node, position))


def _factor(given: object) -> _Product:
    # A Python bool is an int to Python, and a bracket only if a product with something symbolic comes of it.
    if isinstance(given, bool) or (isinstance(given, Value) and given.logical == "bool"):
        return _Product((given,), None)
    return _Product((), given)
