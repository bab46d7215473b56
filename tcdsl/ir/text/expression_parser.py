"""Text to expressions: the notation that `tcdsl.ir.text.printer` writes.

The notation is that of Python expressions, so Python's own ``ast`` does the parsing::

    parse_expr("exp(x[i] - m[()]) * 2.0", tensors, sizes=("N",), variables=("i",))

Types need no marks where they are plain: a number takes the type of what stands beside it, else the type that its place
asks for, else int64 or float64. ``float32(2.0)`` is a constant of that type, ``float32(e)`` a cast of anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import numpy as np

from tcdsl.ir import build
from tcdsl.ir.dtypes import DTYPES, INTEGER, compute_dtype, is_boolean, is_floating, is_integer
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    Let,
    Local,
    Read,
    is_affine_index,
)
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Tensor
from tcdsl.ir.text.expression_scope import NUMBER_NAMES, ExpressionScope, syntax_fault

__all__ = ["BINARY_OPERATORS", "BOUNDARY_NAMES", "ExpressionParser", "index_list", "parse_expr"]

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


class ExpressionParser(ExpressionScope):
    """Turns Python's syntax tree into typed expressions, node by node, exactly as written: nothing is simplified.

    `parse` takes a piece of the text.
    """

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
        self._natural.clear()
        return self._expr(tree, dtype)

    def make(self, node: ast.expr, primitive: str, arguments: Sequence[Expr]) -> Expr:
        """The node for a primitive on arguments."""
        try:
            dtype = build.result_dtype(primitive, [argument.dtype for argument in arguments])
        except TypeError as error:
            hint = "the operands of a primitive have one type; write casts, as in float32(e)"
            raise self.fault(node, str(error), hint) from None
        return Apply(primitive, tuple(arguments), dtype)

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
            case ast.BinOp():
                return self._chain(node, dtype)
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
            if fits and is_integer(dtype) and dtype != INTEGER:
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

    def _chain(self, node: ast.BinOp, dtype: str | None) -> Expr:
        # Down along the left operands to the first that is no operator or only numbers, and up again.
        spine: list[tuple[ast.BinOp, str]] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and (not spine or self.natural(left) is not None):
            if type(left.op) not in BINARY_OPERATORS:
                raise self.fault(left, "this notation is not part of the language")
            dtype = self.natural(left) or dtype or self.default(left)
            spine.append((left, dtype))
            left = left.left
        result = self._expr(left, dtype)
        for step, shared in reversed(spine):
            result = self.make(step, BINARY_OPERATORS[type(step.op)], (result, self._expr(step.right, shared)))
        return result

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
        if name in DTYPES or name == INTEGER:
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
        if index.dtype not in ("int64", INTEGER):
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
