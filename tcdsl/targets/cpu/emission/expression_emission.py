"""Expressions of generated code as LLVM instructions: typed scalars, or the lanes of vectors.

``and``, ``or`` and ``a if c else b`` evaluate what Python evaluates, and more where that does no harm.
Integers wrap. Only indices and the bounds of loops are exact, so that bounds of their parts say how small they can be.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcdsl.ir.dtypes import DTYPES
from tcdsl.targets.cpu.emission.emitted_functions import EmittedFunction, scalar
from tcdsl.targets.cpu.emission.vector_loops import VectorLoop, place_of
from tcdsl.targets.cpu.emission.walking import walk
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS
from tcdsl.targets.cpu.intrinsics.frame_memory import load
from tcdsl.targets.cpu.intrinsics.lanes import Lanes
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["ExpressionEmission"]

_NUMBERS = {"inf": math.inf, "nan": math.nan}

_OPERATORS: Mapping[type[ast.operator], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: FORMULAS["floor_div"],
    ast.Mod: FORMULAS["mod"],
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a.equals(b),
    ast.NotEq: lambda a, b: a.differs(b),
}


def _exact(operator: ast.operator, a: Scalar, b: Scalar) -> Scalar:
    # Where nothing wraps, the result is known never to be less than what its parts say.
    result = _OPERATORS[type(operator)](a, b)
    if a.least is None or b.least is None:
        return result
    match operator:
        case ast.Add():
            return result.never_less(a.least + b.least)
        case ast.Mult() if a.least >= 0 and b.least >= 0:
            return result.never_less(a.least * b.least)
        case ast.Sub() if b.value.text == str(b.least):
            return result.never_less(a.least - b.least)
    return result


class ExpressionEmission:
    """The values of a function that is being written; see `tcdsl.targets.cpu.emission.function_emission`."""

    def __init__(
        self,
        function: ir.Function,
        names: Mapping[str, Any],
        call: Callable[[ir.Builder, str, list[Any]], Any],
        functions: Mapping[str, EmittedFunction],
        flags: str,
        *,
        wrapping: bool,
    ) -> None:
        # Only where a name accumulates may terms change places: LLVM would make 0 of `2 * x - (x + x)`, also for NaN.
        self._accumulating = flags
        self._builder = ir.Builder(function.append_block(), flags.replace("reassoc ", ""), moving=not wrapping)
        self._values = {
            name: Scalar(self._builder, *given) if isinstance(given, tuple) else given for name, given in names.items()
        }
        self._places: dict[str, tuple[ir.Operand, ir.Type, str]] = {}
        #: Those of the loop around whose steps are made at once.
        self._lanes: Lanes | None = None
        #: The loop at hand, if nothing but its steps is made at once.
        self._steps: VectorLoop | None = None
        #: Whether the expression at hand is a position of a cell, or the bound of a loop.
        self._in_index = False
        #: How many tests of these steps stand around.
        self._tests = 0
        self._settled: frozenset[str] = frozenset()
        #: The cell that the statement at hand stores into, so that it can be read.
        self._cell = ""
        self._functions = functions
        self._wrapping = wrapping
        self._call_function = call

    def _scalar(self, node: ast.expr) -> Scalar:
        return scalar(self._builder, self._value(node))

    def _named(self, name: str, flags: str | None = None) -> Scalar:
        place, kind, dtype = self._places[name]
        return Scalar(self._builder, self._builder.load(kind, place), dtype, flags)

    def _positions(self, index: ast.expr) -> list[Scalar]:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return [scalar(self._builder, each) for each in self._indices(parts)]

    def _indices(self, parts: Sequence[ast.expr]) -> list[Any]:
        within, self._in_index = self._in_index, True
        values = [self._value(part) for part in parts]
        self._in_index = within
        return values

    def _value(self, node: ast.expr) -> Any:
        # A scalar or a buffer of the code, a tuple of such, or a number or text of Python's.
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name in self._places:
                    return self._named(name)
                if self._here is not None and not self._in_index and name == self._here.variable:
                    return self._here.numbers()
                return self._values[name] if name in self._values else _NUMBERS[name]
            case ast.Tuple(elts=elements):
                return [self._value(element) for element in elements]
            case ast.Subscript(value=buffer, slice=index):
                return self._load(buffer, index)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._scalar(operand)
            case ast.BinOp(left=left, op=operator, right=right):
                first = self._scalar(left)
                return self._operation(operator, first, self._scalar(right))
            case ast.Compare(left=left, ops=[comparison], comparators=[right]):
                first = self._scalar(left)
                second = self._scalar(right)
                _require_one_type(first, second)
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
        _require_one_type(left, right)
        right = left.lift(right)
        left = left.in_lanes(right.lanes)
        exact = self._in_index and not self._wrapping and left.dtype == "int64"
        return _exact(operator, left, right) if exact else _OPERATORS[type(operator)](left, right)

    def _logical(self, conjunction: bool, parts: Sequence[ast.expr]) -> Scalar:
        first = self._scalar(parts[0])
        if len(parts) == 1:
            return first
        known = first.constant(not conjunction)
        if self._here is not None or all(map(self._is_quick, parts[1:])):
            if self._here is not None and any(map(_reads, parts[1:])):
                test = first if conjunction else ~first
                rest = self._where(test, lambda: self._logical(conjunction, parts[1:]))
            else:
                rest = self._logical(conjunction, parts[1:])
            return first.choose(rest, known) if conjunction else first.choose(known, rest)
        builder = self._builder
        before, following, after = builder.block, builder.append_block(), builder.append_block()
        ways = (following, after) if conjunction else (after, following)
        builder.cbranch(first.value, *ways)
        builder.enter(following)
        rest, end = self._logical(conjunction, parts[1:]), builder.block
        builder.branch(after)
        builder.leave(before)
        builder.go_on(after)
        result = builder.phi(llvm_type("bool"))
        result.add_incoming(known.value, before)
        result.add_incoming(rest.value, end)
        return first.like(result)

    def _choice(self, test: Scalar, body: ast.expr, orelse: ast.expr) -> Scalar:
        quick = self._is_quick(body) and self._is_quick(orelse)
        if test.lanes and not quick:
            first = self._where(test, lambda: self._scalar(body))
            return test.choose(first, self._where(~test, lambda: self._scalar(orelse)))
        return self._either(test, lambda: self._scalar(body), lambda: self._scalar(orelse), quick)

    def _is_quick(self, node: ast.expr) -> bool:
        # Whether it may be evaluated for nothing.
        match node:
            case ast.Constant() | ast.Name():
                return True
            case ast.Subscript():
                return bool(self._cell) and ast.dump(node) == self._cell
            case ast.UnaryOp(operand=operand):
                return self._is_quick(operand)
            case ast.Compare(left=left, comparators=[right]):
                return self._is_quick(left) and self._is_quick(right)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self._is_quick(left) and self._is_quick(right)
            case ast.Call(func=ast.Name(id=function), args=[ast.Constant()]):
                return function in DTYPES
        return False

    def _either(self, test: Scalar, yes: Callable[[], Scalar], no: Callable[[], Scalar], quick: bool) -> Scalar:
        builder = self._builder
        if quick:
            first, second = yes(), no()
            _require_one_type(first, second)
            return test.choose(first, second)
        before, taken, other, after = builder.block, *(builder.append_block() for _ in range(3))
        builder.cbranch(test.value, taken, other)
        ends = []
        for block, write in ((taken, yes), (other, no)):
            builder.enter(block)
            written = write()
            if self._here is not None and not self._in_index:
                written = written.in_lanes(self._here.count)
            ends.append((written, builder.block))
            builder.branch(after)
            builder.leave(before)
        builder.go_on(after)
        (first, _), (second, _) = ends
        _require_one_type(first, second)
        result = builder.phi(first.value.type)
        for value, block in ends:
            result.add_incoming(value.value, block)
        return first.like(result)

    @property
    def _here(self) -> Lanes | None:
        # Those of the loop at hand, if nothing but its steps is made at once.
        return None if self._steps is None else self._lanes

    def _load(self, buffer: ast.expr, index: ast.expr) -> Scalar:
        memory, positions = self._value(buffer), self._positions(index)
        lanes = self._lanes_of(index)
        certain = True
        if self._steps is not None and self._tests:
            certain = place_of(ast.Subscript(buffer, index)) in self._steps.certain
        if lanes is not None:
            return lanes.load(memory, positions, certain=certain)
        if not certain and self._lanes is not None:
            return self._lanes.load_one(memory, positions)
        alone = self._steps is not None
        in_lanes = self._lanes is not None and not alone
        return load(self._builder, memory, positions, unchanged=alone, in_lanes=in_lanes)

    def _lanes_of(self, index: ast.expr) -> Lanes | None:
        # The lanes in which a cell is another one.
        lanes = self._lanes
        if lanes is None:
            return None
        named = any(isinstance(node, ast.Name) and node.id == lanes.variable for node in walk(index))
        return lanes if named else None

    def _where(self, test: Scalar, write: Callable[[], Any]) -> Any:
        # What happens in the lanes where ``test`` holds.
        assert self._lanes is not None
        lanes = self._lanes
        self._lanes = lanes.where(test)
        self._tests += 1
        written = write()
        self._tests -= 1
        self._lanes = lanes
        return written


def _reads(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Subscript) for part in walk(node))


def _require_one_type(left: Scalar, right: Scalar) -> None:
    if left.dtype != right.dtype:
        raise TypeError(f"operands of types {left.dtype} and {right.dtype}")
