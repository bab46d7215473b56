"""Copies of what lies along rows to where it lies across them, a square of vectors at a time.

::

    for j in range(first, last):                       rows = [x[j + k, i : i + 16] for k in range(16)]
        for i in range(first1, last1):                 in four steps, halves of each two rows change places
            tile[i, j] = x[j, i]                       tile[i + k, j : j + 16] = rows[k] for all k

Single cells would be stored one by one, which takes many times as long. For cells of each size there is one function,
which is compiled once for all nests of all programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Apply, Expr, IndexValue, Read
from tcdsl.lowering.loopir.loops import Loop, Store
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.loopir.traversal import scalars_of
from tcdsl.targets.cpu.emission.interface import READY, TILED, TRANSPOSING
from tcdsl.targets.cpu.emission.vector_steps import counted, whole_blocks
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, BufferKind
from tcdsl.targets.cpu.intrinsics.lanes import Lanes
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["TransposedCopy", "emitted_transposition", "transposed", "transposed_copy", "transposition"]

_TYPES = frozenset(("float32", "float64", "int32", "int64"))
# Cells are moved, whatever they hold.
_CELLS: dict[int, ir.Type] = {4: ir.FloatType(), 8: ir.DoubleType()}


@dataclass(frozen=True, slots=True)
class TransposedCopy:
    """``target = source`` in two loops: the cells of the ``source`` lie side by side along one variable, those of the
    ``target`` along the other one; each takes ``size`` bytes.
    """

    inner: Loop
    target: Store
    source: Read
    along_source: str
    along_target: str
    size: int


def transposed_copy(loop: Loop, kind_of: Callable[[str], BufferKind]) -> TransposedCopy | None:
    """What is known of ``loop``, if it is such a copy; ``kind_of`` says what buffers are."""
    match loop.body:
        case (Loop(body=(Store(value=Read() as source) as target,)) as inner,):
            pass
        case _:
            return None
    outer, name = loop.variable, inner.variable
    if not (_is_plain(loop) and _is_plain(inner)) or outer in scalars_of(inner.start) | scalars_of(inner.stop):
        return None
    written, read = kind_of(target.buffer), kind_of(source.tensor)
    if written.slot == read.slot or written.dtype != read.dtype or written.dtype not in _TYPES:
        return None
    if any(kind.checked or not kind.contiguous for kind in (written, read)):
        return None
    for along, across in ((outer, name), (name, outer)):
        if _lies_along(source.indices, along, across) and _lies_along(target.indices, across, along):
            return TransposedCopy(inner, target, source, along, across, numpy_dtype(read.dtype).itemsize)
    return None


def _is_plain(loop: Loop) -> bool:
    return loop.step == 1 and loop.kind != "vector" and not (loop.rounds or loop.seldom or loop.condition)


def _lies_along(indices: Sequence[Expr], along: str, across: str) -> bool:
    if not indices:
        return False
    *rows, last = indices
    around = frozenset[str]().union(*map(scalars_of, rows))
    if not all(_is_linear(row, across) for row in rows):
        return False
    return across in around and along not in around and across not in scalars_of(last) and _is_next(last, along)


def _is_linear(place: Expr, name: str) -> bool:
    # Whether each step of the variable moves it on by the same.
    if name not in scalars_of(place):
        return True
    match place:
        case IndexValue():
            return True
        case Apply(primitive="add" | "sub", arguments=arguments):
            return all(_is_linear(each, name) for each in arguments)
        case Apply(primitive="mul", arguments=(left, right)):
            apart = name not in scalars_of(left) or name not in scalars_of(right)
            return apart and _is_linear(left, name) and _is_linear(right, name)
        case _:
            return False


def _is_next(place: Expr, name: str) -> bool:
    # Whether it counts as the variable does.
    match place:
        case IndexValue(name=found):
            return found == name
        case Apply(primitive="add" | "sub", arguments=(left, right)) if name not in scalars_of(right):
            return _is_next(left, name)
        case Apply(primitive="add", arguments=(left, right)) if name not in scalars_of(left):
            return _is_next(right, name)
        case _:
            return False


def transposition(module: ir.Module, size: int) -> ir.Function:
    """The function that copies cells of ``size`` bytes, as ``module`` calls it::

        function(source, source step, target, target step, rows, columns)

    Row i of the source begins i steps behind its first one, and column j becomes row j of the target. Steps are bytes.
    """
    symbol = f"{TRANSPOSING}{size}"
    known: ir.Function | None = module.symbols.get(symbol)
    return known or ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.POINTER, WORD] * 2 + [WORD] * 2), symbol)


def emitted_transposition(symbol: str, machine: Machine) -> str:
    """LLVM's text for the `transposition` of this ``symbol``."""
    size = int(symbol.removeprefix(TRANSPOSING))
    module = ir.Module(symbol, avx512=machine.masks)
    function = transposition(module, size)
    function.attributes.append("nounwind")
    builder = ir.Builder(function.append_block(), moving=True)
    _Transposition(builder, _CELLS[size], machine.vector_bytes // size, machine.masks).write(size)
    builder.ret_void()
    return f"{module}{READY}\n{TILED}\n"


class _Transposition:
    """Writes a `transposition`. What whole squares leave over is in others with ``masks``, or goes cell by cell."""

    def __init__(self, builder: ir.Builder, cell: ir.Type, lanes: int, masks: bool) -> None:
        self._builder, self._cell, self._lanes, self._masks = builder, cell, lanes, masks
        source, source_step, target, target_step, *counts = builder.function.args
        self._source, self._target = (source, source_step), (target, target_step)
        self._rows, self._columns = (Scalar(builder, each, "int64") for each in counts)

    def write(self, size: int) -> None:
        """The whole function, for cells of ``size`` bytes."""
        builder, lanes, zero = self._builder, self._lanes, self._rows.constant(0)
        rows, columns = self._rows, self._columns
        if not self._masks:
            rows, columns = (whole_blocks(zero, each, lanes)[0] for each in (rows, columns))

        def squares(row: Scalar) -> None:
            counted(builder, zero, columns, lanes, lambda column: self._square(row, column, size))

        def cells(begin: Scalar) -> Callable[[Scalar], None]:
            def of(row: Scalar) -> None:
                counted(builder, begin, self._columns, 1, lambda column: self._one(row, column, size))

            return of

        counted(builder, zero, rows, lanes, squares)
        if not self._masks:
            counted(builder, zero, rows, 1, cells(columns))
            counted(builder, rows, self._rows, 1, cells(zero))

    def _address(self, memory: tuple[ir.Operand, ir.Operand], row: Scalar, place: Scalar, size: int) -> ir.Operand:
        first, step = memory
        builder, byte = self._builder, ir.IntType(8)
        start = builder.element(byte, first, builder.mul(row.value, step, steady=True), inbounds=False)
        along = builder.mul(place.value, ir.ConstantOperand(WORD, size), steady=True)
        return builder.element(byte, start, along, inbounds=False)

    def _one(self, row: Scalar, column: Scalar, size: int) -> None:
        cell = self._builder.load(self._cell, self._address(self._source, row, column, size), f", align {size}")
        self._builder.store(cell, self._address(self._target, column, row, size), f", align {size}")

    def _square(self, at: Scalar, place: Scalar, size: int) -> None:
        builder, lanes, kind = self._builder, self._lanes, ir.VectorType(self._cell, self._lanes)
        read, written = (
            Lanes.of(builder, "", lanes, first, end if self._masks else None)
            for first, end in ((place, self._columns), (at, self._rows))
        )
        loaded: list[ir.Operand] = []
        for k in range(lanes):
            row = self._behind(at, k)
            if read.mask is None:
                loaded.append(builder.load(kind, self._address(self._source, row, place, size), f", align {size}"))
                continue
            # There is a last one, and what is read of it again is not stored.
            final = self._behind(self._rows, -1)
            source = self._address(self._source, (row < final).choose(row, final), place, size)
            loaded.append(builder.load_masked(kind, source, read.mask, size))
        for k, made in enumerate(transposed(builder, loaded)):
            column = self._behind(place, k)
            target = self._address(self._target, column, at, size)
            here = written.where(column < self._columns) if self._masks else written
            if here.mask is None:
                builder.store(made, target, f", align {size}")
            else:
                builder.store_masked(made, target, here.mask, size)

    def _behind(self, place: Scalar, count: int) -> Scalar:
        return place.like(self._builder.add(place.value, ir.ConstantOperand(WORD, count), steady=True))


def transposed(builder: ir.Builder, rows: Sequence[ir.Operand]) -> list[ir.Operand]:
    """Vectors with as many lanes as there are of them, lanes and vectors exchanged."""
    count = len(rows)
    made = list(rows)
    step = count // 2
    while step:
        fenced = builder.fenced if step > 1 and _is_floating(made[0]) else lambda vector: vector
        for first, second in _pairs(count, step):
            lanes = range(count)
            low = [lane + (0 if not lane & step else count - step) for lane in lanes]
            high = [lane + (step if not lane & step else count) for lane in lanes]
            one, other = made[first], made[second]
            made[first], made[second] = (fenced(builder.shuffled(one, other, each)) for each in (low, high))
        step //= 2
    return made


def _is_floating(vector: ir.Operand) -> bool:
    return isinstance(vector.type, ir.VectorType) and isinstance(vector.type.element, ir.FloatType | ir.DoubleType)


def _pairs(count: int, step: int) -> Iterator[tuple[int, int]]:
    return ((first, first + step) for first in range(count) if not first & step)
