"""Small arrays on the stack of a nest, and boxes of buffers as buffers of their own.

::

    tile = local_buffer(71, "float32[8, 64]")         # extents that are never exceeded: its strides are constants
    rows = view(A, (i, 0), (8, K))                    # A[i : i + 8, 0 : K]
    row = view(A, (i, 0), (None, K))                  # A[i, 0 : K], of rank 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.frame_memory import (
    WORD,
    BufferKind,
    BufferValue,
    address_of,
    record_outside,
    scratch,
)
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["box", "local_buffer"]

_CACHE_LINE = 64


def local_buffer(
    builder: ir.Builder,
    slot: int,
    description: str,
    frame: ir.Operand | None = None,
    extents: Sequence[Scalar] | None = None,
) -> BufferValue:
    """An array on the stack, known by ``slot``; ``description`` gives its type and bounds of its extents.

    With a ``frame`` every index is tested against ``extents``: the debug mode.
    """
    dtype, _, axes = description.rstrip("]").partition("[")
    bounds = [int(extent) for extent in axes.split(",") if extent.strip()]
    # One place in the function, however often the node runs.
    cells = ir.ArrayType(ir.IntType(8), max(1, numpy_dtype(dtype).itemsize * prod(bounds)))
    address = builder.place(cells, _CACHE_LINE)
    strides = tuple(ir.ConstantOperand(WORD, prod(bounds[axis + 1 :])) for axis in range(len(bounds)))
    kind = BufferKind(slot, dtype, len(bounds), contiguous=True, checked=frame is not None)
    return BufferValue(kind, address, strides, frame, tuple(_word(extent) for extent in extents or ()))


def box(
    builder: ir.Builder, parent: BufferValue, starts: Sequence[Scalar], extents: Sequence[Scalar | None]
) -> BufferValue:
    """The box of ``parent`` that begins at ``starts``; an axis whose extent is None is left out."""
    kept = [axis for axis, extent in enumerate(extents) if extent is not None]
    contiguous = not kept or (parent.kind.contiguous and kept[-1] == parent.kind.ndim - 1)
    # The slot of the parent, because it is the same memory.
    kind = replace(parent.kind, ndim=len(kept), contiguous=contiguous)
    positions = [_word(start) for start in starts]
    counts = [None if extent is None else _word(extent) for extent in extents]
    address = address_of(builder, parent, positions)
    strides = tuple(parent.strides[axis] for axis in kept)
    if not kind.checked:
        return BufferValue(kind, address, strides)
    outside = _outside(builder, parent, positions, counts)
    address = builder.select(outside, scratch(builder, parent), address)
    # Nothing is in range of a view that is out of range.
    ranges = tuple(builder.select(outside, ir.ConstantOperand(WORD, 0), count) for count in counts if count is not None)
    return BufferValue(kind, address, strides, parent.frame, ranges)


def _word(number: Scalar) -> ir.Operand:
    return convert(number, "int64").value


def _outside(
    builder: ir.Builder, parent: BufferValue, starts: Sequence[ir.Operand], counts: Sequence[ir.Operand | None]
) -> ir.Operand:
    # Whether the box has a cell that the buffer has not; the first and the last cell along each axis tell.
    one = ir.ConstantOperand(WORD, 1)
    outside: ir.Operand = ir.ConstantOperand(ir.IntType(1), 0)
    for axis, (start, count) in enumerate(zip(starts, counts, strict=True)):
        extent = parent.extents[axis]
        some: ir.Operand = ir.ConstantOperand(ir.IntType(1), 1)
        ends = [start]
        if count is not None:
            some = builder.compare_signed(">", count, ir.ConstantOperand(WORD, 0))
            ends.append(builder.sub(builder.add(start, count), one))
        for end in ends:
            wrong = builder.whole("and", some, builder.compare_unsigned(">=", end, extent))
            record_outside(builder, parent, wrong, axis, end, extent)
            outside = builder.whole("or", outside, wrong)
    return outside
