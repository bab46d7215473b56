"""Nests written as loops of Python::

    nest_kernel("for i in range(n):\n    y[i] = exp(x[i])", {"x": "float32[n]", "y": "float32[n]"})

``n`` is a size, ``y`` the output, which is the last buffer. Names are scalars of the type that they are first given.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tcdsl.ir.build import apply, cast, constant, integer, plain_read
from tcdsl.ir.dtypes import DTYPES, compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, Local, SizeValue
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Kernel, Loop, Node, Store, Update
from tests.targets.kernels import make

__all__ = ["FLOATS", "nest_kernel"]

FLOATS = {"inf": float("inf"), "nan": float("nan")}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Mod: "mod",
    ast.FloorDiv: "floor_div",
    ast.BitAnd: "bit_and",
    ast.BitOr: "bit_or",
    ast.BitXor: "bit_xor",
    ast.USub: "neg",
    ast.Not: "not_",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.And: "and_",
    ast.Or: "or_",
}
_ACCUMULATORS = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.BitOr: "or",
    ast.BitAnd: "and",
}
_EXTREMES = {"maximum": "max", "minimum": "min"}
_FUNCTIONS = {row.code.partition("(")[0]: name for name, row in PRIMITIVES.items()}


def nest_kernel(text: str, buffers: Mapping[str, str]) -> Kernel:
    """The kernel of one nest."""
    shapes: dict[str, tuple[str, tuple[Expr, ...]]] = {}
    for name, described in buffers.items():
        dtype, _, axes = described.rstrip("]").partition("[")
        shapes[name] = dtype, tuple(SizeValue(axis.strip()) for axis in axes.split(",") if axis.strip())
    reader = _Reader({name: dtype for name, (dtype, _) in shapes.items()})
    *inputs, output = shapes
    body = reader.block(ast.parse(text).body)
    return make({name: shapes[name] for name in inputs}, {output: shapes[output]}, body)


class _Reader:
    def __init__(self, buffers: Mapping[str, str]) -> None:
        self._buffers = buffers
        self._scalars: dict[str, str] = {}
        self._variables: set[str] = set()

    def block(self, statements: Sequence[ast.stmt]) -> tuple[Node, ...]:
        return tuple(map(self._node, statements))

    def _node(self, statement: ast.stmt) -> Node:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=held), value]) as called) if (
                held == name
            ):
                return Accumulate(name, _EXTREMES[_called(called)], self._value(value))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                made = self._value(value)
                self._scalars[name] = made.dtype
                return Define(name, made)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                return Accumulate(name, _ACCUMULATORS[type(operator)], self._value(value))
            case ast.Assign(targets=[ast.Subscript() as cell], value=value):
                return Store(*self._cell(cell), self._value(value))
            case ast.AugAssign(target=ast.Subscript() as cell, op=operator, value=value):
                return Update(*self._cell(cell), _ACCUMULATORS[type(operator)], self._value(value))
            case ast.If(test=test, body=body, orelse=orelse):
                return Branch(self._value(test), self.block(body), self.block(orelse))
            case ast.For(target=ast.Name(id=variable), iter=ast.Call() as steps, body=body):
                seldom = _called(steps) == "seldom"
                if seldom:
                    (steps,) = steps.args
                bounds = [self._value(bound) for bound in steps.args]
                start, stop, step = [integer(0), *bounds, integer(1)] if len(bounds) == 1 else [*bounds, integer(1)][:3]
                self._variables.add(variable)
                return Loop(variable, start, stop, int(step.value), self.block(body), seldom=seldom)
        raise TypeError(ast.unparse(statement))

    def _cell(self, cell: ast.Subscript) -> tuple[str, tuple[Expr, ...]]:
        parts = cell.slice.elts if isinstance(cell.slice, ast.Tuple) else [cell.slice]
        return cell.value.id, tuple(self._value(part) for part in parts)

    def _value(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=value):
                return constant(value, {bool: "bool", int: "int64", float: "float64"}[type(value)])
            case ast.Name(id=name) if name in FLOATS:
                return constant(FLOATS[name], "float64")
            case ast.Name(id=name) if name in self._scalars:
                return Local(name, self._scalars[name])
            case ast.Name(id=name):
                return IndexValue(name) if name in self._variables else SizeValue(name)
            case ast.Subscript():
                buffer, indices = self._cell(node)
                return plain_read(buffer, indices, compute_dtype(self._buffers[buffer]))
            case ast.UnaryOp(op=operator, operand=operand):
                return apply(_OPERATORS[type(operator)], self._value(operand))
            case ast.BinOp(left=left, op=operator, right=right):
                return apply(_OPERATORS[type(operator)], self._value(left), self._value(right))
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return apply(_OPERATORS[type(operator)], self._value(left), self._value(right))
            case ast.BoolOp(op=operator, values=[left, right]):
                return apply(_OPERATORS[type(operator)], self._value(left), self._value(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return apply("where", *map(self._value, (test, body, orelse)))
            case ast.Call(args=arguments):
                values = map(self._value, arguments)
                function = _called(node)
                return cast(next(values), function) if function in DTYPES else apply(_FUNCTIONS[function], *values)
        raise TypeError(ast.unparse(node))


def _called(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Name)
    return node.func.id
