"""Small arrays on the stack of a nest, and boxes of buffers as buffers of their own.

::

    tile = local_buffer(71, "float32[8, 64]")         # extents that are never exceeded: its strides are constants
    rows = view(A, (i, 0), (8, K))                    # A[i : i + 8, 0 : K]
    row = view(A, (i, 0), (None, K))                  # A[i, 0 : K], of rank 1
"""

from __future__ import annotations

from math import prod
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.targets.cpu.intrinsics.frame_memory import BufferType, address_of, record_outside, scratch

__all__ = ["checked_local_buffer", "local_buffer", "view"]

_WORD = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_CACHE_LINE = 64


def _local(slot: Any, description: Any, *, checked: bool) -> Any:
    dtype, _, axes = description.literal_value.rstrip("]").partition("[")
    bounds = [int(extent) for extent in axes.split(",") if extent.strip()]
    kind = BufferType(slot.literal_value, dtype, len(bounds), contiguous=True, checked=checked)

    def emit(context: Any, builder: ir.IRBuilder) -> Any:
        held = cgutils.create_struct_proxy(kind)(context, builder)
        cells = ir.ArrayType(ir.IntType(8), max(1, numpy_dtype(dtype).itemsize * prod(bounds)))
        # One place in the function, however often the node runs.
        memory = cgutils.alloca_once(builder, cells)
        memory.align = _CACHE_LINE
        held.address = builder.bitcast(memory, _BYTES)
        for axis in range(len(bounds)):
            setattr(held, f"stride_{axis}", ir.Constant(_WORD, prod(bounds[axis + 1 :])))
        return held

    return kind, emit


@intrinsic(prefer_literal=True)
def local_buffer(typing_context: Any, slot: Any, description: Any) -> Any:
    """An array on the stack, known by ``slot``; ``description`` gives its type and bounds of its extents."""
    kind, make = _local(slot, description, checked=False)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        return make(context, builder)._getvalue()

    return kind(slot, description), emit


@intrinsic(prefer_literal=True)
def checked_local_buffer(typing_context: Any, frame: Any, slot: Any, description: Any, extents: Any) -> Any:
    """The same, with every index tested against ``extents``: the debug mode."""
    kind, make = _local(slot, description, checked=True)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        held = make(context, builder)
        held.frame = values[0]
        for axis, extent in enumerate(_integers(context, builder, signature.args[3], values[3])):
            setattr(held, f"extent_{axis}", extent)
        return held._getvalue()

    return kind(frame, slot, description, types.unliteral(extents)), emit


@intrinsic
def view(typing_context: Any, parent: Any, starts: Any, extents: Any) -> Any:
    """The box of ``parent`` that begins at ``starts``; an axis whose extent is None is left out."""
    kept = [axis for axis, extent in enumerate(extents) if not isinstance(extent, types.NoneType)]
    contiguous = not kept or (parent.contiguous and kept[-1] == parent.ndim - 1)
    # The slot of the parent, because it is the same memory.
    kind = BufferType(parent.slot, parent.dtype, len(kept), contiguous=contiguous, checked=parent.checked)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        whole = cgutils.create_struct_proxy(parent)(context, builder, value=values[0])
        held = cgutils.create_struct_proxy(kind)(context, builder)
        positions = _integers(context, builder, starts, values[1])
        address = builder.bitcast(address_of(builder, parent, whole, positions), _BYTES)
        counts = _integers(context, builder, extents, values[2])
        outside = None
        if kind.checked:
            ranges = [count if axis in kept else None for axis, count in enumerate(counts)]
            outside = _outside(builder, parent, whole, positions, ranges)
            address = builder.select(outside, builder.bitcast(scratch(builder, whole.frame), _BYTES), address)
            held.frame = whole.frame
        held.address = address
        for number, axis in enumerate(kept):
            setattr(held, f"stride_{number}", getattr(whole, f"stride_{axis}"))
            if outside is not None:
                # Nothing is in range of a view that is out of range.
                extent = builder.select(outside, ir.Constant(_WORD, 0), counts[axis])
                setattr(held, f"extent_{number}", extent)
        return held._getvalue()

    return kind(parent, starts, extents), emit


def _integers(context: Any, builder: ir.IRBuilder, kind: Any, value: ir.Value) -> list[ir.Value]:
    parts = zip(cgutils.unpack_tuple(builder, value), kind, strict=True)
    return [
        ir.Constant(_WORD, 0) if isinstance(each, types.NoneType) else context.cast(builder, part, each, types.int64)
        for part, each in parts
    ]


def _outside(
    builder: ir.IRBuilder, kind: BufferType, whole: Any, starts: list[ir.Value], counts: list[ir.Value | None]
) -> ir.Value:
    # Whether the box has a cell that the buffer has not; the first and the last cell along each axis tell.
    one, outside = ir.Constant(_WORD, 1), ir.Constant(ir.IntType(1), 0)
    for axis, (start, count) in enumerate(zip(starts, counts, strict=True)):
        extent = getattr(whole, f"extent_{axis}")
        some = ir.Constant(ir.IntType(1), 1)
        ends = [start]
        if count is not None:
            some = builder.icmp_signed(">", count, ir.Constant(_WORD, 0))
            ends.append(builder.sub(builder.add(start, count), one))
        for end in ends:
            wrong = builder.and_(some, builder.icmp_unsigned(">=", end, extent))
            record_outside(builder, kind, whole.frame, wrong, axis, end, extent)
            outside = builder.or_(outside, wrong)
    return outside
