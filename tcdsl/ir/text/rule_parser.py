"""The rows of derivatives in the table of primitives, as expressions."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tcdsl.ir import build
from tcdsl.ir.expressions import Expr
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.expression_parser import BINARY_OPERATORS, ExpressionParser
from tcdsl.ir.text.expression_scope import NUMBER_NAMES

__all__ = ["parse_rule"]


class _RuleParser(ExpressionParser):
    """Rows of derivatives: names are bound to expressions, numbers are folded, and nodes are simplified."""

    def __init__(self, text: str, bindings: Mapping[str, Expr]) -> None:
        super().__init__(text, {}, (), ())
        self.names.update(bindings)

    def make(self, node: ast.expr, primitive: str, arguments: Sequence[Expr]) -> Expr:
        try:
            return build.apply(primitive, *arguments)
        except TypeError as error:
            raise self.fault(node, str(error)) from None

    def _expr(self, node: ast.expr, dtype: str | None) -> Expr:
        if self.natural(node) is None:
            return build.constant(self._value(node), dtype or self.default(node))
        return super()._expr(node, dtype)

    def _value(self, node: ast.expr) -> float:
        # A number as Python computes it: 2 / sqrt(pi).
        match node:
            case ast.Constant(value=(int() | float()) as value):
                return value
            case ast.Name(id="pi"):
                return math.pi
            case ast.Name(id=name) if name in NUMBER_NAMES:
                return NUMBER_NAMES[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY_OPERATORS:
                row = PRIMITIVES[BINARY_OPERATORS[type(op)]]
                return float(row.evaluate(np.float64(self._value(left)), np.float64(self._value(right))))
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in PRIMITIVES:
                return float(PRIMITIVES[name].evaluate(*(np.float64(self._value(part)) for part in arguments)))
        raise self.fault(node, f"{ast.unparse(node)} is neither a name of the rule nor a number")


def parse_rule(text: str, bindings: Mapping[str, Expr]) -> Expr:
    """``parse_rule("g * (1 - y * y)", {"g": g, "y": y})``: a row of derivatives as an expression, simplified.

    Names are those of ``bindings`` and of primitives, and ``pi``. A number takes the type of what stands beside it; a
    rule that is only a number takes the type of ``g``, or else of the first binding. Raises `DslSyntaxError`.
    """
    natural = bindings["g"].dtype if "g" in bindings else next((e.dtype for e in bindings.values()), None)
    return _RuleParser(text, bindings).parse(text, natural)
