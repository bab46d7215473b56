"""Names, types and faults in the notation of expressions: what the parser knows before it makes a node.

A number has no type of its own. `ExpressionScope.natural` finds the type of whatever stands beside it, without any
context; `ExpressionScope.default` is the type of numbers that nothing else gives one.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tcdsl.errors import Diagnostic, DslSyntaxError, TcdslError
from tcdsl.ir.dtypes import DTYPES, INTEGER, compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, Local, Read, SizeValue
from tcdsl.ir.primitives import PRIMITIVES
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
    """The names that an expression may use, and the types that its parts have.

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
        self._natural: dict[int, str | None] = {}
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

    # Types that need no context. None stands for numbers, which take a type from elsewhere.

    def natural(self, node: ast.expr) -> str | None:
        """The type that ``node`` has by itself; None if it consists of numbers only."""
        if id(node) not in self._natural:
            self._natural[id(node)] = self._natural_dtype(node)
        return self._natural[id(node)]

    def _natural_dtype(self, node: ast.expr) -> str | None:
        match node:
            case ast.Constant(value=bool()) | ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return "bool"
            case ast.Name(id=name):
                bound = self.lookup(name)
                return None if bound is None else bound.dtype
            case ast.UnaryOp(operand=operand):
                return self.natural(operand)
            case ast.BinOp():
                return self._natural_chain(node)
            case ast.IfExp(body=body, orelse=orelse):
                return self._first_natural((body, orelse))
            case ast.Subscript(value=ast.Name(id=name)) if name in self.tensors:
                return compute_dtype(self.tensors[name].dtype)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._natural_call(name, arguments)
        return None

    def _natural_chain(self, node: ast.expr) -> str | None:
        # A loop along the left operands, because sums of hundreds of terms are deep trees.
        while isinstance(node, ast.BinOp):
            found = self.natural(node.right)
            if found is not None:
                return found
            node = node.left
        return self.natural(node)

    def _natural_call(self, name: str, arguments: list[ast.expr]) -> str | None:
        if name in DTYPES or name == INTEGER:
            return name
        if name == "let" and arguments and isinstance(arguments[0], ast.NamedExpr):
            with self._locals(arguments[:-1]):
                return self.natural(arguments[-1])
        if name == "get":
            return self._first_natural(arguments[:1])
        row = PRIMITIVES.get(name)
        if row is not None and row.kind in ("compare", "logical"):
            return "bool"
        return self._first_natural(arguments[1:] if row is not None and row.kind == "select" else arguments)

    def _first_natural(self, nodes: Sequence[ast.expr]) -> str | None:
        return next((dtype for dtype in map(self.natural, nodes) if dtype is not None), None)

    def default(self, node: ast.expr) -> str:
        """The type of numbers without any context: float64 if one is written with a point, else int64."""
        return "float64" if self._has_real_number(node) else "int64"

    def _has_real_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return isinstance(value, float)
            case ast.Name(id=name):
                return name in NUMBER_NAMES
            case ast.UnaryOp(operand=operand):
                return self._has_real_number(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return isinstance(op, ast.Div) or self._has_real_number(left) or self._has_real_number(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self._has_real_number(body) or self._has_real_number(orelse)
            case ast.Call(func=ast.Name(id="let"), args=[*_, body]):
                return self._has_real_number(body)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in PRIMITIVES:
                row = PRIMITIVES[name]
                parts = arguments[1:] if row.kind == "select" else arguments
                return row.kind == "real" or any(self._has_real_number(part) for part in parts)
        return False

    @contextmanager
    def _locals(self, definitions: Sequence[ast.expr]) -> Iterator[None]:
        # Brings the names of `let` into scope, each visible to the ones after it.
        saved = dict(self.names)
        try:
            for definition in definitions:
                if not isinstance(definition, ast.NamedExpr):
                    raise self.fault(definition, "a definition in let(...) is written name := value")
                name = definition.target.id
                dtype = self.natural(definition.value) or self.default(definition.value)
                self.names[name] = Local(name, dtype)
            yield
        finally:
            self.names = saved

    def lookup(self, name: str) -> Expr | None:
        """What a bare name stands for; None for numbers such as ``inf`` and for unknown names."""
        if name in self.names:
            return self.names[name]
        if name not in NUMBER_NAMES and name in self.tensors and not self.tensors[name].shape:
            return Read(name, (), (), compute_dtype(self.tensors[name].dtype))
        return None
