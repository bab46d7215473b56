"""The only file that relies on what Numba and NumPy do not document; each function has a documented way out.

* How Numba's machine code is taken out of a compiled function, kept, and put into one again.
* The fields of NumPy's array structure, and the items of a tuple, which compiled code reads without going through
  Python. The fields are NumPy's binary interface, unchanged since its first version; `array_header` and `tuple_header`
  test them on live objects first.
"""

from __future__ import annotations

import ctypes
import logging
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = [
    "MachineCode",
    "array_header",
    "compiled_function",
    "own_settings",
    "tuple_header",
]


@contextmanager
def own_settings() -> Iterator[None]:
    """Within it Numba compiles, even if ``NUMBA_DISABLE_JIT`` is set for the sake of the user's own functions.

    And it vectorizes what is written out, such as short loops of constant length, which LLVM unrolls before it
    vectorizes loops. Where Numba lacks these settings, its own apply. Numba's log, thousands of lines for a
    compilation, is for applications that have configured its logger.
    """
    from numba import config

    wanted = {"DISABLE_JIT": 0, "SLP_VECTORIZE": 1}
    before = {name: getattr(config, name) for name in wanted if hasattr(config, name)}
    logger = logging.getLogger("numba")
    silent = logger.level == logging.NOTSET and not logger.handlers
    try:
        if silent:
            logger.setLevel(logging.WARNING)
        for name in before:
            setattr(config, name, wanted[name])
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)
        if silent:
            logger.setLevel(logging.NOTSET)


class MachineCode:
    """The machine code of the functions of one module, by name: ``kept`` from disk, ``made`` now.

    Numba has a cache of its own, which reads files without testing them and lets every fault of the disk out.
    """

    def __init__(self, kept: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self.kept = dict(kept)
        self.made: dict[str, bytes] = {}
        #: Why the code of some function could not be taken from ``kept``.
        self.fault: Exception | None = None

    def of(self, function: Callable[..., Any]) -> _FunctionCode:
        """What Numba asks for the code of ``function``."""
        return _FunctionCode(self, function.__name__)


class _FunctionCode:
    # Numba's protocol of a cache.
    def __init__(self, code: MachineCode, name: str) -> None:
        self._code, self._name = code, name

    def load_overload(self, signature: Any, target: Any) -> Any:
        payload = self._code.kept.get(self._name)
        if payload is None:
            return None
        from numba.core.compiler import CompileResult

        try:
            target.refresh()
            found = CompileResult._rebuild(target, *pickle.loads(payload))
        except Exception as fault:
            self._code.fault = fault
            return None
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if compiled.library.has_dynamic_globals or any(not part.can_cache for part in compiled.lifted):
            return
        from numba.core.serialize import dumps

        try:
            parts = compiled._reduce()
        except RuntimeError as fault:
            if "no compiled object" not in str(fault):
                raise
            # LLVM hands its code over in a callback, where Python drops what is raised: there it was Ctrl-C.
            raise KeyboardInterrupt from fault
        self._code.made[self._name] = dumps(parts)


def compiled_function(
    function: Callable[..., Any], signature: Any, options: Mapping[str, Any], code: MachineCode
) -> Any:
    """``njit(signature, **options)(function)``, with its machine code taken from ``code``, or put there."""
    from numba import njit

    made = njit(**options)(function)
    with suppress(AttributeError):
        made._cache = code.of(function)
    made.compile(signature)
    made.disable_compile()
    return made


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
