"""Calls in tensor statements: primitives, casts, reductions, and the user's own functions on scalars at a point."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.names.name_resolution import Position
from tcdsl.frontend.points.point_scalars import as_points
from tcdsl.frontend.staging.faults import FAULTY, Faulty
from tcdsl.frontend.statements.accesses import filled_read
from tcdsl.frontend.statements.evaluator import Evaluator
from tcdsl.frontend.statements.point_functions import at_points
from tcdsl.frontend.statements.reductions import reduction
from tcdsl.frontend.symbols.recognition import BOUNDARIES, REDUCTIONS, recognize
from tcdsl.frontend.symbols.scalar_primitives import call_function
from tcdsl.frontend.symbols.values import Value

__all__ = ["call"]


def call(evaluation: Evaluator, node: ast.Call, position: Position) -> object:
    """``function(...)``: what it gives at a point."""
    function = evaluation.evaluate(node.func)
    if isinstance(function, Faulty):
        _evaluate_arguments(evaluation, node, position)
        return FAULTY
    name = recognize(function)
    if name == "get":
        return filled_read(evaluation, node)
    if name is not None and name in REDUCTIONS and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
        return reduction(evaluation, name, node, function, position)
    if name in BOUNDARIES:
        return evaluation.fault(
            DslSyntaxError, f"`{name}` stands around an index", node, f"write it in a subscript: `x[{name}(i - 1)]`"
        )
    arguments = _evaluate_arguments(evaluation, node, position)
    if arguments is None:
        return FAULTY
    positional, keywords = arguments
    if name is None:
        return _users(evaluation, function, positional, keywords, node)
    if keywords:
        return evaluation.fault(DslSyntaxError, f"`{name}` takes no keyword arguments in a tensor statement", node)
    if not any(map(evaluation.is_symbolic, positional)):
        return _plain(evaluation, name, function, positional, node)
    if callable(function) and _is_whole(evaluation, positional):
        return evaluation.native(lambda: function(*positional), node)
    nodes = node.args if len(node.args) == len(positional) else [node] * len(positional)
    values = [evaluation.scalar(given, part) for given, part in zip(positional, nodes, strict=True)]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return FAULTY
    return evaluation.attempt(lambda: _applied(name, known, evaluation, node), node)


def _is_whole(evaluation: Evaluator, arguments: Sequence[object]) -> bool:
    # np.exp(A) of a whole tensor: ordinary arithmetic on arrays.
    whole = any(evaluation.is_array(given) and getattr(given, "shape", ()) for given in arguments)
    return whole and not any(isinstance(given, Value) for given in arguments)


def _applied(name: str, values: Sequence[Value], evaluation: Evaluator, node: ast.Call) -> Value:
    span = evaluation.span(node)
    if name in ("argmax", "argmin", "mean", "sum", "prod", "any", "all"):
        raise Diagnostic(
            DslSyntaxError,
            f"`{name}` takes one argument in a tensor statement, not {len(values)}",
            span,
            hint=f"write `{name}(x[i, k])`, or `{name}(... for k in range(n))`",
        ).error()
    return call_function(name, values, span)


def _evaluate_arguments(
    evaluation: Evaluator, node: ast.Call, position: Position
) -> tuple[list[object], dict[str, object]] | None:
    positional: list[object] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            many = evaluation.evaluate(argument.value, position)
            if isinstance(many, Faulty):
                return None
            unpacked = evaluation.native(functools.partial(list, many), argument)
            positional.extend(unpacked if isinstance(unpacked, list) else [unpacked])
        else:
            positional.append(evaluation.evaluate(argument, position))
    keywords: dict[str, object] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            evaluation.fault(
                DslSyntaxError, "`**` in a call in a tensor statement", keyword.value, "name the arguments"
            )
            return None
        keywords[keyword.arg] = evaluation.evaluate(keyword.value, position)
    faulty = any(isinstance(given, Faulty) for given in (*positional, *keywords.values()))
    return None if faulty else (positional, keywords)


def _plain(evaluation: Evaluator, name: str, function: object, arguments: list[object], node: ast.Call) -> object:
    # Configuration only. A number goes through the primitive, so that np.sqrt(2) stays a weak number like 2.
    values = [evaluation.scalar(a, node) for a in arguments if isinstance(a, bool | int | float)]
    known = [value for value in values if value is not None]
    if len(known) < len(arguments) or getattr(function, "__module__", None) in ("builtins", "math"):
        if hasattr(function, "__tcdsl_name__"):
            return evaluation.fault(DslSyntaxError, f"`{name}` takes numbers", node)
        return evaluation.native(lambda: function(*arguments), node)  # type: ignore[operator]
    result = evaluation.attempt(lambda: _applied(name, known, evaluation, node), node)
    if isinstance(result, Value) and result.number is not None:
        return result.number
    return result


def _users(
    evaluation: Evaluator, function: object, positional: list[object], keywords: dict[str, object], node: ast.Call
) -> object:
    if not callable(function):
        return evaluation.fault(DslSyntaxError, f"a {type(function).__name__} cannot be called", node)
    span = evaluation.span(node)

    def wrapped(given: object) -> object:
        return as_points(given, evaluation.definitions, span)

    called = at_points(function, evaluation)
    # What a user's function raises of itself goes to the user as it is.
    return evaluation.attempt(
        lambda: called(*map(wrapped, positional), **{key: wrapped(given) for key, given in keywords.items()}), node
    )
