"""Expressions of a statement as typed expressions of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.comprehensions.builtins import builtin_called
from tcdsl.frontend.comprehensions.expression_types import COMPARISONS, adapted, arithmetic_type, builtin_type
from tcdsl.frontend.comprehensions.text.element_types import joined, promoted
from tcdsl.frontend.comprehensions.text.syntax import (
    Binary,
    Call,
    Choice,
    Convert,
    Expression,
    Extent,
    LocalDefinition,
    Name,
    Number,
    Unary,
)
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import applied
from tcdsl.ir.build import cast, constant
from tcdsl.ir.dtypes import INTEGER, compute_dtype, is_floating
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, IndexValue, Read, is_affine_index
from tcdsl.span import Span

__all__ = ["Typed", "Values"]

_MOST_NODES = 20_000
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "floor_div", "%": "mod"}


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression and the type that the user sees: float16 is computed as float32."""

    expr: Expr
    dtype: str

    def as_type(self, dtype: str, span: Span | None = None) -> Expr:
        """The expression in the compute type of ``dtype``."""
        if dtype == "bool" and self.dtype != "bool":
            return applied("ne", (self.expr, constant(0, self.expr.dtype)), span)
        # A constant keeps all its digits where it meets a wider type.
        return cast(self.expr, compute_dtype(dtype), span)


