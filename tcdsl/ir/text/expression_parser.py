"""Text to expressions: the notation that `tcdsl.ir.text.printer` writes.

The notation is that of Python expressions, so Python's own ``ast`` does the parsing::

    ExpressionParser(text, tensors, sizes, variables).parse("exp(x[i] - m[()]) * 2.0", "float32")

Types need no marks where they are plain: a number takes the type of what stands beside it, else the type that its place
asks for, else int64 or float64. ``float32(2.0)`` is a constant of that type, ``float32(e)`` a cast of anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError, TcdslError
from tcdsl.ir import build
from tcdsl.ir.dtypes import DTYPES, INTEGER, compute_dtype, is_boolean, is_floating, is_integer
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
    SizeValue,
    is_affine_index,
)
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Tensor
from tcdsl.ir.python_operators import PYTHON_OPERATORS
from tcdsl.ir.text.expression_printer import NUMBER_NAMES
from tcdsl.span import Span

__all__ = ["ExpressionParser", "ParsedPart", "Untyped", "syntax_fault"]

_BOUNDARY_NAMES: Mapping[str, Boundary] = {boundary.value: boundary for boundary in Boundary}


@dataclass(frozen=True, slots=True)
class Untyped:
    """An expression made of numbers alone: ``typed("int8")`` is what it is in a place of that type.

    A ``real`` one is float64 where nothing gives it a type: it has a number with a point, or what takes none but those.
    """

    real: bool
    typed: Callable[[str], Expr]


ParsedPart = Expr | Untyped


def syntax_fault(fact: str, text: str, line: int, column: int, width: int = 1, hint: str = "") -> TcdslError:
    """The error for a fault at ``line`` (from 1) and ``column`` (from 0) of ``text``, showing the line and a caret."""
    lines = text.split("\n")
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = " " * column + "^" * max(1, min(width, len(shown) - column))
    span = Span("<text>", line, column, line, column + max(1, width))
    return Diagnostic(DslSyntaxError, fact, span, (shown, caret), hint).error()


class ExpressionParser:
    """Turns Python's syntax tree into expressions, node by node, exactly as written: nothing is simplified.

    `parse` takes a piece of the text. Numbers wait for a type, which what stands beside them or their place gives.
    """

    def __init__(
        self, text: str, tensors: Mapping[str, Tensor], sizes: Collection[str], variables: Collection[str]
    ) -> None:
        # The whole text, for error messages.
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

    def parse(self, piece: str, dtype: str | None = None, line: int = 1, column: int = 0) -> Expr:
        """The expression ``piece``, which starts at ``line`` and ``column`` of the text and is of type ``dtype``."""
        self._origin, self._lines = (line, column), f"({piece}\n)".split("\n")
        try:
            # The parentheses let an expression run over several lines.
            tree = ast.parse(f"({piece}\n)", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            row = getattr(error, "lineno", 1) or 1
            offset = (getattr(error, "offset", 2) or 2) - (2 if row == 1 else 1)
            inside = row <= piece.count("\n") + 1
            raise syntax_fault(
                f"this is not an expression: {getattr(error, 'msg', error)}",
                self.text,
                line + row - 1 if inside else line,
                max(0, offset + (column if row == 1 else 0)) if inside else column,
            ) from None
        if not piece.strip():
            raise syntax_fault("an expression is missing", self.text, line, column)
        return self._typed(self._expr(tree), dtype)

    def make(self, node: ast.expr, primitive: str, arguments: Sequence[Expr]) -> Expr:
        """The node for a primitive on arguments."""
        try:
            dtype = build.result_dtype(primitive, [argument.dtype for argument in arguments])
        except TypeError as error:
            hint = "the operands of a primitive have one type; write casts, as in float32(e)"
            raise self.fault(node, str(error), hint) from None
        return Apply(primitive, tuple(arguments), dtype)

    # Expressions.

    @staticmethod
    def _typed(part: ParsedPart, dtype: str | None = None) -> Expr:
        if isinstance(part, Untyped):
            return part.typed(dtype or ("float64" if part.real else "int64"))
        return part

    def _applied(self, node: ast.expr, primitive: str, parts: Sequence[ParsedPart]) -> ParsedPart:
        """A primitive on operands of one type: what one of them has, all numbers take."""
        kind = PRIMITIVES[primitive].kind
        operands = parts[1:] if kind == "select" else parts
        conditions = [self._typed(part, "bool") for part in parts[: len(parts) - len(operands)]]
        real = kind == "real" or any(isinstance(part, Untyped) and part.real for part in operands)
        shared = next((part.dtype for part in operands if not isinstance(part, Untyped)), None)
        if shared is None and kind in ("compare", "logical"):
            shared = "bool" if kind == "logical" else "float64" if real else "int64"

        def typed(dtype: str) -> Expr:
            return self.make(node, primitive, [*conditions, *(self._typed(part, dtype) for part in operands)])

        return Untyped(real, typed) if shared is None else typed(shared)

    def _expr(self, node: ast.expr) -> ParsedPart:
        number = _number(node)
        if number is not None:
            return Untyped(isinstance(number, float), partial(self._constant, node, number))
        match node:
            case ast.Constant(value=bool(value)):
                return build.truth(value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._expr(operand)
            case ast.UnaryOp(op=op, operand=operand):
                return self._applied(node, PYTHON_OPERATORS[type(op)], [self._expr(operand)])
            case ast.BinOp():
                return self._chain(node)
            case ast.BoolOp(op=op, values=values):
                return self._joined(node, PYTHON_OPERATORS[type(op)], [self._expr(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison(node, left, ops, comparators)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._applied(node, "where", [self._expr(part) for part in (test, body, orelse)])
            case ast.Subscript():
                return self._read(node, None)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(node, name, arguments)
        raise self.fault(node, "this notation is not part of the language")

    def _constant(self, node: ast.expr, value: int | float, dtype: str) -> Constant:
        try:
            fits = not is_boolean(dtype) and (is_floating(dtype) or isinstance(value, int))
            # The numbers of indices are of type int64 and of any size.
            if fits and is_integer(dtype) and dtype not in (INTEGER, "int64"):
                fits = int(np.iinfo(dtype).min) <= value <= int(np.iinfo(dtype).max)
            if fits:
                return build.constant(value, dtype)
        except OverflowError:
            pass
        raise self.fault(node, f"{ast.unparse(node)} is not a number of type {dtype}")

    def _name(self, node: ast.expr, name: str) -> ParsedPart:
        bound = self.lookup(name)
        if bound is not None:
            return bound
        if name in self.tensors:
            rank = len(self.tensors[name].shape)
            raise self.fault(node, f"{name} has {rank} axes and no index", f"write {name}[{', '.join(['...'] * rank)}]")
        raise self.fault(node, f"the name {name} is not defined")

    def _chain(self, node: ast.BinOp) -> ParsedPart:
        # Down along the left operands and up again, because sums of hundreds of terms are deep trees.
        spine: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            if type(left.op) not in PYTHON_OPERATORS:
                raise self.fault(left, "this notation is not part of the language")
            spine.append(left)
            left = left.left
        result = self._expr(left)
        for step in reversed(spine):
            result = self._applied(step, PYTHON_OPERATORS[type(step.op)], (result, self._expr(step.right)))
        return result

    def _joined(self, node: ast.expr, primitive: str, parts: Sequence[ParsedPart]) -> ParsedPart:
        return reduce(lambda before, part: self._applied(node, primitive, (before, part)), parts)

    def _comparison(self, node: ast.expr, left: ast.expr, ops: list[ast.cmpop], right: list[ast.expr]) -> ParsedPart:
        # A chain, 0 <= i < n, is the conjunction of its links.
        if any(type(op) not in PYTHON_OPERATORS for op in ops):
            raise self.fault(node, "this comparison is not part of the language")
        operands = [self._expr(part) for part in (left, *right)]
        links = zip(ops, operands, operands[1:], strict=False)
        return self._joined(
            node, "and_", [self._applied(node, PYTHON_OPERATORS[type(op)], each) for op, *each in links]
        )

    def _call(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> ParsedPart:
        if name == "let":
            return self._let(node, arguments)
        if name == "get":
            if len(arguments) != 2 or not isinstance(arguments[0], ast.Subscript):
                raise self.fault(node, "get takes a read and a value, as in get(x[i - 1], 0.0)")
            return self._read(arguments[0], arguments[1])
        if name in DTYPES or name == INTEGER:
            if len(arguments) != 1:
                raise self.fault(node, f"a cast takes one argument, as in {name}(e)")
            number = _number(arguments[0])
            if number is not None:
                return self._constant(arguments[0], number, name)
            return Cast(self._typed(self._expr(arguments[0])), name)
        if name not in PRIMITIVES:
            raise self.fault(node, f"{name} is not a primitive")
        if len(arguments) != PRIMITIVES[name].arity:
            raise self.fault(node, f"{name} takes {PRIMITIVES[name].arity} arguments, not {len(arguments)}")
        return self._applied(node, name, [self._expr(argument) for argument in arguments])

    def _let(self, node: ast.expr, arguments: list[ast.expr]) -> ParsedPart:
        if len(arguments) < 2:
            raise self.fault(node, "let takes definitions and a value, as in let(z := x[i] * x[i], z + z)")
        around, definitions = dict(self.names), list[tuple[str, Expr]]()
        for definition in arguments[:-1]:
            if not isinstance(definition, ast.NamedExpr):
                raise self.fault(definition, "a definition in let(...) is written name := value")
            name, value = definition.target.id, self._typed(self._expr(definition.value))
            definitions.append((name, value))
            self.names[name] = Local(name, value.dtype)
        body = self._expr(arguments[-1])
        self.names = around

        def enclosed(inner: Expr) -> Expr:
            return reduce(lambda value, each: Let(each[0], each[1], value), reversed(definitions), inner)

        if isinstance(body, Untyped):
            return Untyped(body.real, lambda dtype: enclosed(body.typed(dtype)))
        return enclosed(body)

    def _read(self, node: ast.Subscript, fill: ast.expr | None) -> Expr:
        if not isinstance(node.value, ast.Name):
            raise self.fault(node, "only tensors, by name, can be indexed")
        name = node.value.id
        if name not in self.tensors:
            raise self.fault(node.value, f"there is no tensor named {name}")
        tensor = self.tensors[name]
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) != len(tensor.shape):
            raise self.fault(node, f"{name} has {len(tensor.shape)} axes, not {len(items)}")
        dtype = compute_dtype(tensor.dtype)
        axes = [self._axis(item, fill is not None) for item in items]
        return Read(
            name,
            tuple(index for index, _ in axes),
            tuple(boundary for _, boundary in axes),
            dtype,
            None if fill is None else self._typed(self._expr(fill), dtype),
        )

    def _axis(self, node: ast.expr, filled: bool) -> tuple[Expr, Boundary]:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _BOUNDARY_NAMES:
                return self._index(inner), _BOUNDARY_NAMES[name]
        index = self._index(node)
        if filled:
            return index, Boundary.FILL
        return index, Boundary.SKIP if is_affine_index(index) else Boundary.CHECK

    def _index(self, node: ast.expr) -> Expr:
        index = self._typed(self._expr(node), "int64")
        if index.dtype not in ("int64", INTEGER):
            raise self.fault(node, f"an index is an int64, not a {index.dtype}", "write a cast, as in int64(e)")
        return index


def _number(node: ast.expr) -> int | float | None:
    # A literal with its sign: -2.0 is one constant, neg(2.0) is a primitive.
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=(int() | float()) as value):
            return value
        case ast.Name(id=name) if name in NUMBER_NAMES:
            return NUMBER_NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.UnaryOp):
            inner = _number(operand)
            return None if inner is None else -inner
    return None
