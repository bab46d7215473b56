"""Memory as generated code sees it: sizes and buffers of the frame, small arrays on the stack, and boxes of buffers,
indexed like arrays.

::

    N = size(frame, 0)
    A = buffer(frame, 1, "float32[:, ::1]")       # C-contiguous; "float32[:, :]" is strided
    A[i, j] += 1.0
    tile = local_buffer(71, "float32[8, 64]")         # extents that are never exceeded: its strides are constants
    rows = view(A, (i, 0), (8, K))                    # A[i : i + 8, 0 : K]
    row = view(A, (i, 0), (None, K))                  # A[i, 0 : K], of rank 1

``A[i, j]`` becomes one address computation and one load, with signed indices: no bounds check, no wraparound of
negative indices (both keep LLVM from vectorizing). Strides count elements, so that LLVM can try a stride of 1.
Different buffers never overlap, and the loads and stores say so. float16 is loaded as float32 and rounded when stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.conversions import convert, half_to_single, single_to_half
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type
from tcdsl.targets.cpu.layout.frame import (
    CHECK_FAILED,
    CHECK_WORD,
    EXTENT_WORD,
    INTERRUPT_WORD,
    OUT_OF_RANGE,
    PLACES_WORD,
    POSITION_WORD,
    SCRATCH_WORD,
    STATUS_WORD,
    VALUE_WORD,
    VALUE_WORDS,
)

__all__ = [
    "WORD",
    "BufferKind",
    "BufferValue",
    "address_of",
    "box",
    "buffer_tag",
    "call_host",
    "cell_address",
    "cell_of_value",
    "cell_type",
    "fail",
    "frame_buffer",
    "frame_size",
    "interrupted",
    "load",
    "local_buffer",
    "record_outside",
    "scratch",
    "store",
    "value_of_cell",
]

WORD = ir.IntType(64)


@dataclass(frozen=True, slots=True)
class BufferKind:
    """``BufferKind(-2, "float32", 2, contiguous=True)``: the buffer whose address is in the word that place 1 names.

    The slot tells LLVM that the memories of buffers are apart; it is -1 - k for place k of the nest, and the word of
    the frame itself for buffers of checked code. ``checked`` buffers test every index against the extents.
    """

    slot: int
    dtype: str
    ndim: int
    contiguous: bool
    checked: bool = False


@dataclass(frozen=True, slots=True)
class BufferValue:
    """A buffer where code is written: an address and the strides; for a checked one the frame and the extents too."""

    kind: BufferKind
    address: ir.Operand
    strides: tuple[ir.Operand, ...]
    frame: ir.Operand | None = None
    extents: tuple[ir.Operand, ...] = ()

    @property
    def parts(self) -> tuple[ir.Operand, ...]:
        """All of it, as a procedure takes it."""
        return (self.address, *self.strides, *([] if self.frame is None else [self.frame]), *self.extents)

    @staticmethod
    def of_parts(kind: BufferKind, parts: Sequence[ir.Operand]) -> BufferValue:
        """What `parts` gives, put together again."""
        address, *rest = parts
        strides = tuple(rest[: kind.ndim])
        if not kind.checked:
            return BufferValue(kind, address, strides)
        return BufferValue(kind, address, strides, rest[kind.ndim], tuple(rest[kind.ndim + 1 :]))


def _word(builder: ir.Builder, frame: ir.Operand, position: int, first: ir.Operand | None = None) -> ir.Operand:
    # The address of word ``position``, counted from word ``first``.
    words = builder.cast("inttoptr", frame, ir.POINTER)
    for step in (first, ir.ConstantOperand(WORD, position) if position else None):
        if step is not None:
            words = builder.element(WORD, words, step)
    return words


def _place(builder: ir.Builder, frame: ir.Operand, place: int) -> ir.Operand:
    # The word that a place of the nest names.
    places = builder.load_lasting(WORD, _word(builder, frame, PLACES_WORD))
    return builder.load_lasting(WORD, _word(builder, places, place))


def frame_size(builder: ir.Builder, frame: ir.Operand, place: int) -> Scalar:
    """The size in the word of the frame that the nest's place of that number names."""
    return Scalar(builder, builder.load_lasting(WORD, _word(builder, frame, 0, _place(builder, frame, place))), "int64")


