"""Functions of Python that programs call: by the interpreter, and by machine code through one address.

A program knows such a function by the cells of an array, ``[address, number]``: the address of what machine code calls,
and the number of a `HostCode`. So no compiled code depends on the function, and it lives as long as the cells.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tcdsl.errors import DtypeError, ShapeError, TcdslError
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.span import Span

__all__ = ["ENTER", "HOSTED", "HostCode", "Types", "array_at", "entered", "host_code", "raised_by_host", "told_where"]

HOSTED = "host "
"""How the label begins of a check that fails where a function of Python has raised."""

_NUMBERS = itertools.count()
_BY_NUMBER: weakref.WeakValueDictionary[int, HostCode] = weakref.WeakValueDictionary()
_RAISED = threading.local()

Types = tuple[tuple[str, int], ...]


class HostCode:
    """``function`` for arrays of the element types and ranks ``given``, whose results have those that are ``made``.

    It gets copies of its own: what it keeps or changes is nobody else's. ``native`` has the ``address`` of machine code
    that does the same, called as `ENTER` is.
    """

    def __init__(self, name: str, function: Callable[..., Any], given: Types, made: Types, native: Any = None) -> None:
        self.name, self.given, self.made = name, given, made
        self._function, self._native = function, native
        self._number = next(_NUMBERS)
        _BY_NUMBER[self._number] = self

    def cells(self) -> np.ndarray:
        """The array by which programs know this."""
        owner = _Cells(_ADDRESS if self._native is None else self._native.address, self._number)
        owner.code = self
        return np.frombuffer(owner, np.int64)

    def run(self, arrays: Sequence[np.ndarray], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """The results, whose shapes are to be ``shapes``; `ShapeError` or `DtypeError` if they are others."""
        found = self._function(*[np.array(each)[()] for each in arrays])
        if len(self.made) == 1 and not (isinstance(found, tuple | list) and len(found) == 1):
            found = (found,)
        if not isinstance(found, tuple | list) or len(found) != len(self.made):
            what = f"{len(found)} results" if isinstance(found, tuple | list) else "one result"
            fact = f"`{self.name}` returns {what}, but {len(self.made)} are declared"
            raise ShapeError.at(fact, hint="return a tuple with one array for each result")
        return [
            self._result(value, tuple(shape), dtype)
            for value, shape, (dtype, _) in zip(found, shapes, self.made, strict=True)
        ]

    def _result(self, value: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        if isinstance(value, np.ma.MaskedArray):
            hint = "return `result.filled(...)`, or the mask as a result of its own"
            raise DtypeError.at(f"`{self.name}` returns a masked array, whose mask would be lost", hint=hint)
        array = np.asarray(value)
        if array.shape != shape:
            fact = f"`{self.name}` returns an array of shape {array.shape}, but its declared shape is {shape}"
            hint = "the `shape` of a host function is that of what it returns, an adjoint has that of its input"
            raise ShapeError.at(fact, hint=hint)
        wanted = numpy_dtype(dtype)
        if array.dtype != wanted and not np.can_cast(array.dtype, wanted, "same_kind"):
            fact = f"`{self.name}` returns an array of type {array.dtype}, but the declared type is {dtype}"
            raise DtypeError.at(fact, hint=f"convert it, or declare the type: `shape` gives (sizes, '{array.dtype}')")
        return array.astype(wanted, copy=False)

    def run_on(self, arrays: Sequence[np.ndarray]) -> None:
        """Run on what is given, and into what is made."""
        places = arrays[len(self.given) :]
        made = self.run(arrays[: len(self.given)], [each.shape for each in places])
        for place, array in zip(places, made, strict=True):
            place[...] = array

    def at(self, words: int) -> list[np.ndarray]:
        """The arrays in memory: ``words`` has for each its address, its extents and its strides, in elements."""
        kinds = (*self.given, *self.made)
        held = iter((ctypes.c_int64 * sum(1 + 2 * rank for _, rank in kinds)).from_address(words))
        arrays = []
        for dtype, rank in kinds:
            address, extents = next(held), [next(held) for _ in range(rank)]
            size = numpy_dtype(dtype).itemsize
            arrays.append(array_at(address, extents, [size * next(held) for _ in range(rank)], dtype))
        return arrays


class _Cells(ctypes.c_int64 * 2):  # type: ignore[misc]
    code: HostCode


class _Memory:
    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def array_at(address: int, extents: Sequence[int], strides: Sequence[int] | None, dtype: str) -> np.ndarray:
    """The array at an address, with ``strides`` in bytes, or row-major."""
    kind = numpy_dtype(dtype)
    if 0 in extents:
        return np.empty(extents, kind)
    steps = None if strides is None else tuple(strides)
    made: np.ndarray = np.asarray(
        _Memory(
            {"version": 3, "data": (address, False), "shape": tuple(extents), "strides": steps, "typestr": kind.str}
        )
    )
    return made


def host_code(number: int) -> HostCode:
    """The code of that number."""
    return _BY_NUMBER[number]


def entered(number: int, arrays: Sequence[np.ndarray] | int) -> int:
    """Call the code of that number, for machine code, which says where its arrays are; 1 if it has raised."""
    code = _BY_NUMBER[number]
    try:
        code.run_on(code.at(arrays) if isinstance(arrays, int) else arrays)
    except BaseException as fault:
        _RAISED.fault = fault, code.name
        return 1
    return 0


ENTER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(entered)
"""What machine code calls: `entered`."""
_ADDRESS = ctypes.cast(ENTER, ctypes.c_void_p).value


def raised_by_host(span: Span | None) -> BaseException:
    """What the function that machine code has called last on this thread has raised."""
    fault, name = _RAISED.fault
    del _RAISED.fault
    return told_where(fault, name, span)


def told_where(fault: BaseException, name: str, span: Span | None) -> BaseException:
    """``fault`` of the function ``name``, with the place where a program calls it."""
    if isinstance(fault, TcdslError):
        if len(fault.diagnostics) == 1 and fault.diagnostics[0].span is None:
            return replace(fault.diagnostics[0], span=span).error()
    elif span is not None:
        fault.add_note(f"raised by `{name}`, called at {span.filename}:{span.position}: {span.text}")
    return fault
