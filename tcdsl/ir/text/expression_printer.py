"""Expressions as text, in Python's notation, with as few type marks as the parser needs to find every type again."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    Reduction,
    SizeValue,
    is_affine_index,
    walk,
)
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["NUMBER_NAMES", "REDUCTION_NAMES", "ExpressionPrinter", "format_expr"]

NUMBER_NAMES: Mapping[str, float] = {"inf": math.inf, "nan": math.nan}
"""The numbers that have names: nothing else is called so."""
REDUCTION_NAMES: Mapping[str, str] = {"add": "sum", "multiply": "prod", "or": "any", "and": "all"}
"""What users write for reductions that are not called as their accumulators are."""

# How tightly Python's operators bind.
_CONDITIONAL, _OR, _AND, _NOT, _COMPARISON = 1, 2, 3, 4, 5
_UNARY, _POWER, _ATOM = 12, 13, 14
_BINARY = {
    "bit_or": 6,
    "bit_xor": 7,
    "bit_and": 8,
    "shift_left": 9,
    "shift_right": 9,
    "add": 10,
    "sub": 10,
    "mul": 11,
    "div": 11,
    "floor_div": 11,
    "mod": 11,
}
# The type that marks every number: no number has it.
_MARK = ""


def format_expr(expr: Expr, dtype: str | None = None) -> str:
    """``format_expr(e)`` is ``"exp(x[i] - m) * 2.0"``; ``dtype`` is the type that the place asks for, if any."""
    shown = {node.name for node in walk(expr) if isinstance(node, IndexValue | SizeValue)}
    return ExpressionPrinter(shown).text(expr, dtype)


class ExpressionPrinter:
    """``ExpressionPrinter(names).text(expr, dtype)``; ``names`` are the index variables and sizes around ``expr``.

    A rank-0 tensor prints bare, except where its name means one of them.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = set(names) | set(NUMBER_NAMES)
        self._typed: dict[int, bool] = {}

    def text(self, expr: Expr, dtype: str | None = None) -> str:
        """``expr`` as text, which the parser reads back to an equal expression in a place of type ``dtype``."""
        hidden = {node.name for node in walk(expr) if isinstance(node, Let)} - self._names
        self._names |= hidden
        # Keyed by identity: the expression is alive during the call only.
        self._typed.clear()
        result = self._text(expr, dtype, 0)
        self._names -= hidden
        return result

    def _text(self, expr: Expr, dtype: str | None, binding: int) -> str:
        text, own = self._bound_text(expr, dtype)
        return f"({text})" if own < binding else text

    def _bound_text(self, expr: Expr, dtype: str | None) -> tuple[str, int]:
        # The text, and how tightly its outermost operator binds.
        match expr:
            case Constant():
                return _constant(expr, dtype)
            case SizeValue(name=name) | IndexValue(name=name) | Local(name=name):
                return name, _ATOM
            case Read():
                return self._read(expr), _ATOM
            case Cast(operand=operand, dtype=target):
                # float32(2.0) is a constant, so a cast of a constant shows the constant's own type.
                inner = self._text(operand, _MARK if isinstance(operand, Constant) else None, 0)
                return f"{target}({inner})", _ATOM
            case Let():
                return self._let(expr, dtype), _ATOM
            case Apply():
                return self._apply(expr, dtype)
            case Reduction(accumulate=accumulate, value=value):
                # In sketches only, of which messages show parts.
                return f"{REDUCTION_NAMES.get(accumulate, accumulate)}({self._text(value, dtype, 0)})", _ATOM

    def _has_type(self, expr: Expr) -> bool:
        """Whether the parser finds the type of ``expr`` without any context: it is not made of numbers alone."""
        known = self._typed.get(id(expr))
        if known is None:
            match expr:
                case Constant(dtype=dtype):
                    known = dtype == "bool"
                case Let(body=body):
                    known = self._has_type(body)
                case Apply(primitive=primitive, arguments=arguments) if primitive in PRIMITIVES:
                    kind = PRIMITIVES[primitive].kind
                    parts = arguments[1:] if kind == "select" else arguments
                    known = kind in ("compare", "logical") or any(map(self._has_type, reversed(parts)))
                case _:
                    known = True
            self._typed[id(expr)] = known
        return known

    def _operand_dtypes(self, operands: Sequence[Expr], dtype: str | None) -> list[str | None]:
        # What the parser will expect of each of several operands of one type.
        own = operands[0].dtype
        found = dtype == own or any(map(self._has_type, reversed(operands)))
        if found or (dtype is None and own in ("int64", "float64")):
            return [own] * len(operands)
        return [_MARK, *[own] * (len(operands) - 1)]

    def _apply(self, expr: Apply, dtype: str | None) -> tuple[str, int]:
        primitive, arguments = expr.primitive, expr.arguments
        row = PRIMITIVES.get(primitive)
        if row is None or len(arguments) != row.arity:
            # Not a correct expression; the verifier shows it.
            return f"{primitive}({', '.join(self._text(part, None, 0) for part in arguments)})", _ATOM
        if primitive == "where":
            condition = self._text(arguments[0], "bool", _OR)
            types = self._operand_dtypes(arguments[1:], dtype)
            chosen, other = self._text(arguments[1], types[0], _OR), self._text(arguments[2], types[1], _CONDITIONAL)
            return f"{chosen} if {condition} else {other}", _CONDITIONAL
        wanted = None if row.kind == "compare" else "bool" if row.kind == "logical" else dtype
        types = self._operand_dtypes(arguments, wanted)
        if row.kind == "compare":
            parts = [self._text(part, kind, _COMPARISON + 1) for part, kind in zip(arguments, types, strict=True)]
            return f" {row.operator} ".join(parts), _COMPARISON
        if primitive in ("and_", "or_"):
            own = _AND if primitive == "and_" else _OR
            return self._infix(row.operator, arguments, types, own, own + 1), own
        if primitive == "not_":
            return f"not {self._text(arguments[0], 'bool', _NOT)}", _NOT
        if primitive == "bit_not" or (primitive == "neg" and not isinstance(arguments[0], Constant)):
            return f"{row.operator}{self._text(arguments[0], types[0], _UNARY)}", _UNARY
        if primitive == "pow":
            return self._infix("**", arguments, types, _ATOM, _UNARY), _POWER
        if primitive in _BINARY:
            return self._chain(expr, dtype), _BINARY[primitive]
        parts = [self._text(part, kind, 0) for part, kind in zip(arguments, types, strict=True)]
        return f"{primitive}({', '.join(parts)})", _ATOM

    def _chain(self, expr: Apply, dtype: str | None) -> str:
        # A loop along the left operands, because sums of hundreds of terms are deep trees.
        parts = []
        while True:
            left, right = expr.arguments
            own = _BINARY[expr.primitive]
            types = self._operand_dtypes(expr.arguments, dtype)
            parts.append(f" {PRIMITIVES[expr.primitive].operator} {self._text(right, types[1], own + 1)}")
            if not (isinstance(left, Apply) and _BINARY.get(left.primitive, 0) >= own and len(left.arguments) == 2):
                return self._text(left, types[0], own) + "".join(reversed(parts))
            expr, dtype = left, types[0]

    def _infix(
        self, operator: str, arguments: Sequence[Expr], types: Sequence[str | None], left: int, right: int
    ) -> str:
        first, second = arguments
        return f"{self._text(first, types[0], left)} {operator} {self._text(second, types[1], right)}"

    def _let(self, expr: Let, dtype: str | None) -> str:
        parts = []
        body: Expr = expr
        while isinstance(body, Let):
            parts.append(f"{body.name} := {self._text(body.value, None, 0)}")
            body = body.body
        return f"let({', '.join(parts)}, {self._text(body, dtype, 0)})"

    def _read(self, expr: Read) -> str:
        if not expr.indices:
            return f"{expr.tensor}[()]" if expr.tensor in self._names else expr.tensor
        filled = expr.fill is not None
        plain = [Boundary.SKIP] * (len(expr.indices) - len(expr.boundaries))
        axes = [
            self._axis(index, boundary, filled)
            for index, boundary in zip(expr.indices, [*expr.boundaries, *plain], strict=False)
        ]
        cell = f"{expr.tensor}[{', '.join(axes)}]"
        return cell if expr.fill is None else f"get({cell}, {self._text(expr.fill, expr.dtype, 0)})"

    def _axis(self, index: Expr, boundary: Boundary, filled: bool) -> str:
        text = self._text(index, index.dtype, 0)
        plain = Boundary.FILL if filled else Boundary.SKIP if is_affine_index(index) else Boundary.CHECK
        return text if boundary is plain else f"{boundary.value}({text})"


def _constant(expr: Constant, dtype: str | None) -> tuple[str, int]:
    if expr.dtype == "bool":
        return str(bool(expr.value)), _ATOM
    real = is_floating(expr.dtype)
    text = repr(float(expr.value)) if real else str(int(expr.value))
    if dtype == expr.dtype or (dtype is None and expr.dtype == ("float64" if real else "int64")):
        return text, _UNARY if math.copysign(1, expr.value) < 0 else _ATOM
    return f"{expr.dtype}({text})", _ATOM
