"""Cells side by side as the lanes of vectors.

::

    for j in lanes(first, 8):                 lanes = Lanes.of(builder, "j", 8, first)
        y[j] = y[j] + a[k] * x[j]             lanes.store(y, [first], lanes.load(y, [first]) + ...)

Each cell is that of the first lane where the code says ``j``, and the others are behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, BufferValue, buffer_tag, cell_address
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["Lanes", "is_vector"]


def is_vector(value: Scalar) -> bool:
    """Whether it is another number in each lane."""
    return isinstance(value.value.type, ir.VectorType)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The ``count`` steps of a loop over ``variable``; with a ``mask`` those alone where it holds."""

    builder: ir.Builder
    variable: str
    count: int
    mask: ir.Operand | None

    @staticmethod
    def of(builder: ir.Builder, variable: str, count: int, first: Scalar, stop: Scalar | None) -> Lanes:
        """Steps from ``first`` on, up to ``stop`` if that is given."""
        if stop is None:
            return Lanes(builder, variable, count, None)
        left = builder.in_all_lanes(builder.sub(stop.value, first.value, steady=True), count)
        numbers = ir.ConstantOperand(ir.VectorType(WORD, count), list(range(count)))
        return Lanes(builder, variable, count, builder.compare_signed("<", numbers, left))

    def spread(self, value: Scalar) -> Scalar:
        """``value`` in all lanes, if it is one number."""
        return value if is_vector(value) else value.like(self.builder.in_all_lanes(value.value, self.count))

    def load(self, buffer: BufferValue, positions: Sequence[Scalar]) -> Scalar:
        """The cells of ``buffer`` from ``positions`` on, along the last axis."""
        dtype = buffer.kind.dtype
        kind = ir.VectorType(llvm_type(dtype), self.count)
        size, address = numpy_dtype(dtype).itemsize, cell_address(self.builder, buffer, positions)
        tag = buffer_tag(self.builder, buffer.kind)
        if self.mask is None:
            loaded = self.builder.load(kind, address, f", align {size}{tag}")
        else:
            loaded = self.builder.load_masked(kind, address, self.mask, size, tag)
        return Scalar(self.builder, loaded, dtype)

    def store(self, buffer: BufferValue, positions: Sequence[Scalar], value: Scalar) -> None:
        """Store ``value`` into these cells."""
        size, address = numpy_dtype(buffer.kind.dtype).itemsize, cell_address(self.builder, buffer, positions)
        tag = buffer_tag(self.builder, buffer.kind)
        written = self.spread(value).value
        if self.mask is None:
            self.builder.store(written, address, f", align {size}{tag}")
        else:
            self.builder.store_masked(written, address, self.mask, size, tag)
