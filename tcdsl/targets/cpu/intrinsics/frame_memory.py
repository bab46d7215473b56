"""Memory as generated code sees it: sizes and buffers of the frame, indexed like arrays.

::

    N = size(frame, 32)
    A = buffer(frame, 34, "float32[:, ::1]")      # C-contiguous; "float32[:, :]" is strided
    A[i, j] += 1.0

``A[i, j]`` becomes one address computation and one load, with signed indices: no bounds check, no wraparound of
negative indices (both keep LLVM from vectorizing). Strides count elements, so that LLVM can try a stride of 1.
Different buffers never overlap, and the loads and stores say so. float16 is loaded as float32 and rounded when stored.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from tcdsl.ir.dtypes import compute_dtype, numpy_dtype
from tcdsl.targets.cpu.intrinsics.arithmetic import Scalar, llvm_type
from tcdsl.targets.cpu.intrinsics.conversions import convert, half_to_single, single_to_half
from tcdsl.targets.cpu.intrinsics.number_types import WideInteger, dtype_of, type_of
from tcdsl.targets.cpu.layout.frame import (
    CHECK_FAILED,
    CHECK_WORD,
    EXTENT_WORD,
    OUT_OF_RANGE,
    PLACES_WORD,
    POSITION_WORD,
    SCRATCH_WORD,
    STATUS_WORD,
    VALUE_WORD,
    VALUE_WORDS,
)

__all__ = [
    "BufferType",
    "address_of",
    "buffer",
    "checked_buffer",
    "fail",
    "placed_buffer",
    "placed_size",
    "record_outside",
    "scratch",
    "size",
]

_WORD = ir.IntType(64)
_BYTE_POINTER = ir.IntType(8).as_pointer()


class BufferType(types.Type):
    """``BufferType(34, "float32", 2, contiguous=True)``: the buffer whose address is in word 34 of the frame.

    The slot is part of the type, so each buffer of a nest has a type of its own: that is how LLVM learns that their
    memories are apart. The slot -1 - k stands for the word that place k of the nest names. ``checked`` buffers test
    every index against the extents.
    """

    def __init__(self, slot: int, dtype: str, ndim: int, *, contiguous: bool, checked: bool) -> None:
        self.slot = slot
        self.dtype = dtype
        self.ndim = ndim
        self.contiguous = contiguous
        self.checked = checked
        super().__init__(name=f"buffer({slot}, {dtype}, {ndim}, {contiguous}, {checked})")


@register_model(BufferType)
class BufferModel(models.StructModel):
    """An address and the strides; for a checked buffer the frame's address and the extents too."""

    def __init__(self, data_model_manager: Any, kind: BufferType) -> None:
        members = [("address", types.voidptr)]
        members += [(f"stride_{axis}", types.int64) for axis in range(kind.ndim)]
        if kind.checked:
            members += [("frame", types.int64)]
            members += [(f"extent_{axis}", types.int64) for axis in range(kind.ndim)]
        super().__init__(data_model_manager, kind, members)


def _word(builder: ir.IRBuilder, frame: ir.Value, position: int, first: ir.Value | None = None) -> ir.Value:
    # The address of word ``position``, counted from word ``first``.
    words = builder.inttoptr(frame, _WORD.as_pointer())
    if first is not None:
        words = builder.gep(words, [first], inbounds=True)
    return builder.gep(words, [ir.Constant(_WORD, position)], inbounds=True)


def _place(builder: ir.IRBuilder, frame: ir.Value, place: int) -> ir.Value:
    # The word that a place of the nest names.
    places = builder.load(_word(builder, frame, PLACES_WORD))
    return builder.load(_word(builder, places, place))


@intrinsic(prefer_literal=True)
def size(typing_context: Any, frame: Any, word: Any) -> Any:
    """The size in word ``word`` of the frame."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        return builder.load(_word(builder, values[0], word.literal_value))

    return types.int64(frame, word), emit


@intrinsic(prefer_literal=True)
def placed_size(typing_context: Any, frame: Any, place: Any) -> Any:
    """The size in the word that the nest's place ``place`` names."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        return builder.load(_word(builder, values[0], 0, _place(builder, values[0], place.literal_value)))

    return types.int64(frame, place), emit


