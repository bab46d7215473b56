"""The spellings of a tensor statement, read into one form.

::

    T[i] += v, i < m        T[i] = v        assign(T[i], "=:+", v, unique=True)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import index_names
from tcdsl.frontend.statements.accesses import axis_nodes
from tcdsl.ir.accumulators import ACCUMULATORS

__all__ = ["AUGMENTED", "Assignment", "read_assignment", "read_statement", "require_accumulator"]

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
class Assignment:
    """An assignment, an augmented one or a call of ``assign``, as written.

    ``accumulate`` is empty for an operator of Python's that is no accumulator. ``plain`` says that it is an ``=``,
    whose value may be a reduction call (the reset form); ``reset`` that ``assign`` asks for a new start.
    ``conditions`` and ``options`` are what follows the value of ``assign``.
    """

    node: ast.stmt
    target: ast.expr
    accumulate: str
    plain: bool
    reset: bool
    value: ast.expr
    conditions: tuple[ast.expr, ...] = ()
    options: Mapping[str, ast.expr] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name that it writes to."""
        base = self.target.value if isinstance(self.target, ast.Subscript) else self.target
        assert isinstance(base, ast.Name)
        return base.id

    @property
    def indices(self) -> list[ast.expr]:
        """The index list of the target, if it has one."""
        return axis_nodes(self.target.slice) if isinstance(self.target, ast.Subscript) else []


def read_assignment(node: ast.stmt, environment: FunctionScope) -> Assignment:
    """The parts of a statement that writes to what one name holds. `DslSyntaxError` for a malformed ``assign``."""
    match node:
        case ast.Expr(value=ast.Call() as call):
            return _assign_call(node, call, environment)
        case ast.AugAssign(target=target, op=kind, value=value):
            return Assignment(node, target, AUGMENTED.get(type(kind), ""), False, False, value)
        case ast.Assign(targets=[target], value=value):
            return Assignment(node, target, "assign", True, False, value)
    raise TypeError(f"a {type(node).__name__} writes to no name")


def require_accumulator(given: Assignment, environment: FunctionScope) -> None:
    """`DslSyntaxError` for an augmented assignment by which nothing accumulates."""
    if not given.accumulate:
        raise _fault(given.node, "no accumulator has this operator", f"write one of {_TABLE}", environment)


def _of_a_cell(given: Assignment, environment: FunctionScope) -> Assignment:
    # `bits[t] ^= b` of one cell is an assignment: only of cells that index variables name do several values meet.
    match given.node:
        case ast.AugAssign(target=ast.Subscript(value=ast.Name()) as target, op=kind, value=value) if not (
            given.accumulate or isinstance(kind, ast.MatMult) or index_names(given.indices, value, (), environment)
        ):
            held = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
            changed = ast.copy_location(ast.BinOp(held, kind, value), given.node)
            return replace(given, accumulate="assign", plain=True, value=changed)
    return given


def read_statement(node: ast.stmt, environment: FunctionScope) -> Assignment:
    """The parts of a statement with an index list: conditions may follow its value. `DslSyntaxError` for others."""
    given = _of_a_cell(read_assignment(node, environment), environment)
    require_accumulator(given, environment)
    for name, option in given.options.items():
        if name not in _OPTIONS:
            hint = f"its options are {', '.join(_OPTIONS)}"
            raise _fault(option, f"`assign` has no option `{name}`", hint, environment)
    target, value = given.target, given.value
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        fact = "the target of a tensor statement is a name with an index list"
        raise _fault(target, fact, "write `T[i]`", environment)
    for index in given.indices:
        if isinstance(index, ast.Constant) and isinstance(index.value, str):
            raise _fault(index, "a string among indices", 'a logic stands alone, as in `T["ij;jk=>ik"]`', environment)
    if not isinstance(value, ast.Tuple):
        return given
    if not value.elts:
        raise _fault(value, "a statement without a value", "write a number, a cell or an expression", environment)
    return replace(given, value=value.elts[0], conditions=(*value.elts[1:], *given.conditions))


def _fault(node: ast.AST, fact: str, hint: str, environment: FunctionScope) -> TcdslError:
    return DslSyntaxError.at(fact, environment.span(node), hint)


def _assign_call(node: ast.stmt, call: ast.Call, environment: FunctionScope) -> Assignment:
    # `assign(T[i], "=:+", v, i < m, unique=True)`
    if len(call.args) < 3 or any(isinstance(argument, ast.Starred) for argument in call.args):
        fact = "`assign` takes a target, an operator and a value"
        raise _fault(call, fact, 'write `assign(T[i], "=:+", v)`', environment)
    target, operator, value, *conditions = call.args
    text = operator.value if isinstance(operator, ast.Constant) else None
    hint = "write one of " + ", ".join(f'"=:{row.literal}"' for row in ACCUMULATORS.values())
    if not isinstance(text, str) or not text.startswith("="):
        raise _fault(operator, "not an operator of `assign`", hint, environment)
    reset = text.startswith("=:")
    literal = text[2:] if reset else text[1:]
    if literal not in _LITERALS or (not literal and not reset):
        raise _fault(operator, f"`{text}` is no operator of `assign`", hint, environment)
    accumulate = _LITERALS[literal]
    plain = accumulate == "assign"
    options = {keyword.arg or "**": keyword.value for keyword in call.keywords}
    # `=:` alone stores, and cells that are not written keep their value.
    return Assignment(node, target, accumulate, plain, reset and not plain, value, tuple(conditions), options)
