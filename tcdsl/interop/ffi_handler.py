"""The handler that XLA calls on the CPU: it runs an `ArrayFunction` on XLA's own buffers.

The layout of what XLA passes is that of ``xla/ffi/api/c_api.h``, version 0.x of its interface, which comes with JAX.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

import numpy as np

from tcdsl.interop.array_functions import function_numbered

__all__ = ["HANDLER", "NUMBER"]

NUMBER = "function"
"""The attribute that says which function: an int64."""

_DTYPES = {
    1: "bool",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "uint8",
    7: "uint16",
    8: "uint32",
    9: "uint64",
    10: "float16",
    11: "float32",
    12: "float64",
}
_METADATA, _EXECUTE, _INTERNAL = 1, 3, 13


class _Extension(Structure):
    pass


_Extension._fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", POINTER(_Extension))]


class _Version(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(_Extension)),
        ("major_version", c_int),
        ("minor_version", c_int),
    )


class _Metadata(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("api_version", _Version),
        ("traits", c_uint32),
        ("state_type_id", c_int64),
    )


class _MetadataExtension(Structure):
    _fields_ = (("extension_base", _Extension), ("metadata", POINTER(_Metadata)))


class _Buffer(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(_Extension)),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    )


class _Buffers(Structure):
    # Of arguments and of results.
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(_Extension)),
        ("size", c_int64),
        ("types", POINTER(c_int)),
        ("buffers", POINTER(POINTER(_Buffer))),
    )


class _Scalar(Structure):
    _fields_ = (("dtype", c_int), ("value", POINTER(c_int64)))


class _Attributes(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(_Extension)),
        ("size", c_int64),
        ("types", POINTER(c_int)),
        ("names", c_void_p),
        ("attributes", POINTER(POINTER(_Scalar))),
    )


class _ErrorArguments(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(_Extension)),
        ("message", c_char_p),
        ("code", c_int),
    )


class _Interface(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(_Extension)),
        ("api_version", _Version),
        ("internal_api", c_void_p),
        ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))),
    )


class _CallFrame(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension_start", POINTER(_Extension)),
        ("api", POINTER(_Interface)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
        ("future", c_void_p),
    )


def _arrays(buffers: _Buffers) -> list[np.ndarray]:
    return [_array(buffers.buffers[k].contents) for k in range(buffers.size)]


def _array(buffer: _Buffer) -> np.ndarray:
    dtype = np.dtype(_DTYPES[buffer.dtype])
    shape = tuple(buffer.dims[: buffer.rank])
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(buffer.data)
    return np.ctypeslib.as_array(memory).view(dtype).reshape(shape)


def _answered_metadata(frame: _CallFrame) -> bool:
    extension = frame.extension_start
    while extension:
        if extension.contents.type == _METADATA:
            metadata = ctypes.cast(extension, POINTER(_MetadataExtension)).contents.metadata.contents
            metadata.api_version.major_version = 0
            metadata.api_version.minor_version = 3
            metadata.traits = 0
            return True
        extension = extension.contents.next
    return False


@ctypes.CFUNCTYPE(c_void_p, POINTER(_CallFrame))
def HANDLER(pointer: Any) -> Any:  # noqa: N802  # it is a constant
    """What XLA calls."""
    frame = pointer.contents
    try:
        if _answered_metadata(frame) or frame.stage != _EXECUTE:
            return None
        function = function_numbered(frame.attributes.attributes[0].contents.value[0])
        function.run_into(_arrays(frame.arguments), _arrays(frame.results))
        return None
    except BaseException as error:
        message = f"{type(error).__name__}: {error}".encode()
        given = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message, _INTERNAL)
        return frame.api.contents.create_error(ctypes.byref(given))