def _buffer(frame: Any, slot: Any, description: Any, *, checked: bool = False, placed: bool = False) -> Any:
    dtype, _, axes = description.literal_value.partition("[")
    ndim = 0 if axes == "]" else axes.count(",") + 1
    number = -1 - slot.literal_value if placed else slot.literal_value
    kind = BufferType(number, dtype, ndim, contiguous=axes in ("]", "::1]") or "::1" in axes, checked=checked)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        view = cgutils.create_struct_proxy(kind)(context, builder)
        first = _place(builder, values[0], slot.literal_value) if placed else ir.Constant(_WORD, kind.slot)
        address = builder.bitcast(_word(builder, values[0], 0, first), _BYTE_POINTER.as_pointer())
        view.address = builder.load(address)
        for axis in range(ndim):
            setattr(view, f"stride_{axis}", builder.load(_word(builder, values[0], 1 + axis, first)))
            if checked:
                setattr(view, f"extent_{axis}", builder.load(_word(builder, values[0], 1 + ndim + axis, first)))
        if checked:
            view.frame = values[0]
        return view._getvalue()

    return kind(frame, slot, description), emit


@intrinsic(prefer_literal=True)
def buffer(typing_context: Any, frame: Any, slot: Any, description: Any) -> Any:
    """The buffer whose address is in word ``slot``; ``description`` gives its type as Numba writes array types."""
    return _buffer(frame, slot, description)


@intrinsic(prefer_literal=True)
def placed_buffer(typing_context: Any, frame: Any, place: Any, description: Any) -> Any:
    """The buffer whose address is in the word that the nest's place ``place`` names."""
    return _buffer(frame, place, description, placed=True)


@intrinsic(prefer_literal=True)
def checked_buffer(typing_context: Any, frame: Any, slot: Any, description: Any) -> Any:
    """The same, with every index tested: the debug mode."""
    return _buffer(frame, slot, description, checked=True)


