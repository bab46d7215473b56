"""Kernels, executed node by node in plain Python: what generated code must do, without generating any.

It is the oracle between lowering and code generation, and how lowering is tested on its own. It is strict: an access
out of range fails even where Python or NumPy would wrap around, temporaries start with garbage, and the iterations of
parallel and vector loops run in any order that the caller asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tcdsl.errors import DataIndexError, Diagnostic, ShapeError
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.dtypes import WIDE_INTEGERS, compute_dtype, is_floating
from tcdsl.ir.exact import INDEX_ARITHMETIC
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, Local, Read, SizeValue
from tcdsl.ir.primitives import LAZY, PRIMITIVES
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Buffer,
    BufferView,
    Check,
    Define,
    Kernel,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    ProcedureCall,
    Rounds,
    Store,
    Update,
)
from tcdsl.lowering.loopir.point_code import UNIQUE_AXIS

__all__ = ["Execution", "execute"]

Order = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True, slots=True)
class Execution:
    """What a kernel computed: its outputs in order, the inputs as it left them, how often it wrote into each buffer."""

    outputs: list[np.ndarray]
    inputs: dict[str, np.ndarray]
    writes: dict[str, int]


def execute(kernel: Kernel, inputs: Sequence[Any], order: Order | None = None) -> Execution:
    """``execute(lower(program), [A, B])``: run ``kernel`` on copies of ``inputs``.

    ``order`` permutes the iterations of parallel and vector loops. Raises `DataIndexError` and `ShapeError` as checks
    demand, ``IndexError`` if the kernel itself is wrong.
    """
    program = kernel.program
    given = [np.array(array, dtype=tensor.dtype) for array, tensor in zip(inputs, program.inputs, strict=True)]
    sizes = bind_sizes(program, [array.shape for array in given])
    arrays = {tensor.name: array for tensor, array in zip(program.inputs, given, strict=True)}
    for buffer in kernel.buffers:
        if buffer.name not in arrays:
            arrays[buffer.name] = _garbage(buffer, sizes)
    machine = _Machine(kernel, arrays, sizes, order or (lambda steps: steps))
    readable = {buffer.name for buffer in kernel.buffers if buffer.kind == "input"}
    for name in readable:
        arrays[name].flags.writeable = False
    with np.errstate(all="ignore"):
        machine.steps(kernel.body)
    for name in readable:
        arrays[name].flags.writeable = True
    for target, source in kernel.updates:
        arrays[target][...] = arrays[source]
    names = [tensor.name for tensor in program.inputs]
    return Execution([arrays[name] for name in kernel.outputs], {name: arrays[name] for name in names}, machine.writes)


def _garbage(buffer: Buffer, sizes: Mapping[str, int]) -> np.ndarray:
    return _undefined(buffer.dtype, tuple(max(0, evaluate_size(extent, sizes)) for extent in buffer.shape))


def _undefined(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.full(shape, np.nan if is_floating(dtype) else 1, dtype)


class _Machine:
    """The state of an execution: memory, sizes, scalars and loop variables."""

    def __init__(self, kernel: Kernel, arrays: dict[str, np.ndarray], sizes: Mapping[str, int], order: Order) -> None:
        self.kernel = kernel
        self.arrays = arrays
        self.sizes = dict(sizes)
        self.order = order
        self.scalars: dict[str, Any] = {}
        self.functions: dict[int, Callable[[], Any]] = {}
        self.kept: list[Expr] = []  # no other expression gets their numbers
        self.writes = dict.fromkeys(arrays, 0)

    def steps(self, body: Sequence[Nest | Rounds]) -> None:
        """Run nests, with the loops among them."""
        for each in body:
            if isinstance(each, Rounds):
                self.rounds(each)
            else:
                self.scalars.clear()
                self.run(each.body)

    def rounds(self, loop: Rounds) -> None:
        begin = 0 if loop.begin is None else int(self.arrays[loop.begin])
        for number in range(begin, int(self.value(loop.count))):
            if loop.condition is not None and not self.arrays[loop.condition]:
                break
            self.sizes[loop.number] = number
            if loop.counter is not None:
                self.arrays[loop.counter][()] = number
            self.steps(loop.body)
            for one, other in loop.swaps:
                self.arrays[one], self.arrays[other] = self.arrays[other], self.arrays[one]

    def run(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            match node:
                case Loop():
                    steps = range(int(self.value(node.start)), int(self.value(node.stop)), node.step)
                    for step in steps if node.kind == "serial" else self.order(steps):
                        if node.condition is not None and not self.value(node.condition):
                            break
                        self.scalars[node.variable] = np.int64(step)
                        self.run(node.body)
                case Branch():
                    self.run(node.body if self.value(node.condition) else node.otherwise)
                case Define(name=name, value=value):
                    self.scalars[name] = self.value(value)
                case Accumulate(name=name, value=value):
                    self.scalars[name] = self.combined(node.accumulate, self.scalars[name], value)
                case Store(buffer=buffer, indices=indices, value=value):
                    result = self.value(value)
                    self.arrays[buffer][self.cell(buffer, indices)] = result
                    self.writes[buffer] += 1
                case Update(buffer=buffer, indices=indices, value=value):
                    cell = self.cell(buffer, indices)
                    array = self.arrays[buffer]
                    old = array[cell].astype(_computed_in(array.dtype))
                    array[cell] = self.combined(node.accumulate, old, value)
                    self.writes[buffer] += 1
                case Check():
                    self.check(node)
                case LocalBuffer(name=name, dtype=dtype, bounds=bounds):
                    self.arrays[name] = _undefined(dtype, self.local_shape(node, bounds))
                    self.writes.setdefault(name, 0)
                case ProcedureCall():
                    self.call(node)

    def local_shape(self, node: LocalBuffer, bounds: Sequence[int]) -> tuple[int, ...]:
        shape = tuple(max(0, int(self.value(extent))) for extent in node.shape)
        if len(shape) != len(bounds) or any(n > most for n, most in zip(shape, bounds, strict=True)):
            raise IndexError(f"{node.name} has the shape {shape}, more than {tuple(bounds)}")
        return shape

    def call(self, node: ProcedureCall) -> None:
        procedure = next(each for each in self.kernel.procedures if each.name == node.procedure)
        views = [self.view(view) for view in node.views]
        for k, written in enumerate(views[len(node.reads) :], len(node.reads)):
            if any(np.shares_memory(written, other) for j, other in enumerate(views) if j != k):
                raise IndexError(f"{node.views[k].buffer} shares cells with another view of {node.procedure}")
        sizes: dict[str, int] = {}
        for parameter, array in zip(procedure.parameters, views, strict=True):
            for size, extent in zip(parameter.shape, array.shape, strict=True):
                known = sizes.setdefault(size.name, extent) if isinstance(size, SizeValue) else None
                if (evaluate_size(size, sizes) if known is None else known) != extent or array.dtype != parameter.dtype:
                    raise IndexError(f"{parameter.name} of {node.procedure}: {array.dtype}{list(array.shape)}")
            array.flags.writeable &= parameter.kind == "update"
        arrays = {parameter.name: array for parameter, array in zip(procedure.parameters, views, strict=True)}
        inner = _Machine(self.kernel, arrays, sizes, self.order)
        inner.run(procedure.body)
        for parameter, view in zip(procedure.parameters, node.views, strict=True):
            self.writes[view.buffer] += inner.writes[parameter.name]

    def view(self, view: BufferView) -> np.ndarray:
        array, box = self.arrays[view.buffer], []
        for start, extent, cells in zip(view.starts, view.extents, array.shape, strict=True):
            first = int(self.value(start))
            count = 1 if extent is None else max(0, int(self.value(extent)))
            if count and not 0 <= first <= first + count <= cells:
                raise IndexError(f"{view.buffer} has {cells} cells along an axis, not {first} .. {first + count}")
            box.append(first if extent is None else slice(first, first + count))
        return array[(*box, ...)]

    def combined(self, accumulate: str, old: Any, value: Expr) -> Any:
        evaluate = PRIMITIVES[ACCUMULATORS[accumulate].primitive].evaluate
        return _TYPES[value.dtype](evaluate(old, self.value(value)))

    def cell(self, buffer: str, indices: Sequence[Expr]) -> tuple[int, ...]:
        return _inside(buffer, [self.value(part) for part in indices], self.arrays[buffer].shape)

    def check(self, node: Check) -> None:
        if self.value(node.condition):
            return
        if node.axis == UNIQUE_AXIS:
            raise Diagnostic(ShapeError, f"a cell of {node.tensor} is written twice", node.span).error()
        fact = f"index {self.value(node.value)} is out of range for axis {node.axis} of {node.tensor}"
        extent = int(self.value(node.extent))
        raise Diagnostic(DataIndexError, f"{fact}, which has {extent} cells", node.span).error()

    def value(self, expr: Expr) -> Any:
        # Expressions are taken apart once: loops ask for their values again and again.
        found = self.functions.get(id(expr))
        if found is None:
            found = self.functions[id(expr)] = self.function(expr)
            self.kept.append(expr)
        return found()

    def function(self, expr: Expr) -> Callable[[], Any]:
        """What gives the value of ``expr``, whenever it is asked."""
        arrays, sizes, scalars = self.arrays, self.sizes, self.scalars
        match expr:
            case Apply():
                return self.applied(expr)
            case IndexValue(name=name) | Local(name=name):
                return lambda: scalars[name]
            case Read(tensor=tensor, indices=indices, dtype=dtype):
                parts, kind = list(map(self.function, indices)), compute_dtype(dtype)

                def read() -> Any:
                    array = arrays[tensor]
                    return array[_inside(tensor, [part() for part in parts], array.shape)].astype(kind)

                return read
            case Constant(value=value, dtype=dtype):
                number = int(value) if dtype in WIDE_INTEGERS else _TYPES[dtype](value)
                return lambda: number
            case SizeValue(name=name):
                return lambda: np.int64(sizes[name])
            case Cast(operand=operand, dtype=dtype):
                given = self.function(operand)
                if dtype in WIDE_INTEGERS:
                    return lambda: int(given())
                return lambda: np.asarray(given()).astype(dtype)[()]
            case _:
                raise TypeError(f"{type(expr).__name__} has no place in a kernel")

    def applied(self, expr: Apply) -> Callable[[], Any]:
        parts = list(map(self.function, expr.arguments))
        if expr.primitive in LAZY:
            return _lazily(expr.primitive, parts)
        if expr.arguments[0].dtype in WIDE_INTEGERS:
            exact = INDEX_ARITHMETIC[expr.primitive]
            return lambda: exact(*[part() for part in parts])
        evaluate, kind = PRIMITIVES[expr.primitive].evaluate, _TYPES[expr.dtype]
        return lambda: kind(evaluate(*[part() for part in parts]))


def _inside(buffer: str, indices: Sequence[Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    position = tuple(map(int, indices))
    inside = len(position) == len(shape)
    for place, extent in zip(position, shape, strict=False):
        inside = inside and 0 <= place < extent
    if not inside:
        raise IndexError(f"{buffer}{list(position)} is outside the shape {shape}")
    return position


def _lazily(primitive: str, parts: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    match primitive, parts:
        case "where", (condition, chosen, other):
            return lambda: chosen() if condition() else other()
        case "and_", (first, second):
            return lambda: np.bool_(first() and second())
        case "or_", (first, second):
            return lambda: np.bool_(first() or second())
    raise TypeError(f"{primitive} of {len(parts)} arguments")


class _Types(dict[str, type]):
    """NumPy's scalar types by name."""

    def __missing__(self, name: str) -> type:
        self[name] = np.dtype(name).type
        return self[name]


_TYPES = _Types()


@cache
def _computed_in(dtype: np.dtype) -> str:
    return compute_dtype(str(dtype))
