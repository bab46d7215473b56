"""The only file that relies on what NumPy and Python do not document; each function has a documented way out.

Compiled code reads the fields of NumPy's array structure, and the items of a tuple, without going through Python. The
fields are NumPy's binary interface, unchanged since its first version; `array_header` and `tuple_header` test them on
live objects first.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

__all__ = ["array_header", "bytes_header", "tuple_header"]


@cache
def array_header() -> int | None:
    """How many bytes of an array object come before ``data, nd, dimensions, strides, base, descr, flags``.

    The last eight of them are the address of its type.
    ``None`` if this interpreter or NumPy lays arrays out differently: then addresses are asked for array by array.
    """
    header = object.__basicsize__
    base = np.zeros((4, 6), np.float32)
    frozen = np.arange(5, dtype=np.int16)[::-2]
    frozen.flags.writeable = False
    samples = (base, base[::2, ::-3], base.T, np.zeros(()), frozen, np.zeros((3, 0, 2), np.bool_))
    try:
        return header if all(_fields(array, header) == _expected(array) for array in samples) else None
    except Exception:
        return None


@cache
def tuple_header() -> int | None:
    """How many bytes of a tuple come before the addresses of its items; ``None`` if that cannot be told."""
    header = tuple.__basicsize__
    samples: tuple[tuple[Any, ...], ...] = (("a",), (1.5, None, "b"), (np.zeros(2), header))
    try:
        found = [(ctypes.c_ssize_t * len(each)).from_address(id(each) + header) for each in samples]
        return header if all(list(f) == list(map(id, s)) for f, s in zip(found, samples, strict=True)) else None
    except Exception:
        return None


@cache
def bytes_header() -> int | None:
    """How many bytes of a ``bytes`` object come before its own; ``None`` if that cannot be told."""
    header = bytes.__basicsize__ - 1
    samples = (b"ab", bytes(range(256)), b"\0" * 99 + b"x")
    try:
        return (
            header
            if all(ctypes.string_at(id(each) + header, len(each) + 1) == each + b"\0" for each in samples)
            else None
        )
    except Exception:
        return None


def _fields(array: np.ndarray[Any, Any], header: int) -> tuple[Any, ...]:
    address = id(array)
    if ctypes.c_ssize_t.from_address(address + header - 8).value != id(np.ndarray):
        return ()
    data, dimensions, strides, descr = (
        ctypes.c_ssize_t.from_address(address + header + offset).value for offset in (0, 16, 24, 40)
    )
    ndim = ctypes.c_int.from_address(address + header + 8).value
    flags = ctypes.c_int.from_address(address + header + 48).value
    if ndim != array.ndim:
        return ()
    words = ctypes.c_ssize_t * ndim
    shape = tuple(words.from_address(dimensions)) if ndim else ()
    steps = tuple(words.from_address(strides)) if ndim else ()
    return data, shape, steps, descr, bool(flags & 0x1), bool(flags & 0x100), bool(flags & 0x400)


def _expected(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    flags = array.flags
    place = array.__array_interface__["data"][0]
    return place, array.shape, array.strides, id(array.dtype), flags.c_contiguous, flags.aligned, flags.writeable
