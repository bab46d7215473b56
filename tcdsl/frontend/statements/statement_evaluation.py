"""From a value's syntax tree to typed scalars: one `Evaluation` per tensor statement.

`Evaluation.evaluate` gives a Python object for every node: a `Value` for what differs from point to point, and
whatever Python gives for the rest (configuration, modules, functions, whole tensors), so that conditions on
configuration are decided while staging. Reductions come out open: which index variables each one binds is decided
when the whole statement is known (`tcdsl.frontend.statements.reduction_scopes`).

A fault is recorded and evaluation goes on with `FAULTY`, so that one statement reports all of its faults together.
"""

from __future__ import annotations

import ast

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.names.functions import undefined_name_hint
from tcdsl.frontend.names.name_resolution import (
    GlobalNumber,
    IndexName,
    Position,
    index_meaning,
    value_meaning,
)
from tcdsl.frontend.staging.faults import FAULTY, Faulty
from tcdsl.frontend.staging.target_states import UNBOUND
from tcdsl.frontend.statements import accesses, applications, statement_operators
from tcdsl.frontend.statements.evaluator import Evaluator
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
                return self.unwrapped(applications.call(self, node, position))
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
            if name in self.variables:
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
            return self._without_value(name, node, meaning)
        return meaning

    def _without_value(self, name: str, node: ast.Name, meaning: object) -> object:
        if name in self.undefined:
            return FAULTY
        states = self.environment.session.context.states
        if states is not None and self.environment.is_unwritten(name):
            return states.read(name)
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
        if self.environment.is_unwritten(name):
            return self.fault(
                DslSyntaxError,
                f"`{name}` is read before anything is written to it",
                node,
                f"a name that the function writes is its own: write it first, or make `{name}` a parameter",
            )
        return self.fault(DslSyntaxError, f"`{name}` is not defined", node, undefined_name_hint(name))

    def _attribute(self, node: ast.Attribute) -> object:
        base = self.evaluate(node.value)
        if isinstance(base, Faulty):
            return FAULTY
        if isinstance(base, Value):
            return self.fault(DslSyntaxError, f"a scalar at a point has no attribute `{node.attr}`", node)
        try:
            return getattr(base, node.attr)
        except AttributeError as error:
            return self.fault(DslSyntaxError, str(error), node)
        except TcdslError as error:
            self.faults.extend(error.diagnostics)
            return FAULTY