@dataclass(slots=True)
class Values:
    """``Values(tensors, sizes, definitions).typed(expression)``.

    ``sizes`` are the expressions that the names of sizes stand for. Local definitions stand for their text.
    """

    tensors: Mapping[str, SymbolicTensor]
    sizes: Mapping[str, Expr]
    definitions: Mapping[str, LocalDefinition]
    _nodes: int = 0

    def typed(self, node: Expression) -> Typed:
        """A value at a point."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise self._too_large(node)
        match node:
            case Number(value=value, is_float=is_float):
                dtype = "float32" if is_float else "int32"
                return Typed(constant(value, dtype, node.span), dtype)
            case Unary() | Binary() if self._is_exact(node):
                return self._exact_value(node)
            case Name(name=name) if name in self.definitions:
                return self.typed(self.definitions[name].value)
            case Name(name=name) if name in self.tensors:
                return self._cell(name, (), node.span)
            case Name() | Extent():
                return Typed(cast(self.index(node), "int32", node.span), "int32")
            case Call(name=Name(name=name), arguments=arguments):
                if name in self.tensors:
                    return self._cell(name, arguments, node.span)
                return self._builtin(name, arguments, [self.typed(argument) for argument in arguments])
            case Convert(dtype=dtype, operand=operand):
                return Typed(self.typed(operand).as_type(dtype, node.span), dtype)
            case Unary(operator=operator, operand=operand):
                return self._unary(operator, self.typed(operand), node.span)
            case Binary(operator=operator, left=left, right=right):
                return self._binary(operator, (left, right), self.typed(left), self.typed(right), node.span)
            case Choice(condition=condition, chosen=chosen, other=other):
                branches = self.typed(chosen), self.typed(other)
                types = branches[0].dtype, branches[1].dtype
                dtype = joined(*adapted((chosen, other), types, self.definitions))
                parts = (self.typed(condition).expr, *(each.as_type(dtype) for each in branches))
                return Typed(applied("where", parts, node.span), dtype)

    def _is_exact(self, node: Expression) -> bool:
        # Arithmetic and comparisons of index variables and sizes, of which sets can speak.
        match node:
            case Number(is_float=is_float):
                return not is_float
            case Name(name=name):
                return name not in self.tensors and name not in self.definitions
            case Extent():
                return True
            case Unary(operator="-", operand=operand):
                return self._is_exact(operand)
            case Binary(operator="+" | "-" | "*", left=left, right=right):
                return self._is_exact(left) and self._is_exact(right)
            case Binary(operator=operator, left=left, right=right) if operator in COMPARISONS:
                return not any(map(_is_comparison, (left, right))) and self._is_exact(left) and self._is_exact(right)
        return False

    def _exact_value(self, node: Unary | Binary) -> Typed:
        if not _is_comparison(node):
            return Typed(cast(self.index(node), "int32", node.span), "int32")
        assert isinstance(node, Binary)
        left, right = self.index(node.left), self.index(node.right)
        if left.dtype != right.dtype:
            left, right = _data(left), _data(right)
        return Typed(applied(COMPARISONS[node.operator], (left, right), node.span), "bool")

    def _too_large(self, node: Expression) -> TcdslError:
        fact = f"a value of more than {_MOST_NODES} parts, with what its local definitions stand for"
        return DslSyntaxError.at(fact, node.span, "make a statement of a part that stands in it many times")

    def _cell(self, name: str, arguments: tuple[Expression, ...], span: Span | None) -> Typed:
        tensor = self.tensors[name]
        indices = tuple(self.index(argument) for argument in arguments)
        boundaries = tuple(Boundary.SKIP if is_affine_index(each) else Boundary.CHECK for each in indices)
        dtype = tensor.element_type
        return Typed(Read(tensor.name, indices, boundaries, compute_dtype(dtype), None, span), dtype)

    def _builtin(self, name: str, arguments: tuple[Expression, ...], operands: list[Typed]) -> Typed:
        builtin = builtin_called(name)
        assert builtin is not None
        types = [operand.dtype for operand in operands]
        dtype = builtin_type(builtin, arguments, types, self.definitions)
        return Typed(builtin.of([operand.as_type(dtype) for operand in operands]), dtype)

    def _unary(self, operator: str, operand: Typed, span: Span | None) -> Typed:
        if operator == "!":
            return Typed(applied("not_", (operand.expr,), span), "bool")
        dtype = promoted(operand.dtype)
        return Typed(applied("neg", (operand.as_type(dtype),), span), dtype)

    def _binary(
        self, operator: str, parts: tuple[Expression, Expression], left: Typed, right: Typed, span: Span | None
    ) -> Typed:
        if operator in ("&&", "||"):
            return Typed(applied("and_" if operator == "&&" else "or_", (left.expr, right.expr), span), "bool")
        dtype = arithmetic_type(operator, *adapted(parts, (left.dtype, right.dtype), self.definitions))
        operands = (left.as_type(dtype), right.as_type(dtype))
        if operator in COMPARISONS:
            return Typed(applied(COMPARISONS[operator], operands, span), "bool")
        primitive = "div" if operator == "/" and is_floating(dtype) else _ARITHMETIC[operator]
        return Typed(applied(primitive, operands, span), dtype)

    # -- indices ---------------------------------------------------------------------------------------------

    def index(self, node: Expression) -> Expr:
        """An index: exact, affine where index variables and sizes make it so, data of type `INTEGER` elsewhere."""
        match node:
            case Number(value=value):
                return constant(value, "int64", node.span)
            case Name(name=name) if name in self.definitions:
                self._nodes += 1
                if self._nodes > _MOST_NODES:
                    raise self._too_large(node)
                return self.index(self.definitions[name].value)
            case Name(name=name) if name in self.sizes:
                return self.sizes[name]
            case Name(name=name) if name not in self.tensors:
                return IndexValue(name, node.span)
            case Extent(tensor=Name(name=name), axis=axis):
                return self.tensors[name].extents[axis]
            case Unary(operator="-", operand=operand):
                return self._exact("neg", (self.index(operand),), node.span)
            case Binary(operator=operator, left=left, right=right) if operator in _ARITHMETIC:
                return self._exact(_ARITHMETIC[operator], (self.index(left), self.index(right)), node.span)
            case Call(name=Name(name="min" | "max" as name), arguments=arguments):
                return self._exact(name, tuple(map(self.index, arguments)), node.span)
        return _data(self.typed(node).expr)

    def _exact(self, primitive: str, parts: tuple[Expr, ...], span: Span | None) -> Expr:
        divides = primitive in ("floor_div", "mod")
        if divides and isinstance(parts[1], Constant) and parts[1].value == 0:
            raise DslSyntaxError.at("an index is divided by 0", span, "divide by a number that is not 0")
        if all(part.dtype == "int64" for part in parts):
            variables = [part for part in parts if not _is_size(part)]
            linear = primitive in ("add", "sub", "neg", "min", "max") or len(variables) < 2
            if linear and not (divides and variables == [parts[1]]):
                return applied(primitive, parts, span)
        return Apply(primitive, tuple(map(_data, parts)), INTEGER, span)

    def size(self, node: Expression) -> Expr:
        """The bound of a range: an expression of sizes."""
        match node:
            case Choice(condition=condition, chosen=chosen, other=other):
                return applied("where", (self._truth(condition), self.size(chosen), self.size(other)), node.span)
            case Unary(operator="-", operand=operand):
                return applied("neg", (self.size(operand),), node.span)
            case Binary(operator=operator, left=left, right=right):
                return applied(_ARITHMETIC[operator], (self.size(left), self.size(right)), node.span)
            case Call(name=Name(name=name), arguments=arguments):
                return applied(name, tuple(map(self.size, arguments)), node.span)
        return self.index(node)

    def _truth(self, node: Expression) -> Expr:
        match node:
            case Unary(operand=operand):
                return applied("not_", (self._truth(operand),), node.span)
            case Binary(operator="&&" | "||" as operator, left=left, right=right):
                parts = (self._truth(left), self._truth(right))
                return applied("and_" if operator == "&&" else "or_", parts, node.span)
            case Binary(operator=operator, left=left, right=right):
                return applied(COMPARISONS[operator], (self.size(left), self.size(right)), node.span)
        raise DslSyntaxError.at("a condition that is no comparison of sizes", node.span)


def _is_comparison(node: Expression) -> bool:
    return isinstance(node, Binary) and node.operator in COMPARISONS


def _is_size(expr: Expr) -> bool:
    from tcdsl.ir.expressions import index_variables

    return is_affine_index(expr) and not index_variables(expr)


def _data(expr: Expr) -> Expr:
    if isinstance(expr, Constant):
        return constant(expr.value, INTEGER, expr.span)
    if isinstance(expr, Cast) and expr.dtype == "int32" and expr.operand.dtype == "int64":
        expr = expr.operand  # an index variable or a size, whose number is exact
    return cast(expr, INTEGER, expr.span) if expr.dtype != INTEGER else expr
