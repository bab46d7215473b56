"""Scalar expressions of the intermediate representation as Python syntax trees of generated code.

Whatever has a name in a nest gets an identifier, valid, readable and its own.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from tcdsl.ir.dtypes import WIDE_INTEGERS, compute_dtype, is_floating
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Local,
    Read,
    SizeValue,
    height,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.primitives import LAZY, PRIMITIVES

__all__ = ["ExpressionWriter", "Identifiers", "assignment", "call", "function_definition", "name"]

# LLVM cuts names of more than 1,024 characters off, and then they are no longer different.
_LONGEST = 200


class Identifiers:
    """``Identifiers(reserved)("buffer", "A.grad")`` is ``"A_grad"``, the same at every call with the same arguments.

    Another thing of the same spelling gets ``A_grad_2``, and nothing gets a reserved name or a keyword.
    """

    def __init__(self, reserved: Iterable[str]) -> None:
        self._names = FreshNames((*reserved, *keyword.kwlist))
        self._given: dict[tuple[str, str], str] = {}

    def __call__(self, kind: str, name: str) -> str:
        """The identifier of the ``kind`` of thing called ``name``."""
        key = (kind, name)
        if key not in self._given:
            self._given[key] = self.fresh(name)
        return self._given[key]

    def fresh(self, name: str) -> str:
        """An identifier like ``name`` that nothing else has."""
        base = re.sub(r"\W", "_", name, flags=re.ASCII)[:_LONGEST] or "x"
        return self._names.fresh("_" + base if base[0].isdigit() else base)


_NARROW = frozenset(("int8", "int16", "int32", "uint8", "uint16", "uint32"))
_REPEATED = 32  # The largest constant exponent that is multiplied out: beyond it rounding adds up.


def name(identifier: str) -> ast.Name:
    """A use of ``identifier``."""
    return ast.Name(identifier, ast.Load())


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """``function(*arguments)``."""
    return ast.Call(name(function), list(arguments), [])


def assignment(identifier: str, value: ast.expr) -> ast.Assign:
    """``identifier = value``."""
    return ast.Assign([ast.Name(identifier, ast.Store())], value, lineno=0)


def function_definition(
    identifier: str, parameters: Sequence[str], body: Sequence[ast.stmt], decorator: ast.expr
) -> ast.FunctionDef:
    """``@decorator`` above ``def identifier(parameters): body``."""
    arguments = ast.arguments([], [ast.arg(each) for each in parameters], None, [], [], None, [])
    function = ast.FunctionDef(identifier, arguments, list(body), [decorator], lineno=0)
    if hasattr(function, "type_params"):
        function.type_params = []
    return function


@cache
def _template(code: str) -> tuple[ast.expr, frozenset[str]]:
    # The code of a primitive with argument names that cannot occur otherwise, and the functions that it calls.
    text = code.format("_0", "_1", "_2")
    tree = ast.parse(text, mode="eval").body
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return tree, frozenset(names - {"_0", "_1", "_2"})


def _filled(template: Any, arguments: Mapping[str, ast.expr]) -> Any:
    # A primitive's template, with the arguments put into a copy of it.
    if isinstance(template, ast.Name):
        return arguments.get(template.id) or name(template.id)
    if isinstance(template, list):
        return [_filled(each, arguments) for each in template]
    if isinstance(template, ast.AST):
        return type(template)(*[_filled(getattr(template, field), arguments) for field in template._fields])
    return template


# So deeply expressions are nested in the generated code.
_DEEPEST = 60


def _nesting(written: ast.expr) -> int:
    return getattr(written, "nesting", 0)


def _nest(written: ast.expr, parts: Sequence[ast.expr]) -> ast.expr:
    written.nesting = 1 + max(map(_nesting, parts), default=0)  # type: ignore[attr-defined]
    return written


class ExpressionWriter:
    """``writer.expression(e)`` is the Python expression for ``e``; what must be computed first goes to
    ``writer.block``.

    ``functions`` collects the names that the module has to import.
    """

    def __init__(self, names: Identifiers) -> None:
        self.names = names
        self.block: list[ast.stmt] = []
        self.functions: set[str] = set()
        #: The expression that a block is for, and what it is to be called.
        self._wanted: tuple[Expr, str] | None = None

    def function(self, function: str) -> str:
        """``function``, noted as used."""
        self.functions.add(function)
        return function

    def convert(self, value: ast.expr, dtype: str) -> ast.expr:
        """``dtype(value)``."""
        return call(self.function("bool_" if dtype == "bool" else dtype), value)

    def expression(self, expr: Expr) -> ast.expr:
        """The Python expression that computes ``expr``."""
        match expr:
            case Constant(value=value, dtype=dtype):
                return self.constant(value, dtype)
            case SizeValue(name=size):
                return name(self.names("size", size))
            case IndexValue(name=variable):
                return name(self.names("variable", variable))
            case Local(name=local, dtype=dtype):
                return name(self.local(local, dtype))
            case Read(tensor=buffer, indices=indices):
                return self.cell(buffer, indices)
            case Cast(operand=operand, dtype=dtype):
                written = self._shallow(self.expression(operand))
                return _nest(self.convert(written, dtype), [written])
            case Apply():
                return self._apply(expr)
        raise TypeError(f"not an expression: {expr!r}")

    def constant(self, value: bool | int | float, dtype: str) -> ast.expr:
        """A literal of exactly the type ``dtype``: Python's own for bool, int64 and float64, else converted."""
        dtype = compute_dtype(dtype)
        number: ast.expr
        if is_floating(dtype) and not math.isfinite(value):
            number = name(self.function("nan" if math.isnan(value) else "inf"))
            if value < 0:
                number = ast.UnaryOp(ast.USub(), number)
        else:
            plain = float(value) if is_floating(dtype) else value
            negative = not isinstance(plain, bool) and (plain < 0 or (plain == 0 and math.copysign(1, plain) < 0))
            number = ast.UnaryOp(ast.USub(), ast.Constant(-plain)) if negative else ast.Constant(plain)
        if dtype in WIDE_INTEGERS and not -(2**63) <= value < 2**63:
            number = ast.Constant(str(value))
        return number if dtype in ("bool", "int64", "float64") else self.convert(number, dtype)

    def local(self, local: str, dtype: str) -> str:
        """The identifier of a scalar local. Locals of one name and several types are several variables."""
        return self.names(f"local {compute_dtype(dtype)}", local)

    def memory(self, buffer: str) -> ast.Name:
        """``buffer``."""
        return name(self.names("buffer", buffer))

    def cell(self, buffer: str, indices: tuple[Expr, ...], context: ast.expr_context | None = None) -> ast.Subscript:
        """``buffer[indices]``."""
        memory = self.memory(buffer)
        parts = [self.expression(index) for index in indices]
        index = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
        return ast.Subscript(memory, index, context or ast.Load())

    def _apply(self, expr: Apply) -> ast.expr:
        arguments = expr.arguments
        written_first: list[ast.expr] = []
        if expr.primitive in LAZY:
            first = self.expression(arguments[0])
            written_first = [first]
            if any(height(argument, _DEEPEST) >= _DEEPEST for argument in arguments[1:]):
                return self._lazy(expr, first)
        special = self._special(expr)
        if special is not None:
            return special
        row = PRIMITIVES[expr.primitive]
        template, functions = _template(row.code)
        self.functions |= functions
        others = [self.expression(argument) for argument in arguments[len(written_first) :]]
        values = [self._shallow(value) for value in (*written_first, *others)]
        if row.kind == "compare" and arguments[0].dtype == "bool":
            values = [self.convert(value, "uint8") for value in values]
        written: ast.expr = _filled(template, {f"_{k}": value for k, value in enumerate(values)})
        # Python computes with constants in any number of bits: go back to the type, so that overflow wraps as in NumPy.
        _nest(written, values)
        widened = isinstance(written, ast.BinOp | ast.UnaryOp) and expr.dtype in _NARROW
        if widened or (expr.primitive == "neg" and expr.dtype == "uint64"):
            return _nest(self.convert(written, expr.dtype), [written])
        return written

    def _shallow(self, written: ast.expr) -> ast.expr:
        # Python reads a limited number of parentheses within each other: what would pass it is computed before.
        if _nesting(written) < _DEEPEST:
            return written
        identifier = self.names.fresh("part")
        self.block.append(assignment(identifier, written))
        return name(identifier)

    def _special(self, expr: Apply) -> ast.expr | None:
        # Constant divisors and exponents.
        if len(expr.arguments) != 2 or not isinstance(expr.arguments[1], Constant):
            return None
        constant = expr.arguments[1].value
        if expr.primitive in ("floor_div", "mod") and expr.dtype == "int64" and constant > 0:
            operator = ast.FloorDiv() if expr.primitive == "floor_div" else ast.Mod()
            return ast.BinOp(self.expression(expr.arguments[0]), operator, ast.Constant(constant))
        small = abs(constant) <= _REPEATED and constant == int(constant)
        if expr.primitive == "pow" and small and (constant >= 0 or is_floating(expr.dtype)):
            exponent = self.constant(int(constant), "int64")
            return call(self.function("power"), self.expression(expr.arguments[0]), exponent)
        return None

    def _lazy(self, expr: Apply, test: ast.expr) -> ast.expr:
        # A choice whose branches are nested too deeply: an if statement that assigns a temporary.
        branches = list(expr.arguments[1:])
        if self._wanted is not None and self._wanted[0] is expr:
            # All that a branch does: choices in each other become `elif`, of any number.
            result = self._wanted[1]
        else:
            result = self.names.fresh("chosen" if expr.primitive == "where" else "holds")
        if expr.primitive != "where":
            other = Constant(expr.primitive == "or_", "bool")
            branches = [branches[0], other] if expr.primitive == "and_" else [other, branches[0]]
        bodies = [self.block_of(branch, result) for branch in branches]
        self.block.append(ast.If(test, bodies[0], bodies[1]))
        return name(result)

    def block_of(self, expr: Expr, identifier: str) -> list[ast.stmt]:
        """The statements that assign ``expr`` to ``identifier``."""
        outer, self.block = self.block, []
        wanted, self._wanted = self._wanted, (expr, identifier)
        value = self.expression(expr)
        block, self.block, self._wanted = self.block, outer, wanted
        if isinstance(value, ast.Name) and value.id == identifier:
            return block
        return [*block, assignment(identifier, value)]