def frame_buffer(
    builder: ir.Builder,
    frame: ir.Operand,
    number: int,
    description: str,
    *,
    checked: bool = False,
) -> BufferValue:
    """The buffer whose address is in the word that the nest's place of that number names; in that word if ``checked``.

    ``description`` gives its type as Numba writes array types.
    """
    dtype, _, axes = description.partition("[")
    ndim = 0 if axes == "]" else axes.count(",") + 1
    kind = BufferKind(number if checked else -1 - number, dtype, ndim, axes == "]" or "::1" in axes, checked)
    first = ir.ConstantOperand(WORD, number) if checked else _place(builder, frame, number)
    words = _word(builder, frame, 0, first)

    def word(position: int) -> ir.Operand:
        return builder.load_lasting(WORD, builder.element(WORD, words, ir.ConstantOperand(WORD, position)))

    address = builder.load_lasting(ir.POINTER, words)
    strides = tuple(word(1 + axis) for axis in range(ndim))
    if not checked:
        return BufferValue(kind, address, strides)
    return BufferValue(kind, address, strides, frame, tuple(word(1 + ndim + axis) for axis in range(ndim)))


def interrupted(builder: ir.Builder, frame: ir.Operand) -> Scalar:
    """Whether the call is to end, by the driver's function.

    What it has Python do may change arrays, of which the call at hand then has either what was there or what is.
    """
    function = builder.load_lasting(ir.POINTER, _word(builder, frame, INTERRUPT_WORD))
    answer = builder.call_apart(function, [frame], ir.FunctionType(WORD, [WORD]))
    return Scalar(builder, builder.compare_signed("!=", answer, ir.ConstantOperand(WORD, 0)), "bool")


def call_host(builder: ir.Builder, buffers: Sequence[BufferValue], extents: Iterable[Scalar]) -> None:
    """Call the host code that the first buffer names on those between; the last one has a cell for what it says."""
    first, *arrays, last = buffers
    count = sum(1 + 2 * each.kind.ndim for each in arrays)
    words = builder.place(ir.ArrayType(WORD, max(1, count)))
    rest = iter([_int64(each) for each in extents][first.kind.ndim :])
    parts: list[ir.Operand] = []
    for each in arrays:
        own = [next(rest) for _ in range(each.kind.ndim)]
        parts += [builder.cast("ptrtoint", each.address, WORD), *own, *each.strides]
    for position, part in enumerate(parts):
        builder.store(part, builder.element(WORD, words, ir.ConstantOperand(WORD, position)))
    address = builder.load(WORD, first.address)
    number = builder.load(WORD, builder.element(WORD, first.address, ir.ConstantOperand(WORD, 1)))
    function = builder.cast("inttoptr", address, ir.POINTER)
    given = [number, builder.cast("ptrtoint", words, WORD)]
    builder.store(builder.call(function, given, ir.FunctionType(WORD, [WORD] * 2)), last.address)


def fail(builder: ir.Builder, frame: ir.Operand, check: int, value: Scalar, extent: Scalar, at: Sequence[Any]) -> None:
    """Write into the frame that a check failed, for which value and extent, and where the loops stood."""
    rows = [(CHECK_WORD, ir.ConstantOperand(WORD, check)), (EXTENT_WORD, extent.value)]
    rows += [(POSITION_WORD + k, position.value) for k, position in enumerate(at)]
    for word, content in rows:
        builder.store(content, _word(builder, frame, word))
    _store_value(builder, frame, value.value)
    builder.store(ir.ConstantOperand(WORD, CHECK_FAILED), _word(builder, frame, STATUS_WORD))


