"""From a value's syntax tree to typed scalars: one `Evaluation` per tensor statement.

`Evaluation.evaluate` gives a Python object for every node: a `Value` for what differs from point to point, and
whatever Python gives for the rest (configuration, modules, functions, whole tensors), so that conditions on
configuration are decided while staging. Reductions come out open: which index variables each one binds is decided
when the whole statement is known (`tcdsl.frontend.statements.reduction_scopes`).

A fault is recorded and evaluation goes on with `FAULTY`, so that one statement reports all of its faults together.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.names import array_calls
from tcdsl.frontend.names.absent_attributes import instead_of_attribute
from tcdsl.frontend.names.language_functions import undefined_name_hint
from tcdsl.frontend.names.name_resolution import (
    GlobalNumber,
    IndexName,
    Position,
    index_meaning,
    value_meaning,
)
from tcdsl.frontend.points.point_scalars import PointValue, as_points, point_of, points_in
from tcdsl.frontend.staging.declarations import DeclaredTarget, OfARound
from tcdsl.frontend.staging.declared_parameters import current_parameters
from tcdsl.frontend.staging.faults import FAULTY, Faulty
from tcdsl.frontend.staging.target_states import UNBOUND
from tcdsl.frontend.statements import accesses, statement_operators
from tcdsl.frontend.statements.accesses import filled_read
from tcdsl.frontend.statements.evaluator import Evaluator
from tcdsl.frontend.statements.point_functions import at_points, text_of_operation
from tcdsl.frontend.statements.reductions import reduction
from tcdsl.frontend.surroundings.named_values import users_function
from tcdsl.frontend.symbols.point_calls import AtEachPoint, PointCall
from tcdsl.frontend.symbols.pointwise_functions import pointwise_function
from tcdsl.frontend.symbols.recognition import BOUNDARIES, REDUCTIONS, names_axes, of_one_cell, recognize
from tcdsl.frontend.symbols.scalar_primitives import call_function
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.expressions import IndexValue

__all__ = ["Evaluation"]


class Evaluation(Evaluator):
    """Evaluates the expressions of one statement, each kind of node in its own way."""

    def given(self, node: ast.expr, position: Position) -> object:
        """What ``node`` is, with run-time numbers as they are."""
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name):
                return self.unwrapped(self._name(name, node, position))
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return accesses.subscript(self, node, position)
            case ast.BinOp():
                return statement_operators.arithmetic(self, node, position)
            case ast.UnaryOp():
                return statement_operators.unary(self, node, position)
            case ast.BoolOp():
                return statement_operators.logical(self, node, position)
            case ast.Compare():
                return statement_operators.compare(self, node, position)
            case ast.IfExp():
                return statement_operators.conditional(self, node, position)
            case ast.Call():
                return self.unwrapped(call(self, node, position))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                found = [self.evaluate(element, position) for element in elements]
                return tuple(found) if isinstance(node, ast.Tuple) else found
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                return self.fault(
                    DslSyntaxError,
                    "a generator that no reduction takes",
                    node,
                    "write `sum(... for ...)`, or max, min, prod, mean, any, all, argmax, argmin",
                )
            case ast.Slice() | ast.Starred():
                return self.fault(
                    DslSyntaxError,
                    "a slice in a tensor statement",
                    node,
                    "write an index variable and a condition on it",
                )
        what = type(node).__name__
        return self.fault(DslSyntaxError, f"Python's {what} has no meaning in a tensor statement", node)

    def _name(self, name: str, node: ast.Name, position: Position) -> object:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        if position is Position.VALUE:
            if name in self.variables and point_of(self.environment.own(name)) is None:
                return Value(IndexValue(name, self.span(node)), "int", "int64")
            if name == self.unwritten:
                meaning: object = self.environment.own(name)
            else:
                meaning = value_meaning(name, self.environment)
        else:
            meaning = index_meaning(name, self.environment)
        if isinstance(meaning, IndexName):
            return Value(IndexValue(name, self.span(node)), "int", "int64")
        if isinstance(meaning, GlobalNumber) or meaning is UNBOUND:
            return self._without_value(name, node, meaning, position)
        return meaning

    def _without_value(self, name: str, node: ast.Name, meaning: object, position: Position) -> object:
        if name in self.undefined:
            return FAULTY
        states = self.environment.session.context.states
        if states is not None and self.environment.is_unwritten(name):
            return states.read(name)
        parameters = current_parameters()
        if parameters is not None and (declared := parameters.find(name)) is not None:
            return declared
        held = self.environment.holds(name)
        if isinstance(held, DeclaredTarget):
            session = self.environment.session
            session.loops.left_as_declared(held, session.python_loops())
        self.undefined.add(name)
        if isinstance(meaning, GlobalNumber):
            return self.fault(
                DslSyntaxError,
                f"`{name}` is a number of the module, which an index does not see",
                node,
                f"pass it as a parameter (`*, {name}`), or bind it in the function: `{name} = ...`",
            )
        if name == self.unwritten:
            return self.fault(
                DslSyntaxError,
                f"`{name}` is read by the statement that creates it",
                node,
                f"write its first cells in a statement of their own and the others in a loop, "
                f"or pass an outer `{name}` as a parameter",
            )
        if isinstance(held, OfARound):
            self.faults.extend(
                held.fault(self.environment.span(node), letter=position is not Position.VALUE).diagnostics
            )
            return FAULTY
        if self.environment.is_unwritten(name):
            return self.fault(
                DslSyntaxError,
                f"`{name}` is read before anything is written to it",
                node,
                f"a name that the function writes is its own: write it first, or make `{name}` a parameter",
            )
        if self.environment.has_text(name):
            fact = f'`{name}` is read with an index before the place where "{name}" is declared'
            return self.fault(DslSyntaxError, fact, node, f'declare it before, with its axes: `{name} = "{name}"[n]`')
        return self.fault(DslSyntaxError, f"`{name}` is not defined", node, undefined_name_hint(name))

    def _attribute(self, node: ast.Attribute) -> object:
        base = self.evaluate(node.value)
        if isinstance(base, Faulty):
            return FAULTY
        if isinstance(base, Value):
            fact = f"a scalar at a point has no attribute `{node.attr}`"
            return self.fault(DslSyntaxError, fact, node, instead_of_attribute("an array", node.attr))
        try:
            return getattr(base, node.attr)
        except AttributeError as error:
            return self.fault(DslSyntaxError, str(error), node)
        except TcdslError as error:
            self.faults.extend(error.diagnostics)
            return FAULTY


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
    if function is len and not keywords and not any(isinstance(each, Value) for each in positional):
        # A size, where Python's `len` would ask for an integer.
        return evaluation.native(lambda: array_calls.call_function(len, positional, {}), node)
    if name is None:
        return _users(evaluation, function, positional, keywords, node)
    if keywords:
        return evaluation.fault(DslSyntaxError, f"`{name}` takes no keyword arguments in a tensor statement", node)
    if not any(map(evaluation.is_symbolic, positional)):
        return _plain(evaluation, name, function, positional, node)
    whole = statement_operators.whole_arrays(evaluation, positional, node)
    if callable(function) and whole is not None:
        return evaluation.native(lambda: function(*whole), node)
    if name in REDUCTIONS and names_axes(function, positional):
        fact, hint = of_one_cell(name)
        return evaluation.fault(DslSyntaxError, fact, node, hint)
    nodes = node.args if len(node.args) == len(positional) else [node] * len(positional)
    values = [evaluation.scalar(given, part) for given, part in zip(positional, nodes, strict=True)]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return FAULTY
    return evaluation.attempt(lambda: _applied(name, known, evaluation, node), node)


def _applied(name: str, values: Sequence[Value], evaluation: Evaluator, node: ast.Call) -> Value:
    span = evaluation.span(node)
    if name in ("argmax", "argmin", "mean", "sum", "prod", "any", "all"):
        raise DslSyntaxError.at(
            f"`{name}` takes one argument in a tensor statement, not {len(values)}",
            span,
            f"write `{name}(x[i, k])`, or `{name}(... for k in range(n))`",
        )
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

    called, session = at_points(function, evaluation), evaluation.environment.session
    given, named = [wrapped(each) for each in positional], {key: wrapped(each) for key, each in keywords.items()}
    calls = session.context.point_calls
    place = None if calls is None else calls.meet()
    if calls is not None and place in calls.results:
        return calls.results[place]
    points = points_in((given, named))
    called = (pointwise_function(function) if points else None) or called
    for each in points:
        evaluation.meet(each)
    here = place is not None and bool(points)
    letters = session.context.letters.union(*(each.variables() for each in points if here))

    plain, _ = users_function(function)
    waits = nullcontext() if plain is None else session.waiting_for(plain.__code__)

    def run() -> object:
        array_calls.refuse_compiled(function, (*given, *named.values()))
        with session.within(at_points=here, letters=letters), waits:
            return array_calls.as_python_does(called, *given, **named)

    try:
        # What a user's function raises of itself goes to the user as it is.
        return evaluation.attempt(run, node)
    except AtEachPoint as found:
        if found.call is None and place is not None:
            made = _of_text(evaluation, function, given, named, node)
            if not isinstance(made, Faulty):
                return made
            if evaluation.depth or evaluation.guarded:
                return _refused(evaluation, node, points)
            found.call = PointCall(place, function, given, named, span)
            if calls is not None and calls.stand_in is not None:
                return calls.stand_in(found.call)
        raise
    except Exception:
        # What stands in for a result may not be what the function makes use of.
        if calls is None or calls.stand_in is None:
            raise
        return FAULTY


def _of_text(
    evaluation: Evaluator, function: Any, given: Sequence[object], named: Mapping[str, object], node: ast.Call
) -> object:
    # What an operation of values alone means at a point as text, if it means anything there.
    text = text_of_operation(function)
    if text is None:
        return FAULTY
    known, undefined = len(evaluation.faults), set(evaluation.undefined)
    called, session = at_points(text, evaluation), evaluation.environment.session
    try:
        with session.within(oob=function.oob):
            return evaluation.attempt(lambda: called(*given, **named), node)
    except AtEachPoint:
        return FAULTY
    finally:
        del evaluation.faults[known:]
        evaluation.undefined = undefined


def _refused(evaluation: Evaluator, node: ast.Call, points: Sequence[PointValue]) -> object:
    # What is not evaluated at all points has no loop over them.
    letters = evaluation.index_variables.union(*(each.variables() for each in points))
    parts = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in letters]
    text, names = ast.unparse(node), ", ".join(dict.fromkeys(parts)) or "()"
    fact = (
        f"`{text}` has loops, branches, statements or whole arrays, and is called where a condition or a generator "
        "says so"
    )
    hint = f"call it in a statement of its own: `found[{names}] = {text}, condition`, and then read `found[{names}]`"
    return evaluation.fault(DslSyntaxError, fact, node, hint)
