"""Names and faults in the notation of expressions: what the parser knows before it makes a node."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping

from tcdsl.errors import Diagnostic, DslSyntaxError, TcdslError
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, Read, SizeValue
from tcdsl.ir.program import Tensor
from tcdsl.span import Span

__all__ = ["NUMBER_NAMES", "ExpressionScope", "syntax_fault"]

NUMBER_NAMES: Mapping[str, float] = {"inf": math.inf, "nan": math.nan}


def syntax_fault(fact: str, text: str, line: int, column: int, width: int = 1, hint: str = "") -> TcdslError:
    """The error for a fault at ``line`` (from 1) and ``column`` (from 0) of ``text``, showing the line and a caret."""
    lines = text.split("\n")
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = " " * column + "^" * max(1, min(width, len(shown) - column))
    span = Span("<text>", line, column, line, column + max(1, width))
    return Diagnostic(DslSyntaxError, fact, span, (shown, caret), hint).error()


class ExpressionScope:
    """The names that an expression may use, and the place of each part.

    ``text`` is the whole text, for error messages.
    """

    def __init__(
        self, text: str, tensors: Mapping[str, Tensor], sizes: Collection[str], variables: Collection[str]
    ) -> None:
        self.text = text
        self.tensors = tensors
        self.names: dict[str, Expr] = {
            **{name: SizeValue(name) for name in sizes},
            **{name: IndexValue(name) for name in variables},
        }
        # Where the parsed piece starts in the text, and its lines as Python's parser sees them.
        self._origin = (1, 0)
        self._lines: list[str] = []

    def fault(self, node: ast.AST, fact: str, hint: str = "") -> TcdslError:
        """A `DslSyntaxError` that points at ``node``."""
        row, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 1)
        shown = self._lines[row - 1]
        # Python counts bytes of UTF-8, and the first line starts with a parenthesis of ours.
        offset = len(shown.encode()[:start].decode())
        line = self._origin[0] + row - 1
        column = offset - 1 + self._origin[1] if row == 1 else offset
        same = getattr(node, "end_lineno", row) == row
        width = len(shown.encode()[start : getattr(node, "end_col_offset", start + 1)].decode()) if same else 1
        return syntax_fault(fact, self.text, line, max(0, column), width, hint)

    def lookup(self, name: str) -> Expr | None:
        """What a bare name stands for; None for numbers such as ``inf`` and for unknown names."""
        if name in self.names:
            return self.names[name]
        if name not in NUMBER_NAMES and name in self.tensors and not self.tensors[name].shape:
            return Read(name, (), (), compute_dtype(self.tensors[name].dtype))
        return None
