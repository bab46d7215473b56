"""Cells side by side as the lanes of vectors.

::

    for j in lanes(first, 8):                 lanes = Lanes.of(builder, "j", 8, first)
        y[j] = y[j] + a[k] * x[j]             lanes.store(y, [first], lanes.load(y, [first]) + ...)

Each cell is that of the first lane where the code says ``j``, and the others are behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.frame_memory import (
    WORD,
    BufferValue,
    address_of,
    buffer_tag,
    cell_address,
    cell_of_value,
    cell_type,
    value_of_cell,
)
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["Lanes"]

Turned = TypeVar("Turned", ir.Operand, ir.Operand | None)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The ``count`` steps of a loop over ``variable`` from ``first`` on; with a ``mask`` those alone where it holds,
    which are some of those that there are at all.
    """

    builder: ir.Builder
    variable: str
    count: int
    first: Scalar
    mask: ir.Operand | None
    there: ir.Operand | None

    @staticmethod
    def of(builder: ir.Builder, variable: str, count: int, first: Scalar, stop: Scalar | None) -> Lanes:
        """Steps from ``first`` on, up to ``stop`` if that is given."""
        if stop is None:
            return Lanes(builder, variable, count, first, None, None)
        left = first.like(builder.sub(stop.value, first.value, steady=True))
        there = _below(builder, left, count)
        return Lanes(builder, variable, count, first, there, there)

    def where(self, test: Scalar) -> Lanes:
        """Those of them where ``test`` holds."""
        mask = test.in_lanes(self.count).value
        if self.mask is not None:
            mask = self.builder.whole("and", self.mask, mask)
        return replace(self, mask=mask)

    def between(self, first: Scalar, stop: Scalar) -> Lanes:
        """Those of them from ``first`` on, up to ``stop``."""
        low, high = (
            _below(self.builder, (left < 0).choose(left.constant(0), left), self.count)
            for left in (end.like(self.builder.sub(end.value, self.first.value, steady=True)) for end in (first, stop))
        )
        after = self.builder.whole("xor", low, ir.ConstantOperand(low.type, [True] * self.count))
        return self.where(Scalar(self.builder, self.builder.whole("and", high, after), "bool"))

    def numbers(self) -> Scalar:
        """What the variable is in each lane."""
        first = self.builder.in_all_lanes(self.first.value, self.count)
        return self.first.like(self.builder.add(first, _numbers(self.count), steady=True))

    def load(
        self, buffer: BufferValue, positions: Sequence[Scalar], *, certain: bool = False, backwards: bool = False
    ) -> Scalar:
        """The cells of ``buffer`` from ``positions`` on, along the last axis, or ``backwards``; ``certain`` ones are
        there for all steps, whether they are masked or not.
        """
        dtype = buffer.kind.dtype
        kind = ir.VectorType(cell_type(dtype), self.count)
        size, address = numpy_dtype(dtype).itemsize, self._address(buffer, positions, backwards)
        tag = buffer_tag(self.builder, buffer.kind)
        mask = self._turned(self.there if certain else self.mask, backwards)
        if mask is None:
            loaded = self.builder.load(kind, address, f", align {size}{tag}")
        else:
            loaded = self.builder.load_masked(kind, address, mask, size, tag)
        loaded = self._turned(loaded, backwards)
        return value_of_cell(Scalar(self.builder, loaded, dtype))

    def load_one(self, buffer: BufferValue, positions: Sequence[Scalar]) -> Scalar:
        """The cell of ``buffer`` at ``positions``, or any number if the mask holds for no step."""
        assert self.mask is not None
        builder, kind = self.builder, cell_type(buffer.kind.dtype)
        bits = ir.IntType(self.count)
        some = builder.compare_unsigned("!=", builder.cast("bitcast", self.mask, bits), ir.ConstantOperand(bits, 0))
        address = builder.select(some, cell_address(builder, buffer, positions), builder.place(kind))
        return value_of_cell(Scalar(builder, builder.load(kind, address), buffer.kind.dtype))

    def store(
        self, buffer: BufferValue, positions: Sequence[Scalar], value: Scalar, *, backwards: bool = False
    ) -> None:
        """Store ``value`` into these cells."""
        size, address = numpy_dtype(buffer.kind.dtype).itemsize, self._address(buffer, positions, backwards)
        tag = buffer_tag(self.builder, buffer.kind)
        written = self._turned(cell_of_value(value.in_lanes(self.count), buffer.kind.dtype), backwards)
        mask = self._turned(self.mask, backwards)
        if mask is None:
            self.builder.store(written, address, f", align {size}{tag}")
        else:
            self.builder.store_masked(written, address, mask, size, tag)

    def _turned(self, vector: Turned, backwards: bool) -> Turned:
        # The last lane first.
        if vector is None or not backwards:
            return vector
        return self.builder.shuffled(vector, vector, range(self.count - 1, -1, -1))

    def _address(self, buffer: BufferValue, positions: Sequence[Scalar], backwards: bool) -> ir.Operand:
        if backwards:
            # The last lane is at the first cell.
            *others, end = positions
            behind = ir.ConstantOperand(WORD, self.count - 1)
            positions = *others, end.like(self.builder.sub(convert(end, "int64").value, behind, steady=True), "int64")
        if buffer.kind.checked:
            return cell_address(self.builder, buffer, positions)
        # Of the row first, which changes less often, so that all rows need one counter.
        *row, last = [convert(position, "int64").value for position in positions]
        row_start = address_of(self.builder, buffer, [*row, ir.ConstantOperand(WORD, 0)], in_lanes=True)
        # With a mask there need be no cell in the last lane.
        return self.builder.element(cell_type(buffer.kind.dtype), row_start, last, inbounds=not backwards)


def _below(builder: ir.Builder, left: Scalar, count: int) -> ir.Operand:
    # Which lanes there are of so many steps.
    if count > left.bits:
        return builder.compare_signed("<", _numbers(count), builder.in_all_lanes(left.value, count))
    # As the bits of a number: one instruction makes them, and one a mask of them.
    bits = (left.constant(1) << (left < count - 1).choose(left, count - 1)) - 1
    bits = (left < count).choose(bits, left.constant(-1))
    mask = bits.value if count == left.bits else builder.cast("trunc", bits.value, ir.IntType(count))
    return builder.cast("bitcast", mask, ir.VectorType(ir.IntType(1), count))


def _numbers(count: int) -> ir.Operand:
    return ir.ConstantOperand(ir.VectorType(WORD, count), list(range(count)))
