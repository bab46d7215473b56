"""One function of generated code as LLVM instructions: loops, branches, assignments, expressions of typed scalars.

Every name has one type, the operands of an operator have the same one, and nothing is promoted: the printer
(`tcdsl.targets.cpu.printing`) sees to that. Names that are assigned again are places on the stack, which LLVM turns
into registers. ``and``, ``or`` and ``a if c else b`` evaluate what Python evaluates, and more where that does no harm.
int64 does not overflow, which lets LLVM widen and step indices; the other integers wrap.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcdsl.ir.dtypes import DTYPES
from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, EmittedFunction, scalar
from tcdsl.targets.cpu.emission.settled_names import settled_names
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, BufferValue, load, store
from tcdsl.targets.cpu.intrinsics.lanes import Lanes, is_vector
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
    result = a.like(getattr(a.builder, operation)(a.value, b.value, steady=True))
    if a.least is None or b.least is None:
        return result
    if operation == "add":
        return result.never_less(a.least + b.least)
    if operation == "mul" and a.least >= 0 and b.least >= 0:
        return result.never_less(a.least * b.least)
    if operation == "sub" and b.value.text == str(b.least):
        return result.never_less(a.least - b.least)
    return result


def _below(a: Scalar, b: Scalar, quotient: Scalar) -> Scalar:
    # How far the truncated quotient lies above the one rounded down; the printer divides by positive constants only.
    return (a - quotient * b < 0).choose(a.constant(1), 0)


# LLVM takes half the time for a loop of one vector at a time that it need not choose, which has no second one for what
# is left over.
_SHORT = ('!{!"llvm.loop.vectorize.width", i32 8}', '!{!"llvm.loop.interleave.count", i32 1}')


class FunctionEmission:
    """``FunctionEmission(function, names, call).body(statements)`` writes the function.

    ``names`` gives the parameters their values, scalars as pairs of a value and its type; ``functions`` are those that
    code is written for where they are called, and ``call(builder, name, arguments)`` writes a call of another one of
    the module. int64 wraps only where ``wrapping`` says so, in code of words, which may say ``while`` too. ``flags``
    are the liberties of floating-point operations.
    """

    def __init__(
        self,
        function: ir.Function,
        names: Mapping[str, Any],
        call: Callable[[ir.Builder, str, list[Any]], Any],
        functions: Mapping[str, EmittedFunction] = FUNCTIONS,
        *,
        flags: str = "",
        wrapping: bool = False,
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
        self._settled: frozenset[str] = frozenset()
        #: The cell that the statement at hand stores into, so that it can be read.
        self._cell = ""
        self._functions = functions
        self._wrapping = wrapping
        #: Where the loops around end.
        self._ends: list[ir.BasicBlock] = []
        self._operators = _OPERATORS if wrapping else {**_OPERATORS, **_INDEX_OPERATORS}
        self._call_function = call

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Write ``statements`` and the function's end."""
        self._settled = settled_names(statements)
        self._block(statements)
        if self._builder.block.is_terminated:
            return
        if isinstance(self._builder.function.kind.result, ir.VoidType):
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
                self._cell = ast.dump(ast.Subscript(buffer, index, ast.Load()))
                written = self._scalar(value)
                self._cell = ""
                self._store(buffer, index, written)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                held = self._named(name, self._accumulating)
                self._assign(name, self._operation(operator, held, self._scalar(value)))
            case ast.AugAssign(target=ast.Subscript(value=buffer, slice=index), op=operator, value=value):
                held = self._load(buffer, index)
                self._store(buffer, index, self._operation(operator, held, self._scalar(value)))
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
        if name in self._settled:
            self._values[name] = value
            return
        if self._lanes is not None and value.floating:
            value = self._lanes.spread(value)
        if name not in self._places:
            self._places[name] = self._builder.place(value.value.type), value.value.type, value.dtype
        place, kind, dtype = self._places[name]
        if dtype != value.dtype or kind != value.value.type:
            raise TypeError(f"{name} is {dtype} and is assigned {value.dtype}")
        self._builder.store(value.value, place)

    def _load(self, buffer: ast.expr, index: ast.expr) -> Scalar:
        memory, positions = self._value(buffer), self._positions(index)
        lanes = self._lanes_of(index)
        return load(self._builder, memory, positions) if lanes is None else lanes.load(memory, positions)

    def _store(self, buffer: ast.expr, index: ast.expr, value: Scalar) -> None:
        memory, positions = self._value(buffer), self._positions(index)
        lanes = self._lanes_of(index)
        if lanes is None:
            store(self._builder, memory, positions, value)
        else:
            lanes.store(memory, positions, value)

    def _lanes_of(self, index: ast.expr) -> Lanes | None:
        # The lanes in which a cell is another one.
        lanes = self._lanes
        if lanes is None:
            return None
        named = any(isinstance(node, ast.Name) and node.id == lanes.variable for node in ast.walk(index))
        return lanes if named else None

    def _loop(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        rounds = node.iter
        assert isinstance(rounds, ast.Call)
        if _is_call_of("lanes", rounds):
            self._at_once(node.target.id, rounds.args, node.body)
            return
        seldom = _is_call_of("seldom", rounds)
        if seldom:
            (rounds,) = rounds.args
            assert isinstance(rounds, ast.Call)
        bounds = [self._value(argument) for argument in rounds.args]
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        assert isinstance(step, int)
        builder = self._builder
        first, last = scalar(builder, start), scalar(builder, stop)
        order = "<" if step > 0 else ">"
        # The test stands behind the body, where LLVM would put it; it does so by itself where a body has other ends.
        ahead = _has_break(node.body)
        start, head, after = (builder.append_block() for _ in range(3))
        if ahead:
            builder.branch(start)
        else:
            builder.cbranch(builder.compare_signed(order, first.value, last.value), start, after)
        builder.enter(start)
        builder.branch(head)
        builder.enter(head, loop=True)
        counter = builder.phi(WORD)
        counter.add_incoming(first.value, start)
        if step > 0:
            counter.least = first.least
        if ahead:
            body = builder.append_block()
            builder.cbranch(builder.compare_signed(order, counter, last.value), body, after)
            builder.go_on(body)
        self._assign(node.target.id, first.like(counter))
        self._ends.append(after)
        self._block(node.body)
        self._ends.pop()
        if not builder.block.is_terminated:
            following = builder.add(counter, ir.ConstantOperand(WORD, step), steady=True)
            counter.add_incoming(following, builder.block)
            if ahead:
                builder.branch(head)
            else:
                note = f", !llvm.loop {builder.module.own_note(*map(builder.module.note, _SHORT))}" if seldom else ""
                builder.cbranch(builder.compare_signed(order, following, last.value), head, after, note)
        builder.leave(start)
        builder.leave(after)

    def _at_once(self, variable: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        # The steps of a loop, in lanes: its variable is that of the first one.
        first, count, *stop = map(self._value, bounds)
        start = scalar(self._builder, first)
        self._assign(variable, start)
        end = scalar(self._builder, stop[0]) if stop else None
        self._lanes = Lanes.of(self._builder, variable, count, start, end)
        self._block(body)
        self._lanes = None

    def _while(self, node: ast.While) -> None:
        builder = self._builder
        head, body, after = (builder.append_block() for _ in range(3))
        builder.branch(head)
        builder.enter(head, loop=True)
        builder.cbranch(self._scalar(node.test).value, body, after)
        builder.enter(body)
        self._block(node.body)
        if not builder.block.is_terminated:
            builder.branch(head)
        builder.leave(head)
        builder.leave(after)

    def _branch(self, node: ast.If) -> None:
        builder = self._builder
        test = self._scalar(node.test)
        before, taken, after = builder.block, builder.append_block(), builder.append_block()
        other = builder.append_block() if node.orelse else after
        builder.cbranch(test.value, taken, other)
        for block, statements in ((taken, node.body), (other, node.orelse)):
            if block is not after:
                builder.enter(block)
                self._block(statements)
                if not builder.block.is_terminated:
                    builder.branch(after)
                builder.leave(before)
        builder.go_on(after)

    # -- expressions

    def _scalar(self, node: ast.expr) -> Scalar:
        return scalar(self._builder, self._value(node))

    def _named(self, name: str, flags: str | None = None) -> Scalar:
        place, kind, dtype = self._places[name]
        return Scalar(self._builder, self._builder.load(kind, place), dtype, flags)

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
                return self._load(buffer, index)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                given = self._value(operand)
                if isinstance(given, Scalar) and is_vector(given):
                    return self._operation(ast.Sub(), given.constant(-0.0), given)
                return -given
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
        if self._lanes is not None and (is_vector(left) or is_vector(right)):
            left, right = self._lanes.spread(left), self._lanes.spread(right)
        return self._operators[type(operator)](left, right)

    def _logical(self, conjunction: bool, parts: Sequence[ast.expr]) -> Scalar:
        first = self._scalar(parts[0])
        if len(parts) == 1:
            return first
        known = first.constant(not conjunction)
        if all(map(self._is_quick, parts[1:])):
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
            ends.append((write(), builder.block))
            builder.branch(after)
            builder.leave(before)
        builder.go_on(after)
        (first, _), (second, _) = ends
        _require_one_type(first, second)
        result = builder.phi(llvm_type(first.dtype))
        for value, block in ends:
            result.add_incoming(value.value, block)
        return first.like(result)


def _is_call_of(name: str, node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _has_break(statements: Sequence[ast.stmt]) -> bool:
    # Of the loop with this body, or of one in it.
    for each in statements:
        if isinstance(each, ast.Break):
            return True
        if isinstance(each, ast.For | ast.While | ast.If) and (_has_break(each.body) or _has_break(each.orelse)):
            return True
    return False


def _require_one_type(left: Scalar, right: Scalar) -> None:
    if left.dtype != right.dtype:
        raise TypeError(f"operands of types {left.dtype} and {right.dtype}")