def _store_value(builder: ir.Builder, frame: ir.Operand, value: ir.Operand) -> None:
    # An integer of any width, in as many words as there are for it: beyond its own there is its sign.
    assert isinstance(value.type, ir.IntType)
    kind, own = value.type, value.type.width // WORD.width
    sign = builder.cast("trunc", builder.whole("ashr", value, ir.ConstantOperand(kind, kind.width - 1)), WORD)
    for k in range(VALUE_WORDS):
        shifted = builder.whole("ashr", value, ir.ConstantOperand(kind, WORD.width * k)) if 0 < k < own else value
        part = builder.cast("trunc", shifted, WORD) if k < own else sign
        builder.store(part, _word(builder, frame, VALUE_WORD + k))


def load(
    builder: ir.Builder,
    buffer: BufferValue,
    positions: Sequence[Scalar],
    *,
    unchanged: bool = False,
    in_lanes: bool = False,
) -> Scalar:
    """The cell of ``buffer`` at ``positions``, in the type that is computed with.

    The loop at hand writes no cell of an ``unchanged`` buffer; its steps are ``in_lanes``, which have one such cell.
    """
    address = cell_address(builder, buffer, positions, in_lanes=in_lanes)
    loading = builder.load_unchanged if unchanged else builder.load
    loaded = loading(cell_type(buffer.kind.dtype), address, buffer_tag(builder, buffer.kind))
    return value_of_cell(Scalar(builder, loaded, buffer.kind.dtype))


def value_of_cell(cell: Scalar) -> Scalar:
    """What memory holds of a type, or several such, as what is computed with."""
    match cell.dtype:
        case "float16":
            return half_to_single(cell.like(cell.value, "uint16"))
        case "bool":
            return cell.like(cell.value, "uint8").differs(0)
    return cell


def cell_of_value(value: Scalar, dtype: str) -> ir.Operand:
    """``value`` as memory holds it."""
    cell = convert(value, dtype)
    if dtype == "float16":
        cell = single_to_half(cell)
    elif dtype == "bool":
        cell = convert(cell, "uint8")
    return cell.value


def store(builder: ir.Builder, buffer: BufferValue, positions: Sequence[Scalar], value: Scalar) -> None:
    """Store ``value`` into the cell of ``buffer`` at ``positions``, converted to its type."""
    cell = cell_of_value(value, buffer.kind.dtype)
    builder.store(cell, cell_address(builder, buffer, positions), buffer_tag(builder, buffer.kind))


def buffer_tag(builder: ir.Builder, kind: BufferKind) -> str:
    """Type-based alias information, with the buffers as the types: accesses with different tags never meet."""
    module = builder.module
    root = module.note('!{!"tcdsl buffers"}')
    leaf = module.note(f'!{{!"buffer {kind.slot}", {root}, i64 0}}')
    return f", !tbaa {module.note(f'!{{{leaf}, {leaf}, i64 0}}')}"


def cell_type(dtype: str) -> ir.Type:
    """The type of cells in memory: bool is a byte and float16 sixteen bits."""
    if dtype in ("bool", "float16"):
        dtype = "uint8" if dtype == "bool" else "uint16"
    found: ir.Type = llvm_type(dtype)
    return found


def cell_address(
    builder: ir.Builder, buffer: BufferValue, positions: Sequence[Scalar], *, in_lanes: bool = False
) -> ir.Operand:
    """The address of the cell at ``positions``, which checked code tests; see `address_of`."""
    values = [convert(position, "int64").value for position in positions]
    address = address_of(builder, buffer, values, in_lanes=in_lanes, apart=in_lanes)
    return _checked(builder, buffer, values, address) if buffer.kind.checked else address


