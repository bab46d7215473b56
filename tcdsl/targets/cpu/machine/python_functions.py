"""Machine code as functions of Python, by Python's stable interface: a call costs no more than one of a built-in."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tcdsl.targets.cpu.emission.driver_symbols import python_symbol
from tcdsl.targets.cpu.machine.object_code import LoadedObject

__all__ = ["python_function"]

_FASTCALL = 0x80


class _Definition(ctypes.Structure):
    # PyMethodDef.
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


_DEFINITIONS: list[_Definition] = []  # Python refers to them.

_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def python_function(driver: LoadedObject, name: str) -> Callable[..., Any]:
    """The function of this name, of the driver `tcdsl.targets.cpu.machine.machine_code.compiled_driver`."""
    definition = _Definition(name.encode(), driver.addresses[python_symbol(name)], _FASTCALL, None)
    _DEFINITIONS.append(definition)
    made: Callable[..., Any] = _new_function(ctypes.addressof(definition), None, None)
    return made
