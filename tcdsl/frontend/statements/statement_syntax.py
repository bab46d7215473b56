"""The spellings of a tensor statement, read into one form.

::

    T[i] += v, i < m        T[i] = v        assign(T[i], "=:+", v, unique=True)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tcdsl.errors import Diagnostic, DslSyntaxError, TcdslError
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.statements.accesses import axis_nodes
from tcdsl.ir.accumulators import ACCUMULATORS

__all__ = ["AUGMENTED", "StatementForm", "assign_operator", "read_form"]

AUGMENTED: Mapping[type[ast.operator], str] = MappingProxyType(
    {
        ast.Add: "add",
        ast.Sub: "subtract",
        ast.Mult: "multiply",
        ast.Div: "divide",
        ast.Pow: "power",
        ast.RShift: "max",
        ast.LShift: "min",
        ast.BitOr: "or",
        ast.BitAnd: "and",
    }
)
_LITERALS: Mapping[str, str] = MappingProxyType({row.literal: row.name for row in ACCUMULATORS.values()})
_OPTIONS = ("unique", "oob")
_TABLE = "=, +=, -=, *=, /=, **=, >>= (max), <<= (min), |= (or), &= (and)"


@dataclass(frozen=True, slots=True)
class StatementForm:
    """A tensor statement as written.

    ``plain`` says that it is an ``=``, whose value may be a reduction call (the reset form); ``reset`` that
    ``assign`` asks for a new start. ``options`` are the keywords of ``assign``.
    """

    name: str
    target: ast.expr
    indices: tuple[ast.expr, ...]
    accumulate: str
    plain: bool
    reset: bool
    value: ast.expr
    conditions: tuple[ast.expr, ...]
    options: Mapping[str, ast.expr] = field(default_factory=dict)


def read_form(node: ast.stmt, environment: FunctionScope) -> StatementForm:
    """The form of an assignment, an augmented one or a call of ``assign``. `DslSyntaxError` for anything else."""
    match node:
        case ast.Assign(targets=[target], value=value):
            return _form(target, "assign", True, False, value, (), {}, environment)
        case ast.AugAssign(target=target, op=kind, value=value):
            accumulate = AUGMENTED.get(type(kind))
            if accumulate is None:
                raise _fault(node, "no accumulator has this operator", f"write one of {_TABLE}", environment)
            return _form(target, accumulate, False, False, value, (), {}, environment)
        case ast.Expr(value=ast.Call() as call):
            return _assign_call(call, environment)
    raise _fault(
        node, "not a tensor statement", "write `T[i] = ...`, `T[i] += ...` or `assign(T[i], ...)`", environment
    )


def _fault(node: ast.AST, fact: str, hint: str, environment: FunctionScope) -> TcdslError:
    return Diagnostic(DslSyntaxError, fact, environment.span(node), hint=hint).error()


def _assign_call(call: ast.Call, environment: FunctionScope) -> StatementForm:
    target, accumulate, reset = assign_operator(call, environment)
    _, _, value, *conditions = call.args
    options = {keyword.arg or "**": keyword.value for keyword in call.keywords}
    for name, given in options.items():
        if name not in _OPTIONS:
            raise _fault(
                given, f"`assign` has no option `{name}`", f"its options are {', '.join(_OPTIONS)}", environment
            )
    return _form(target, accumulate, accumulate == "assign", reset, value, tuple(conditions), options, environment)


def assign_operator(call: ast.Call, environment: FunctionScope) -> tuple[ast.expr, str, bool]:
    """The target, the accumulator and whether all cells start anew, of ``assign(T[i], "=:+", v)``."""
    if len(call.args) < 3 or any(isinstance(argument, ast.Starred) for argument in call.args):
        raise _fault(
            call, "`assign` takes a target, an operator and a value", 'write `assign(T[i], "=:+", v)`', environment
        )
    target, operator = call.args[:2]
    text = operator.value if isinstance(operator, ast.Constant) else None
    literals = ", ".join(f'"=:{row.literal}"' for row in ACCUMULATORS.values())
    if not isinstance(text, str) or not text.startswith("="):
        raise _fault(operator, "not an operator of `assign`", f"write one of {literals}", environment)
    reset = text.startswith("=:")
    literal = text[2:] if reset else text[1:]
    if literal not in _LITERALS or (not literal and not reset):
        raise _fault(operator, f"`{text}` is no operator of `assign`", f"write one of {literals}", environment)
    accumulate = _LITERALS[literal]
    # `=:` alone stores, and cells that are not written keep their value.
    return target, accumulate, reset and accumulate != "assign"


def _form(
    target: ast.expr,
    accumulate: str,
    plain: bool,
    reset: bool,
    value: ast.expr,
    conditions: tuple[ast.expr, ...],
    options: Mapping[str, ast.expr],
    environment: FunctionScope,
) -> StatementForm:
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        raise _fault(
            target, "the target of a tensor statement is a name with an index list", "write `T[i]`", environment
        )
    indices = tuple(axis_nodes(target.slice))
    for index in indices:
        if isinstance(index, ast.Constant) and isinstance(index.value, str):
            raise _fault(index, "a string among indices", 'a logic stands alone, as in `T["ij;jk=>ik"]`', environment)
    if isinstance(value, ast.Tuple):
        if not value.elts:
            raise _fault(value, "a statement without a value", "write a number, a cell or an expression", environment)
        conditions = (*value.elts[1:], *conditions)
        value = value.elts[0]
    return StatementForm(target.value.id, target, indices, accumulate, plain, reset, value, conditions, options)
