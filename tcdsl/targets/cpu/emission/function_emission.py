"""One function of generated code as LLVM instructions: loops, branches, assignments, expressions of typed scalars.

Every name has one type, the operands of an operator have the same one, and nothing is promoted: the printer
(`tcdsl.targets.cpu.printing`) sees to that. Names that are assigned again are places on the stack, which LLVM turns
into registers. ``and``, ``or`` and ``a if c else b`` evaluate what Python evaluates, and more where that does no harm.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcdsl.ir.dtypes import is_floating
from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, EmittedFunction, scalar
from tcdsl.targets.cpu.emission.expression_emission import ExpressionEmission
from tcdsl.targets.cpu.emission.nest_notes import VectorForm
from tcdsl.targets.cpu.emission.rounds import InterruptibleRounds
from tcdsl.targets.cpu.emission.settled_names import settled_names
from tcdsl.targets.cpu.emission.vector_loops import VectorLoop, vector_loop
from tcdsl.targets.cpu.emission.vector_steps import VectorSum, counted, once, plan_of, whole_blocks
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, BufferKind, BufferValue, store
from tcdsl.targets.cpu.intrinsics.lanes import Lanes
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["FunctionEmission"]

# LLVM takes half the time for a loop of one vector at a time that it need not choose, which has no second one for what
# is left over.
_SHORT = ('!{!"llvm.loop.vectorize.width", i32 8}', '!{!"llvm.loop.interleave.count", i32 1}')


class FunctionEmission(ExpressionEmission):
    """``FunctionEmission(function, names, call).body(statements)`` writes the function.

    ``names`` gives the parameters their values, scalars as pairs of a value and its type; ``functions`` are those that
    code is written for where they are called, and ``call(builder, name, arguments)`` writes a call of another one of
    the module. In code of words, which may say ``while`` too, indices wrap like all integers: ``wrapping``. ``flags``
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
        form: VectorForm | None = None,
    ) -> None:
        super().__init__(function, names, call, functions, flags, wrapping=wrapping)
        #: Whether LLVM has to improve loops.
        self.has_plain_loops = False
        self._form = form
        #: The rounds of its loops that look for interrupts, if there are any.
        self._rounds: InterruptibleRounds | None = None

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
            value = value.in_lanes(self._lanes.count)
        if name not in self._places:
            self._places[name] = self._builder.place(value.value.type), value.value.type, value.dtype
        place, kind, dtype = self._places[name]
        if dtype != value.dtype or kind != value.value.type:
            raise TypeError(f"{name} is {dtype} and is assigned {value.dtype}")
        if self._here is not None and self._here.mask is not None:
            value = value.like(self._here.mask, "bool").choose(value, self._named(name))
        self._builder.store(value.value, place)

    def _store(self, buffer: ast.expr, index: ast.expr, value: Scalar) -> None:
        memory, positions = self._value(buffer), self._positions(index)
        lanes = self._lanes_of(index)
        if lanes is None:
            store(self._builder, memory, positions, value)
        else:
            lanes.store(memory, positions, value)

    def _loop(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        rounds = node.iter
        assert isinstance(rounds, ast.Call)
        if _is_call_of("lanes", rounds):
            self._at_once(node.target.id, rounds.args, node.body)
            return
        interrupted, seldom = _is_call_of("rounds", rounds), _is_call_of("seldom", rounds)
        frame = self._scalar(rounds.args[0]) if interrupted else None
        if interrupted or seldom:
            rounds = rounds.args[-1]
            assert isinstance(rounds, ast.Call)
        bounds = self._indices(rounds.args)
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        assert isinstance(step, int)
        first, last = scalar(self._builder, start), scalar(self._builder, stop)
        steps = self._vectors(node, bounds, seldom=seldom)
        if frame is None:
            self._steps_of(node, node.body, steps, first, last, step, "<" if step > 0 else ">", seldom=seldom)
            return
        assert step == 1
        self._rounds = found = self._rounds or InterruptibleRounds(self._builder)
        condition, body = _condition(node)
        found.loop(
            frame.value,
            first,
            last,
            None if condition is None else lambda: self._scalar(condition).value,
            lambda begin, end, going_on: self._steps_of(node, body, steps, begin, end, 1, "!=", going_on=going_on),
        )

    def _vectors(self, node: ast.For, bounds: Sequence[Any], *, seldom: bool) -> VectorLoop | None:
        # What is known of a loop whose steps may be lanes.
        if self._lanes is not None or any(isinstance(each, ast.For) for each in _within(node.body)):
            return None
        found = None
        if self._form is not None:
            masks = self._form.masks
            found = vector_loop(node, bounds, self._settled, self._kind_of, self._sum_type, masks=masks)
        self.has_plain_loops = self.has_plain_loops or (found is None and not seldom)
        return found

    def _steps_of(
        self,
        node: ast.For,
        body: Sequence[ast.stmt],
        vectors: VectorLoop | None,
        first: Scalar,
        last: Scalar,
        step: int,
        order: str,
        *,
        seldom: bool = False,
        going_on: Callable[[ir.Operand], None] | None = None,
    ) -> None:
        # ``order`` is that of the next step and the last one; where it is "!=", LLVM sees the number of steps at once.
        # ``going_on`` writes at the end of a step what leaves the loop before the next one.
        if vectors is not None:
            self._in_vectors(node, vectors, first, last, seldom=seldom)
            return
        assert isinstance(node.target, ast.Name)
        builder = self._builder
        # The test stands behind the body, where LLVM would put it.
        start, head, after = (builder.append_block() for _ in range(3))
        builder.cbranch(builder.compare_signed(order, first.value, last.value), start, after)
        builder.enter(start)
        builder.branch(head)
        builder.enter(head, loop=True)
        counter = builder.phi(WORD)
        counter.add_incoming(first.value, start)
        if step > 0:
            counter.least = first.least
        self._assign(node.target.id, first.like(counter))
        self._block(body)
        if not builder.block.is_terminated:
            following = builder.add(counter, ir.ConstantOperand(WORD, step), steady=True)
            if going_on is not None:
                going_on(following)
            counter.add_incoming(following, builder.block)
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

    def _kind_of(self, name: str) -> BufferKind | None:
        value = self._values.get(name)
        return value.kind if isinstance(value, BufferValue) else None

    def _sum_type(self, name: str) -> str | None:
        # Of what may be added up in any order.
        dtype = self._places[name][2] if name in self._places else "bool"
        return None if dtype == "bool" or (is_floating(dtype) and "reassoc" not in self._accumulating) else dtype

    def _in_vectors(self, node: ast.For, loop: VectorLoop, first: Scalar, last: Scalar, *, seldom: bool) -> None:
        assert self._form is not None
        assert isinstance(node.target, ast.Name)
        builder, plan, variable = self._builder, plan_of(loop, self._form), node.target.id
        start, after = builder.append_block(), builder.append_block()
        builder.cbranch(builder.compare_signed("<", first.value, last.value), start, after)
        builder.enter(start)
        before = dict(self._places)
        sums = {
            name: VectorSum(self._named(name), operation, plan.lanes, plan.vectors)
            for name, operation in loop.sums.items()
        }
        self._steps = loop
        # One loop is enough for what runs seldom.
        end, rest = (first, True) if seldom else whole_blocks(first, last, plan.lanes * plan.vectors)

        def vectors(at: Scalar, count: int, stop: Scalar | None) -> None:
            for k in range(count):
                for name, each in sums.items():
                    self._places[name] = each.places[k], each.kind, before[name][2]
                position = at.like(builder.add(at.value, ir.ConstantOperand(WORD, k * plan.lanes), steady=True))
                self._lanes = Lanes.of(builder, variable, plan.lanes, position, stop)
                self._values[variable] = position
                self._block(node.body)
            self._lanes = None

        if not seldom:
            counted(builder, first, end, plan.lanes * plan.vectors, lambda at: vectors(at, plan.vectors, None))
        if rest and self._form.masks and plan.vectors == 1 and not seldom:
            once(builder, end, last, lambda at: vectors(at, 1, last))
        elif rest and self._form.masks:
            counted(builder, end, last, plan.lanes, lambda at: vectors(at, 1, last))
        elif rest and plan.vectors > 1:
            whole, rest = whole_blocks(end, last, plan.lanes)
            counted(builder, end, whole, plan.lanes, lambda at: vectors(at, 1, None))
            end = whole
        self._steps = None
        self._places.update(before)
        for name, each in sums.items():
            builder.store(each.total(self._accumulating).value, self._places[name][0])
        if rest and not self._form.masks:

            def step(at: Scalar) -> None:
                self._values[variable] = at
                self._block(node.body)

            counted(builder, end, last, 1, step)
        builder.branch(after)
        builder.leave(after)

    def _while(self, node: ast.While) -> None:
        builder = self._builder
        self.has_plain_loops = True
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
        if test.lanes:
            self._where(test, lambda: self._block(node.body))
            if node.orelse:
                self._where(~test, lambda: self._block(node.orelse))
            return
        before, taken, after = builder.block, builder.append_block(), builder.append_block()
        other = builder.append_block() if node.orelse else after
        # What ends the call is unlikely.
        weights = (1, 99) if isinstance(node.body[-1], ast.Return) else None
        builder.cbranch(test.value, taken, other, weights=weights)
        for block, statements in ((taken, node.body), (other, node.orelse)):
            if block is not after:
                builder.enter(block)
                self._block(statements)
                if not builder.block.is_terminated:
                    builder.branch(after)
                builder.leave(before)
        builder.go_on(after)


def _is_call_of(name: str, node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _within(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for each in statements:
        yield each
        if isinstance(each, ast.For | ast.While | ast.If):
            yield from _within(each.body)
            yield from _within(each.orelse)


def _condition(node: ast.For) -> tuple[ast.expr | None, Sequence[ast.stmt]]:
    # What must hold for a round to run, and what it does.
    match node.body:
        case [ast.If(test=ast.UnaryOp(op=ast.Not(), operand=condition), body=[ast.Break()]), *rest]:
            return condition, rest
    return None, node.body
