"""The only file that relies on what Numba and NumPy do not document; each function has a documented way out.

* Where Numba keeps machine code: it must be beside the generated module, whatever ``NUMBA_CACHE_DIR`` says.
* Whether a compiled function came from Numba's cache.
* The fields of NumPy's array structure, which compiled code reads without going through Python. They are NumPy's binary
  interface, unchanged since its first version; `array_header` tests them on live arrays first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

__all__ = ["array_header", "loaded_from_cache", "own_settings"]


@contextmanager
def own_settings() -> Iterator[None]:
    """Within it, Numba keeps machine code in ``__pycache__`` beside the file of the function compiled.

    And it compiles, even if ``NUMBA_DISABLE_JIT`` is set for the sake of the user's own functions, and vectorizes what
    is written out, such as short loops of constant length, which LLVM unrolls before it vectorizes loops. Where Numba
    lacks these settings, its own order of places applies: the same place unless an environment variable or missing
    permission says otherwise.
    """
    from numba import config

    wanted = {"CACHE_DIR": "", "CACHE_LOCATOR_CLASSES": "InTreeCacheLocator", "DISABLE_JIT": 0, "SLP_VECTORIZE": 1}
    before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    try:
        for name in before:
            setattr(config, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


def loaded_from_cache(compiled: Any) -> bool:
    """Whether Numba took the machine code of ``compiled`` (a ``cfunc`` or ``njit`` function) from disk. False if
    unknown.
    """
    hits = getattr(compiled, "cache_hits", None)
    if hits is None:
        stats = getattr(compiled, "stats", None)
        hits = sum(getattr(stats, "cache_hits", {}).values())
    return bool(hits)


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
