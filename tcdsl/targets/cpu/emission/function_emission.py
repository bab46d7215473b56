"""One function of generated code as LLVM instructions: loops, branches, assignments, expressions of typed scalars.

Every name has one type, the operands of an operator have the same one, and nothing is promoted: the printer
(`tcdsl.targets.cpu.printing`) sees to that. Names are places on the stack, which LLVM turns into registers. ``and``,
``or`` and ``a if c else b`` evaluate what Python evaluates. int64 does not overflow, which lets LLVM widen and step
indices; the other integers wrap.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, EmittedFunction, scalar
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, BufferValue, load, store
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["FunctionEmission"]

_NUMBERS = {"inf": math.inf, "nan": math.nan}

_OPERATORS: Mapping[type[ast.operator], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: (quotient := a.quotient(b)) - _below(a, b, quotient),
    ast.Mod: lambda a, b: (rest := a.remainder(b)) + (rest < 0).choose(b, 0),
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}

_INDEX_OPERATORS: Mapping[type[ast.operator], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Add: lambda a, b: _steady(a, b, "add") if a.dtype == "int64" else a + b,
    ast.Sub: lambda a, b: _steady(a, b, "sub") if a.dtype == "int64" else a - b,
    ast.Mult: lambda a, b: _steady(a, b, "mul") if a.dtype == "int64" else a * b,
}

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a.equals(b),
    ast.NotEq: lambda a, b: a.differs(b),
}


def _steady(a: Scalar, b: Scalar, operation: str) -> Scalar:
    # Indices: without overflow.
    return a.like(getattr(a.builder, operation)(a.value, b.value, flags=("nsw",)))


def _below(a: Scalar, b: Scalar, quotient: Scalar) -> Scalar:
    # How far the truncated quotient lies above the one rounded down; the printer divides by positive constants only.
    return (a - quotient * b < 0).choose(a.constant(1), 0)


class FunctionEmission:
    """``FunctionEmission(function, names, call).body(statements)`` writes the function.

    ``names`` gives the parameters their values; ``functions`` are those that code is written for where they are
    called, and ``call(builder, name, arguments)`` writes a call of another one of the module. int64 wraps only where
    ``wrapping`` says so, in code of words, which may say ``while`` too.
    """

    def __init__(
        self,
        function: ir.Function,
        names: Mapping[str, Any],
        call: Callable[[ir.IRBuilder, str, list[Any]], Any],
        functions: Mapping[str, EmittedFunction] = FUNCTIONS,
        *,
        wrapping: bool = False,
    ) -> None:
        self._builder = ir.IRBuilder(function.append_basic_block("entry"))
        self._values = {
            name: Scalar(self._builder, given.value, given.dtype) if isinstance(given, Scalar) else given
            for name, given in names.items()
        }
        self._places: dict[str, tuple[ir.Value, str]] = {}
        self._functions = functions
        self._wrapping = wrapping
        #: Where the loops around end.
        self._ends: list[ir.Block] = []
        self._operators = _OPERATORS if wrapping else {**_OPERATORS, **_INDEX_OPERATORS}
        self._call_function = call

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Write ``statements`` and the function's end."""
        self._block(statements)
        if self._builder.block.is_terminated:
            return
        if isinstance(self._builder.function.function_type.return_type, ir.VoidType):
            self._builder.ret_void()
        else:
            self._builder.unreachable()

    # -- statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, self._value(value))
            case ast.Assign(targets=[ast.Subscript(value=buffer, slice=index)], value=value):
                written = self._scalar(value)
                store(self._builder, self._value(buffer), self._positions(index), written)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                held = self._named(name)
                self._assign(name, self._operation(operator, held, self._scalar(value)))
            case ast.AugAssign(target=ast.Subscript(value=buffer, slice=index), op=operator, value=value):
                memory, positions = self._value(buffer), self._positions(index)
                held = load(self._builder, memory, positions)
                store(self._builder, memory, positions, self._operation(operator, held, self._scalar(value)))
            case ast.For():
                self._loop(node)
            case ast.While() if self._wrapping:
                self._while(node)
            case ast.If():
                self._branch(node)
            case ast.Expr(value=ast.Call()):
                self._value(node.value)
            case ast.Break():
                self._builder.branch(self._ends[-1])
            case ast.Return(value=None):
                self._builder.ret_void()
            case ast.Return(value=ast.expr() as value):
                self._builder.ret(self._scalar(value).value)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise TypeError(f"not a statement of generated code: {ast.unparse(node)}")

    def _assign(self, name: str, value: Any) -> None:
        if isinstance(value, BufferValue):
            self._values[name] = value
            return
        value = scalar(self._builder, value)
        place, dtype = self._place(name, value.dtype)
        if dtype != value.dtype:
            raise TypeError(f"{name} is {dtype} and is assigned {value.dtype}")
        self._builder.store(value.value, place)

    def _place(self, name: str, dtype: str) -> tuple[ir.Value, str]:
        if name not in self._places:
            with self._builder.goto_entry_block():
                self._places[name] = self._builder.alloca(llvm_type(dtype), name=name), dtype
        return self._places[name]

    def _loop(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self._value(argument) for argument in node.iter.args]
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        assert isinstance(step, int)
        builder = self._builder
        first, last = scalar(builder, start), scalar(builder, stop)
        before = builder.block
        head, body, after = (builder.append_basic_block(f"{node.target.id}.{part}") for part in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(WORD, node.target.id)
        counter.add_incoming(first.value, before)
        builder.cbranch(builder.icmp_signed("<" if step > 0 else ">", counter, last.value), body, after)
        builder.position_at_end(body)
        self._assign(node.target.id, first.like(counter))
        self._ends.append(after)
        self._block(node.body)
        self._ends.pop()
        if not builder.block.is_terminated:
            counter.add_incoming(builder.add(counter, ir.Constant(WORD, step), flags=("nsw",)), builder.block)
            builder.branch(head)
        builder.position_at_end(after)

    def _while(self, node: ast.While) -> None:
        builder = self._builder
        head, body, after = (builder.append_basic_block(f"while.{part}") for part in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(self._scalar(node.test).value, body, after)
        builder.position_at_end(body)
        self._block(node.body)
        if not builder.block.is_terminated:
            builder.branch(head)
        builder.position_at_end(after)

    def _branch(self, node: ast.If) -> None:
        builder = self._builder
        test = self._scalar(node.test)
        taken, other, after = (builder.append_basic_block(name) for name in ("then", "else", "endif"))
        builder.cbranch(test.value, taken, other)
        for block, statements in ((taken, node.body), (other, node.orelse)):
            builder.position_at_end(block)
            self._block(statements)
            if not builder.block.is_terminated:
                builder.branch(after)
        builder.position_at_end(after)

    # -- expressions

    def _scalar(self, node: ast.expr) -> Scalar:
        return scalar(self._builder, self._value(node))

    def _named(self, name: str) -> Scalar:
        place, dtype = self._places[name]
        return Scalar(self._builder, self._builder.load(place), dtype)

    def _positions(self, index: ast.expr) -> list[Scalar]:
        return [self._scalar(part) for part in (index.elts if isinstance(index, ast.Tuple) else [index])]

    def _value(self, node: ast.expr) -> Any:
        # A scalar or a buffer of the code, a tuple of such, or a number or text of Python's.
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name in self._places:
                    return self._named(name)
                return self._values[name] if name in self._values else _NUMBERS[name]
            case ast.Tuple(elts=elements):
                return [self._value(element) for element in elements]
            case ast.Subscript(value=buffer, slice=index):
                return load(self._builder, self._value(buffer), self._positions(index))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                given = self._value(operand)
                return -given
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._scalar(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                first = self._scalar(left)
                return self._operation(operator, first, self._scalar(right))
            case ast.Compare(left=left, ops=[comparison], comparators=[right]):
                first = self._scalar(left)
                second = self._scalar(right)
                _require_one_type(first, second, node)
                return _COMPARISONS[type(comparison)](first, second)
            case ast.BoolOp(op=operator, values=parts):
                return self._logical(isinstance(operator, ast.And), parts)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(self._scalar(test), body, orelse)
            case ast.Call(func=ast.Name(id=function), args=arguments):
                given = [self._value(argument) for argument in arguments]
                write = self._functions.get(function)
                return write(self._builder, *given) if write else self._call_function(self._builder, function, given)
        raise TypeError(f"not an expression of generated code: {ast.unparse(node)}")

    def _operation(self, operator: ast.operator, left: Scalar, right: Scalar) -> Scalar:
        _require_one_type(left, right, operator)
        return self._operators[type(operator)](left, right)

    def _logical(self, conjunction: bool, parts: Sequence[ast.expr]) -> Scalar:
        builder = self._builder
        after = builder.append_basic_block("known")
        decided = []
        for part in parts[:-1]:
            value = self._scalar(part)
            decided.append(builder.block)
            following = builder.append_basic_block("and" if conjunction else "or")
            builder.cbranch(value.value, *((following, after) if conjunction else (after, following)))
            builder.position_at_end(following)
        last = self._scalar(parts[-1])
        end = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        result = builder.phi(llvm_type("bool"))
        for block in decided:
            result.add_incoming(ir.Constant(llvm_type("bool"), int(not conjunction)), block)
        result.add_incoming(last.value, end)
        return last.like(result)

    def _choice(self, test: Scalar, body: ast.expr, orelse: ast.expr) -> Scalar:
        builder = self._builder
        taken, other, after = (builder.append_basic_block(name) for name in ("chosen", "otherwise", "choice"))
        builder.cbranch(test.value, taken, other)
        ends = []
        for block, part in ((taken, body), (other, orelse)):
            builder.position_at_end(block)
            ends.append((self._scalar(part), builder.block))
            builder.branch(after)
        builder.position_at_end(after)
        (first, _), (second, _) = ends
        _require_one_type(first, second, body)
        result = builder.phi(llvm_type(first.dtype))
        for value, block in ends:
            result.add_incoming(value.value, block)
        return first.like(result)


def _require_one_type(left: Scalar, right: Scalar, node: ast.AST) -> None:
    if left.dtype != right.dtype:
        raise TypeError(f"operands of types {left.dtype} and {right.dtype}: {ast.dump(node)}")