def address_of(
    builder: ir.Builder,
    buffer: BufferValue,
    positions: Sequence[ir.Operand],
    *,
    in_lanes: bool = False,
    apart: bool = False,
) -> ir.Operand:
    """The address of a cell of ``buffer``; ``in_lanes`` an address that a loop changes by one number alone.

    The terms of a sum are added ``apart``, so that a window's place is no part of what changes.
    """
    kind = buffer.kind
    units = (kind.contiguous and axis == kind.ndim - 1 for axis in range(len(positions)))
    steps = [
        part if unit else builder.mul(part, stride, steady=True)
        for position, stride, unit in zip(positions, buffer.strides, units, strict=True)
        for part in (position.terms if apart else (position,))
    ]
    # What changes least is added first, so that inner loops add little.
    steps.sort(key=lambda step: step.depth)
    # Rows of a tile so have a register each, and share the rest.
    last = [steps.pop()] if in_lanes and len(steps) > 1 else []
    offset: ir.Operand = ir.ConstantOperand(WORD, 0)
    for step in steps:
        offset = builder.add(offset, step, steady=True)
    address = builder.element(cell_type(kind.dtype), buffer.address, offset, inbounds=not last)
    return builder.element(cell_type(kind.dtype), address, *last, inbounds=False) if last else address


def _checked(
    builder: ir.Builder, buffer: BufferValue, positions: Sequence[ir.Operand], address: ir.Operand
) -> ir.Operand:
    # An access out of range is recorded and sent to a harmless place in the frame; the run raises at its end.
    for axis, (position, extent) in enumerate(zip(positions, buffer.extents, strict=True)):
        outside = builder.compare_unsigned(">=", position, extent)
        record_outside(builder, buffer, outside, axis, position, extent)
        address = builder.select(outside, scratch(builder, buffer), address)
    return address


def record_outside(
    builder: ir.Builder, buffer: BufferValue, outside: ir.Operand, axis: int, position: ir.Operand, extent: ir.Operand
) -> None:
    """Where ``outside`` holds, write into the frame that ``position`` is out of range along ``axis``, if it is the
    first one.
    """
    frame = buffer.frame
    assert frame is not None
    with builder.seldom(outside), _none_before(builder, frame):
        rows = ((CHECK_WORD, buffer.kind.slot), (POSITION_WORD, axis), (STATUS_WORD, OUT_OF_RANGE))
        for word, number in rows:
            builder.store(ir.ConstantOperand(WORD, number), _word(builder, frame, word))
        _store_value(builder, frame, position)
        builder.store(extent, _word(builder, frame, EXTENT_WORD))


def _none_before(builder: ir.Builder, frame: ir.Operand) -> AbstractContextManager[Any]:
    # What goes wrong because something went wrong before does not matter.
    status = builder.load(WORD, _word(builder, frame, STATUS_WORD))
    return builder.seldom(builder.compare_unsigned("==", status, ir.ConstantOperand(WORD, 0)))


def scratch(builder: ir.Builder, buffer: BufferValue) -> ir.Operand:
    """The harmless place in the frame of a checked ``buffer``."""
    assert buffer.frame is not None
    return _word(builder, buffer.frame, SCRATCH_WORD)


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
    return BufferValue(kind, address, strides, frame, tuple(_int64(extent) for extent in extents or ()))


def box(
    builder: ir.Builder, parent: BufferValue, starts: Sequence[Scalar], extents: Sequence[Scalar | None]
) -> BufferValue:
    """The box of ``parent`` that begins at ``starts``; an axis whose extent is None is left out."""
    kept = [axis for axis, extent in enumerate(extents) if extent is not None]
    contiguous = not kept or (parent.kind.contiguous and kept[-1] == parent.kind.ndim - 1)
    # The slot of the parent, because it is the same memory.
    kind = replace(parent.kind, ndim=len(kept), contiguous=contiguous)
    positions = [_int64(start) for start in starts]
    counts = [None if extent is None else _int64(extent) for extent in extents]
    address = address_of(builder, parent, positions)
    strides = tuple(parent.strides[axis] for axis in kept)
    if not kind.checked:
        return BufferValue(kind, address, strides)
    outside = _outside(builder, parent, positions, counts)
    address = builder.select(outside, scratch(builder, parent), address)
    # Nothing is in range of a view that is out of range.
    ranges = tuple(builder.select(outside, ir.ConstantOperand(WORD, 0), count) for count in counts if count is not None)
    return BufferValue(kind, address, strides, parent.frame, ranges)


def _int64(number: Scalar) -> ir.Operand:
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
