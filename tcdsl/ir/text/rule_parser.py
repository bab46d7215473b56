"""The rows of derivatives in the table of primitives, as expressions."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from functools import partial

from tcdsl.errors import TcdslError
from tcdsl.ir import build
from tcdsl.ir.constant_folding import fold
from tcdsl.ir.expressions import Constant, Expr
from tcdsl.ir.text.expression_parser import ExpressionParser, ParsedPart, Untyped

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

    def _name(self, node: ast.expr, name: str) -> ParsedPart:
        found = Untyped(True, partial(build.constant, math.pi)) if name == "pi" else self.lookup(name)
        if found is None:
            raise self._no_value(node)
        return found

    def _read(self, node: ast.Subscript, fill: ast.expr | None) -> Expr:
        raise self._no_value(node)

    def _applied(self, node: ast.expr, primitive: str, parts: Sequence[ParsedPart]) -> ParsedPart:
        found = super()._applied(node, primitive, parts)
        if not isinstance(found, Untyped):
            return found
        # A number as Python computes it: 2 / sqrt(pi).
        constants = (part.typed("float64") for part in parts if isinstance(part, Untyped))
        number = fold(primitive, [each.value for each in constants if isinstance(each, Constant)])
        if number is None:
            raise self._no_value(node)
        return Untyped(found.real, partial(build.constant, number))

    def _no_value(self, node: ast.expr) -> TcdslError:
        return self.fault(node, f"{ast.unparse(node)} is neither a name of the rule nor a number")


def parse_rule(text: str, bindings: Mapping[str, Expr]) -> Expr:
    """``parse_rule("g * (1 - y * y)", {"g": g, "y": y})``: a row of derivatives as an expression, simplified.

    Names are those of ``bindings`` and of primitives, and ``pi``. A number takes the type of what stands beside it; a
    rule that is only a number takes the type of ``g``, or else of the first binding. Raises `DslSyntaxError`.
    """
    natural = bindings["g"].dtype if "g" in bindings else next((e.dtype for e in bindings.values()), None)
    return _RuleParser(text, bindings).parse(text, natural)
