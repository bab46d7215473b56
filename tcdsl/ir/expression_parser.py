"""Text to expressions: the notation that `tcdsl.ir.printer` writes.

The notation is that of Python expressions, so Python's own ``ast`` does the parsing::

    parse_expr("exp(x[i] - m[()]) * 2.0", tensors, sizes=("N",), variables=("i",))

Types need no marks where they are plain: a number takes the type of what stands beside it, else the type that its place
asks for, else int64 or float64. ``float32(2.0)`` is a constant of that type, ``float32(e)`` a cast of anything else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError, TcdslError
from tcdsl.ir import build
from tcdsl.ir.dtypes import DTYPES, compute_dtype, is_boolean, is_floating, is_integer
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
from tcdsl.ir.span import Span

__all__ = [
    "BINARY_OPERATORS",
    "BOUNDARY_NAMES",
    "NUMBER_NAMES",
    "ExpressionParser",
    "index_list",
    "parse_expr",
    "syntax_fault",
]

NUMBER_NAMES: Mapping[str, float] = {"inf": math.inf, "nan": math.nan}
BOUNDARY_NAMES: Mapping[str, Boundary] = {boundary.value: boundary for boundary in Boundary}

BINARY_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_div",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
}
_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


def syntax_fault(fact: str, text: str, line: int, column: int, width: int = 1, hint: str = "") -> TcdslError:
    """The error for a fault at ``line`` (from 1) and ``column`` (from 0) of ``text``, showing the line and a caret."""
    lines = text.split("\n")
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    caret = " " * column + "^" * max(1, min(width, len(shown) - column))
    span = Span("<text>", line, column, line, column + max(1, width))
    return Diagnostic(DslSyntaxError, fact, span, (shown, caret), hint).error()


class ExpressionParser:
    """Turns Python's syntax tree into typed expressions, node by node, exactly as written: nothing is simplified.

    ``text`` is the whole text, for error messages; `parse` takes a piece of it.
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
        self._origin = (1, 0)
        self._tree: ast.expr | None = None

    def parse(self, piece: str, dtype: str | None = None, line: int = 1, column: int = 0) -> Expr:
        """The expression ``piece``, which starts at ``line`` and ``column`` of the text and is of type ``dtype``."""
        self._origin = (line, column)
        try:
            # The parentheses let an expression run over several lines.
            self._tree = ast.parse(f"({piece}\n)", mode="eval").body
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
        self._natural.clear()
        return self._expr(self._tree, dtype)

    def fault(self, node: ast.AST, fact: str, hint: str = "") -> TcdslError:
        """A `DslSyntaxError` that points at ``node``."""
        row, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 1)
        line = self._origin[0] + row - 1
        column = offset - 1 + self._origin[1] if row == 1 else offset
        same = getattr(node, "end_lineno", row) == row
        width = getattr(node, "end_col_offset", offset + 1) - offset if same else 1
        return syntax_fault(fact, self.text, line, max(0, column), width, hint)

    def make(self, node: ast.expr, primitive: str, arguments: Sequence[Expr]) -> Expr:
        """The node for a primitive on arguments."""
        try:
            dtype = build.result_dtype(primitive, [argument.dtype for argument in arguments])
        except TypeError as error:
            hint = "the operands of a primitive have one type; write casts, as in float32(e)"
            raise self.fault(node, str(error), hint) from None
        return Apply(primitive, tuple(arguments), dtype)

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
            case ast.BinOp(left=left, right=right):
                return self._first_natural((left, right))
            case ast.IfExp(body=body, orelse=orelse):
                return self._first_natural((body, orelse))
            case ast.Subscript(value=ast.Name(id=name)) if name in self.tensors:
                return compute_dtype(self.tensors[name].dtype)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._natural_call(name, arguments)
        return None

    def _natural_call(self, name: str, arguments: list[ast.expr]) -> str | None:
        if name in DTYPES:
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

    # Expressions.

    def _expr(self, node: ast.expr, dtype: str | None) -> Expr:
        number = _number(node)
        if number is not None:
            return self._constant(node, number, dtype or self.default(node))
        match node:
            case ast.Constant(value=bool(value)):
                return build.truth(value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(node, op, operand, dtype)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY_OPERATORS:
                return self.make(node, BINARY_OPERATORS[type(op)], self._group(node, (left, right), dtype))
            case ast.BoolOp(op=op, values=values):
                return self._fold(node, "and_" if isinstance(op, ast.And) else "or_", values)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison(node, left, ops, comparators)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.make(node, "where", (self._expr(test, "bool"), *self._group(node, (body, orelse), dtype)))
            case ast.Subscript():
                return self._read(node, None)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(node, name, arguments, dtype)
        raise self.fault(node, "this notation is not part of the language")

    def _constant(self, node: ast.expr, value: int | float, dtype: str) -> Constant:
        try:
            fits = not is_boolean(dtype) and (is_floating(dtype) or isinstance(value, int))
            if fits and is_integer(dtype):
                fits = int(np.iinfo(dtype).min) <= value <= int(np.iinfo(dtype).max)
            if fits:
                return build.constant(value, dtype)
        except OverflowError:
            pass
        raise self.fault(node, f"{ast.unparse(node)} is not a number of type {dtype}")

    def _name(self, node: ast.expr, name: str) -> Expr:
        bound = self.lookup(name)
        if bound is not None:
            return bound
        if name in self.tensors:
            rank = len(self.tensors[name].shape)
            raise self.fault(node, f"{name} has {rank} axes and no index", f"write {name}[{', '.join(['...'] * rank)}]")
        raise self.fault(node, f"the name {name} is not defined")

    def _unary(self, node: ast.expr, op: ast.unaryop, operand: ast.expr, dtype: str | None) -> Expr:
        if isinstance(op, ast.UAdd):
            return self._expr(operand, dtype)
        if isinstance(op, ast.Not):
            return self.make(node, "not_", (self._expr(operand, "bool"),))
        primitive = "neg" if isinstance(op, ast.USub) else "bit_not"
        return self.make(node, primitive, (self._expr(operand, dtype),))

    def _group(self, node: ast.expr, operands: Sequence[ast.expr], dtype: str | None) -> list[Expr]:
        # Operands of one type: what one of them knows, all of them take. Else numbers take what `node` is to be.
        shared = self._first_natural(operands) or dtype or self.default(node)
        return [self._expr(operand, shared) for operand in operands]

    def _fold(self, node: ast.expr, primitive: str, values: Sequence[ast.expr]) -> Expr:
        parts = [self._expr(value, "bool") for value in values]
        return reduce(lambda before, part: self.make(node, primitive, (before, part)), parts)

    def _comparison(self, node: ast.expr, left: ast.expr, ops: list[ast.cmpop], right: list[ast.expr]) -> Expr:
        # A chain, 0 <= i < n, is the conjunction of its links.
        links: list[Expr] = []
        for first, op, second in zip([left, *right[:-1]], ops, right, strict=True):
            if type(op) not in _COMPARE:
                raise self.fault(node, "this comparison is not part of the language")
            shared = self._first_natural((first, second))
            if shared is None:
                real = self._has_real_number(first) or self._has_real_number(second)
                shared = "float64" if real else "int64"
            links.append(self.make(node, _COMPARE[type(op)], [self._expr(part, shared) for part in (first, second)]))
        return reduce(lambda before, link: self.make(node, "and_", (before, link)), links)

    def _call(self, node: ast.expr, name: str, arguments: list[ast.expr], dtype: str | None) -> Expr:
        if name == "let":
            return self._let(node, arguments, dtype)
        if name == "get":
            if len(arguments) != 2 or not isinstance(arguments[0], ast.Subscript):
                raise self.fault(node, "get takes a read and a value, as in get(x[i - 1], 0.0)")
            return self._read(arguments[0], arguments[1])
        if name in DTYPES:
            if len(arguments) != 1:
                raise self.fault(node, f"a cast takes one argument, as in {name}(e)")
            number = _number(arguments[0])
            if number is not None:
                return self._constant(arguments[0], number, name)
            return Cast(self._expr(arguments[0], None), name)
        if name not in PRIMITIVES:
            raise self.fault(node, f"{name} is not a primitive")
        row = PRIMITIVES[name]
        if len(arguments) != row.arity:
            raise self.fault(node, f"{name} takes {row.arity} arguments, not {len(arguments)}")
        if row.kind == "select":
            return self.make(node, name, (self._expr(arguments[0], "bool"), *self._group(node, arguments[1:], dtype)))
        wanted = None if row.kind == "compare" else "bool" if row.kind == "logical" else dtype
        return self.make(node, name, self._group(node, arguments, wanted))

    def _let(self, node: ast.expr, arguments: list[ast.expr], dtype: str | None) -> Expr:
        if len(arguments) < 2:
            raise self.fault(node, "let takes definitions and a value, as in let(z := x[i] * x[i], z + z)")
        definition = arguments[0]
        with self._locals(()):
            if not isinstance(definition, ast.NamedExpr):
                raise self.fault(definition, "a definition in let(...) is written name := value")
            value = self._expr(definition.value, None)
            self.names[definition.target.id] = Local(definition.target.id, value.dtype)
            body = self._expr(arguments[1], dtype) if len(arguments) == 2 else self._let(node, arguments[1:], dtype)
            return Let(definition.target.id, value, body)

    def _read(self, node: ast.Subscript, fill: ast.expr | None) -> Read:
        if not isinstance(node.value, ast.Name):
            raise self.fault(node, "only tensors, by name, can be indexed")
        name = node.value.id
        if name not in self.tensors:
            raise self.fault(node.value, f"there is no tensor named {name}")
        tensor = self.tensors[name]
        items = index_list(node)
        if len(items) != len(tensor.shape):
            raise self.fault(node, f"{name} has {len(tensor.shape)} axes, not {len(items)}")
        dtype = compute_dtype(tensor.dtype)
        axes = [self._axis(item, fill is not None) for item in items]
        return Read(
            name,
            tuple(index for index, _ in axes),
            tuple(boundary for _, boundary in axes),
            dtype,
            None if fill is None else self._expr(fill, dtype),
        )

    def _axis(self, node: ast.expr, filled: bool) -> tuple[Expr, Boundary]:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in BOUNDARY_NAMES:
                return self._index(inner), BOUNDARY_NAMES[name]
        index = self._index(node)
        if filled:
            return index, Boundary.FILL
        return index, Boundary.SKIP if is_affine_index(index) else Boundary.CHECK

    def _index(self, node: ast.expr) -> Expr:
        index = self._expr(node, "int64")
        if index.dtype != "int64":
            raise self.fault(node, f"an index is an int64, not a {index.dtype}", "write a cast, as in int64(e)")
        return index


def index_list(node: ast.Subscript) -> list[ast.expr]:
    """The index expressions of a subscript, one per axis: none for ``t[()]``."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


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


def parse_expr(
    text: str,
    tensors: Mapping[str, Tensor],
    sizes: Collection[str] = (),
    variables: Collection[str] = (),
    dtype: str | None = None,
) -> Expr:
    """``parse_expr("2.0 * x[i]", {"x": x}, variables=("i",))``: the typed expression that ``text`` stands for.

    ``dtype`` is the type that the place asks for; numbers that nothing else gives a type take it. Raises
    `DslSyntaxError`, with the line and a caret, for unknown names, wrong ranks, and operands of different types.
    """
    return ExpressionParser(text, tensors, sizes, variables).parse(text, dtype)
