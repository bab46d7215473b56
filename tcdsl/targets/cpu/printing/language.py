"""What printed modules import: their functions in plain Python, one number at a time.

A printed module runs as it stands, slowly, on the same frame as its machine code
(`tcdsl.targets.cpu.emission` says what that is): so it can be stepped through, and tests compare the two.
"""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import DTYPES, WIDE_INTEGERS, numpy_dtype
from tcdsl.ir.interpreter.host_code import entered
from tcdsl.ir.primitives import PRIMITIVES, Primitive
from tcdsl.targets.cpu.layout.frame import (
    CHECK_FAILED,
    CHECK_WORD,
    EXTENT_WORD,
    FIRST_WORD,
    OUT_OF_RANGE,
    PLACES_WORD,
    POSITION_WORD,
    STATUS_WORD,
    VALUE_WORD,
    VALUE_WORDS,
)

__all__ = [
    "buffer",
    "checked_buffer",
    "checked_local_buffer",
    "fail",
    "frame_of",
    "host_call",
    "lanes",
    "local_buffer",
    "nest",
    "power",
    "prange",
    "procedure",
    "rounds",
    "seldom",
    "size",
    "view",
]


def nest(*, fastmath: tuple[str, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A function of the module that the driver calls; Python takes no liberties with rounding."""
    # Integers wrap, and division by zero gives infinities, without a word.
    return np.errstate(all="ignore")


procedure = nest
"""A function of the module that its nests call."""


prange = range
"""The steps of a loop that may run at once; Python makes them one after the other."""


def seldom(rounds: range) -> range:
    """The rounds of a loop that takes little of a nest's time: short code for it is better than fast code."""
    return rounds


def rounds(frame: int, steps: range) -> range:
    """The rounds of a loop that looks for interrupts now and then: Python handles signals by itself."""
    return steps


def _words(address: int, count: int) -> Any:
    return (ctypes.c_int64 * count).from_address(address)


class _Cells:
    # An array of the frame or of the nest; with a frame its indices are tested against the extents.
    def __init__(
        self, array: np.ndarray, slot: int, frame: int | None = None, extents: Sequence[int] | None = None
    ) -> None:
        self.array, self.slot, self.frame = array, slot, frame
        self.extents = array.shape if extents is None else tuple(extents)

    def _outside(self, positions: Sequence[int]) -> bool:
        if self.frame is None:
            return False
        for axis, (position, extent) in enumerate(zip(positions, self.extents, strict=True)):
            if not 0 <= position < extent:
                if _words(self.frame, 1)[0] == 0:
                    _record(self.frame, OUT_OF_RANGE, self.slot, position, extent, [axis])
                return True
        return False

    def __getitem__(self, index: Any) -> Any:
        positions = _positions(index)
        value = self.array.dtype.type(0) if self._outside(positions) else self.array[positions]
        return np.float32(value) if value.dtype == np.float16 else value

    def __setitem__(self, index: Any, value: Any) -> None:
        positions = _positions(index)
        if not self._outside(positions):
            self.array[positions] = np.asarray(value).astype(self.array.dtype)

    def box(self, starts: Sequence[Any], extents: Sequence[Any]) -> _Cells:
        first = _positions(tuple(starts))
        counts = [1 if extent is None else int(extent) for extent in extents]
        last = [start + count - 1 for start, count in zip(first, counts, strict=True)]
        if min(counts, default=1) <= 0 or self._outside(first) or self._outside(last):
            kept = [0 for extent in extents if extent is not None]
            return _Cells(np.zeros(kept, self.array.dtype), self.slot, self.frame)
        ranges = zip(first, extents, strict=True)
        axes = (start if extent is None else slice(start, start + int(extent)) for start, extent in ranges)
        return _Cells(self.array[(*axes, ...)], self.slot, self.frame)


def _positions(index: Any) -> tuple[int, ...]:
    return tuple(map(int, index)) if isinstance(index, tuple) else (int(index),)


def _record(frame: int, status: int, check: int, value: int, extent: int, positions: Sequence[int]) -> None:
    words = _words(frame, VALUE_WORD + VALUE_WORDS)
    words[STATUS_WORD], words[CHECK_WORD], words[EXTENT_WORD] = status, check, extent
    for k, position in enumerate(positions):
        words[POSITION_WORD + k] = position
    for k in range(VALUE_WORDS):
        words[VALUE_WORD + k] = ctypes.c_int64(value >> (64 * k)).value


def _word(frame: int, position: int) -> int:
    return int(_words(frame, position + 1)[position])


def _placed(frame: int, place: int) -> int:
    # The word that the nest's place names.
    return _word(_word(frame, PLACES_WORD), place)


def frame_of(*values: int | np.ndarray) -> np.ndarray:
    """A frame for a nest that is called by hand: of the sizes and arrays that its first lines name, in order.

    ``nest_C(0, N, frame.ctypes.data)`` then runs it, and ``frame[0]`` is not 0 if one of its checks has failed.
    """
    words = [0] * FIRST_WORD
    places = []
    for value in values:
        places.append(len(words))
        if isinstance(value, np.ndarray):
            strides = [stride // value.itemsize for stride in value.strides]
            words += [value.ctypes.data, *strides, *value.shape]
        else:
            words.append(value)
    frame = np.array([*words, *places], np.int64)
    frame[PLACES_WORD] = frame.ctypes.data + 8 * len(words)
    return frame


def lanes(start: int, count: int, stop: int | None = None) -> range:
    """``count`` steps, or those before ``stop`` alone: machine code makes them at once, in lanes of vectors."""
    end = start + count
    return range(start, end if stop is None else min(end, stop))


def size(frame: int, place: int) -> int:
    """The size in the word of the frame that the nest's place ``place`` names."""
    return _word(frame, _placed(frame, place))


def buffer(frame: int, place: int, description: str) -> _Cells:
    """The buffer whose address is in the word that the nest's place names; ``description`` is its type."""
    return _buffer(frame, _placed(frame, place), description)


def _buffer(frame: int, word: int, description: str) -> _Cells:
    dtype, _, axes = description.partition("[")
    ndim = 0 if axes == "]" else axes.count(",") + 1
    address, *numbers = _words(frame + 8 * word, 1 + 2 * ndim)
    kind = numpy_dtype(dtype)
    strides = tuple(kind.itemsize * stride for stride in numbers[:ndim])
    memory = {"data": (address, False), "typestr": kind.str, "shape": tuple(numbers[ndim:]), "strides": strides}
    return _Cells(np.asarray(SimpleNamespace(__array_interface__={"version": 3, **memory})), word)


def checked_buffer(frame: int, word: int, description: str) -> _Cells:
    """The buffer whose address is in word ``word``, with every index tested: the debug mode."""
    return _Cells(_buffer(frame, word, description).array, word, frame)


def local_buffer(slot: int, description: str, frame: int | None = None, extents: Sequence[Any] = ()) -> _Cells:
    """An array of the nest's own, known by ``slot``; ``description`` gives its type and bounds of its extents."""
    dtype, _, axes = description.rstrip("]").partition("[")
    bounds = [int(extent) for extent in axes.split(",") if extent.strip()]
    return _Cells(np.zeros(bounds, numpy_dtype(dtype)), slot, frame, tuple(map(int, extents)))


def checked_local_buffer(frame: int, slot: int, description: str, extents: Sequence[Any]) -> _Cells:
    """The same as `local_buffer`, with every index tested against ``extents``."""
    return local_buffer(slot, description, frame, extents)


def view(parent: _Cells, starts: Sequence[Any], extents: Sequence[Any]) -> _Cells:
    """The box of ``parent`` that begins at ``starts``; an axis whose extent is None is left out."""
    return parent.box(starts, extents)


def host_call(code: _Cells, *arrays: _Cells) -> None:
    """Call a function of Python on the arrays but the last one, which tells whether it has raised."""
    *given, failed = (each.array for each in arrays)
    failed[...] = entered(int(code.array[1]), given)


def fail(frame: int, check: int, value: Any, extent: Any, positions: Sequence[int]) -> None:
    """Write into the frame that a check failed, for which value and extent, and where the loops stood."""
    _record(frame, CHECK_FAILED, check, int(value), int(extent), [int(position) for position in positions])


def _number(given: Any) -> Any:
    # Python's numbers in generated code are int64 and float64.
    if isinstance(given, bool) or not isinstance(given, int | float):
        return given
    return np.int64(given) if isinstance(given, int) else np.float64(given)


def _conversion(dtype: str, given: Any) -> Any:
    if dtype in WIDE_INTEGERS:
        return int(given)
    made = np.asarray(given).astype(numpy_dtype(dtype))[()]
    return np.float32(made) if dtype == "float16" else made


def _computed(row: Primitive, *given: Any) -> Any:
    # Nothing is promoted: the result has the type of the operands.
    if any(isinstance(each, int) and not -(2**63) <= each < 2**63 for each in given):
        return row.evaluate(*given)
    values = [_number(each) for each in given]
    return np.asarray(row.evaluate(*values)).astype(values[0].dtype)[()]


def power(a: Any, b: Any) -> Any:
    """``a ** b`` for numbers of one type, or for a constant integer ``b``."""
    return _computed(PRIMITIVES["pow"], a, b)


def _function_of(row: Primitive) -> str:
    called = ast.parse(row.code.format("a", "b", "c"), mode="eval").body
    return called.func.id if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) else ""


# The functions of the table of primitives and the element types, by the names that generated code has for them.
for _row in PRIMITIVES.values():
    if _function_of(_row) not in ("", "power"):
        globals()[_function_of(_row)] = partial(_computed, _row)
for _dtype in (*DTYPES, *WIDE_INTEGERS):
    globals()["bool_" if _dtype == "bool" else _dtype] = partial(_conversion, _dtype)