@intrinsic(prefer_literal=True)
def fail(typing_context: Any, frame: Any, check: Any, value: Any, extent: Any, positions: Any) -> Any:
    """Write into the frame that a check failed, for which value and extent, and where the loops stood."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        frame_address, number, found, limit, variables = values
        rows = [(CHECK_WORD, number), (EXTENT_WORD, limit)]
        for k, position in enumerate(cgutils.unpack_tuple(builder, variables)):
            rows.append((POSITION_WORD + k, position))
        for word, content in rows:
            builder.store(content, _word(builder, frame_address, word))
        _store_value(builder, frame_address, found)
        builder.store(ir.Constant(_WORD, CHECK_FAILED), _word(builder, frame_address, STATUS_WORD))
        return context.get_dummy_value()

    count = len(positions) if isinstance(positions, types.BaseTuple) else 0
    kind = value if isinstance(value, WideInteger) else types.int64
    return types.void(frame, types.int64, kind, types.int64, types.UniTuple(types.int64, count)), emit


def _store_value(builder: ir.IRBuilder, frame: ir.Value, value: ir.Value) -> None:
    # An integer of any width, in as many words as there are for it.
    whole = ir.IntType(64 * VALUE_WORDS)
    if value.type.width < whole.width:
        value = builder.sext(value, whole)
    for k in range(VALUE_WORDS):
        part = builder.trunc(builder.ashr(value, ir.Constant(whole, 64 * k)), _WORD)
        builder.store(part, _word(builder, frame, VALUE_WORD + k))


@type_callable(operator.getitem)
def _type_of_load(context: Any) -> Any:
    def typer(view: Any, index: Any) -> Any:
        return type_of(compute_dtype(view.dtype)) if isinstance(view, BufferType) else None

    return typer


@type_callable(operator.setitem)
def _type_of_store(context: Any) -> Any:
    def typer(view: Any, index: Any, value: Any) -> Any:
        storable = isinstance(view, BufferType) and dtype_of(types.unliteral(value)) is not None
        return types.none if storable else None

    return typer


@lower_builtin(operator.getitem, BufferType, types.Any)
def _emit_load(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
    kind, index = signature.args
    loaded = builder.load(_address(context, builder, kind, values[0], index, values[1]))
    _tag(builder, kind, loaded)
    if kind.dtype == "float16":
        return half_to_single(Scalar(builder, loaded, "uint16")).value
    return Scalar(builder, loaded, "uint8").differs(0).value if kind.dtype == "bool" else loaded


@lower_builtin(operator.setitem, BufferType, types.Any, types.Any)
def _emit_store(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
    kind, index, value_type = signature.args
    dtype = dtype_of(types.unliteral(value_type))
    value = context.cast(builder, values[2], value_type, types.unliteral(value_type))
    cell = convert(Scalar(builder, value, str(dtype)), kind.dtype)
    if kind.dtype == "float16":
        cell = single_to_half(cell)
    elif kind.dtype == "bool":
        cell = convert(cell, "uint8")
    stored = builder.store(cell.value, _address(context, builder, kind, values[0], index, values[1]))
    _tag(builder, kind, stored)
    return context.get_dummy_value()


def _tag(builder: ir.IRBuilder, kind: BufferType, access: ir.Instruction) -> None:
    # Type-based alias information, with the buffers as the types: accesses with different tags never meet.
    module = builder.module
    root = module.add_metadata(["tcdsl buffers"])
    leaf = module.add_metadata([f"buffer {kind.slot}", root, ir.Constant(_WORD, 0)])
    access.set_metadata("tbaa", module.add_metadata([leaf, leaf, ir.Constant(_WORD, 0)]))


def _address(
    context: Any, builder: ir.IRBuilder, kind: BufferType, view_value: ir.Value, index: Any, index_value: ir.Value
) -> ir.Value:
    view = cgutils.create_struct_proxy(kind)(context, builder, value=view_value)
    if isinstance(index, types.BaseTuple):
        parts, part_types = cgutils.unpack_tuple(builder, index_value), index.types
    else:
        parts, part_types = [index_value], (index,)
    positions = [context.cast(builder, part, t, types.int64) for part, t in zip(parts, part_types, strict=True)]
    address = address_of(builder, kind, view, positions)
    return _checked(builder, kind, view, positions, address) if kind.checked else address


def address_of(builder: ir.IRBuilder, kind: BufferType, view: Any, positions: list[ir.Value]) -> ir.Value:
    """The address of a cell of ``view``, which holds the address and strides of a buffer of this kind."""
    offset = ir.Constant(_WORD, 0)
    for axis, position in enumerate(positions):
        unit = kind.contiguous and axis == kind.ndim - 1
        step = position if unit else builder.mul(position, getattr(view, f"stride_{axis}"), flags=("nsw",))
        offset = builder.add(offset, step, flags=("nsw",)) if axis else step
    # bool is a byte and float16 sixteen bits in memory.
    cell = ir.IntType(8 * numpy_dtype(kind.dtype).itemsize)
    if kind.dtype in ("float32", "float64"):
        cell = llvm_type(kind.dtype)
    return builder.gep(builder.bitcast(view.address, cell.as_pointer()), [offset], inbounds=True)


def _checked(
    builder: ir.IRBuilder, kind: BufferType, view: Any, positions: list[ir.Value], address: ir.Value
) -> ir.Value:
    # An access out of range is recorded and sent to a harmless place in the frame; the run raises at its end.
    for axis, position in enumerate(positions):
        extent = getattr(view, f"extent_{axis}")
        outside = builder.icmp_unsigned(">=", position, extent)
        record_outside(builder, kind, view.frame, outside, axis, position, extent)
        address = builder.select(outside, builder.bitcast(scratch(builder, view.frame), address.type), address)
    return address


def record_outside(
    builder: ir.IRBuilder,
    kind: BufferType,
    frame: ir.Value,
    outside: ir.Value,
    axis: int,
    position: ir.Value,
    extent: ir.Value,
) -> None:
    """Where ``outside`` holds, write into the frame that ``position`` is out of range along ``axis``, if it is the
    first one.
    """
    with builder.if_then(outside, likely=False), _none_before(builder, frame):
        rows = ((CHECK_WORD, kind.slot), (POSITION_WORD, axis), (STATUS_WORD, OUT_OF_RANGE))
        for word, number in rows:
            builder.store(ir.Constant(_WORD, number), _word(builder, frame, word))
        _store_value(builder, frame, position)
        builder.store(extent, _word(builder, frame, EXTENT_WORD))


def _none_before(builder: ir.IRBuilder, frame: ir.Value) -> Any:
    # What goes wrong because something went wrong before does not matter.
    status = builder.load(_word(builder, frame, STATUS_WORD))
    return builder.if_then(builder.icmp_unsigned("==", status, ir.Constant(_WORD, 0)))


def scratch(builder: ir.IRBuilder, frame: ir.Value) -> ir.Value:
    """The harmless place in the frame."""
    return _word(builder, frame, SCRATCH_WORD)
