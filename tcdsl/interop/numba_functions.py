"""Functions inside Numba's ``@njit``, and Numba's functions of scalars in ops: ``tc.interop.numba``.

In compiled code a call writes where its arrays lie into an array of words, and calls one address twice: first to run
the function, which says what shapes the results have, then to copy these into arrays that the code has allocated.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.np.numpy_support import as_dtype
from numba.np.ufunc.dufunc import DUFunc

from tcdsl.errors import ConfigurationError, DtypeError, ShapeError
from tcdsl.interop.array_functions import ArrayFunction, CallForm, Hole
from tcdsl.interop.host_functions import HostFunction
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.interpreter.host_code import array_at

__all__ = ["NumbaFunction", "is_of_numba"]

_NUMBERS = {types.int64: Hole("int"), types.float64: Hole("float"), types.boolean: Hole("bool")}
#: Results, or what was raised, by the address of the words: threads of Numba's have no memory of their own in Python.
_HELD: dict[int, Any] = {}


def NumbaFunction(function: Any, derivative: Callable[..., Any] | None = None) -> Callable[..., Any]:  # noqa: N802
    """What `tcdsl.interop.numba` gives for ``function``."""
    if is_of_numba(function):
        return _of_scalars(function, derivative)
    if derivative is not None:
        raise ConfigurationError.at(
            "tc.interop.numba takes a derivative for functions of Numba alone",
            hint="ops have derivatives: `tc.grad(f)`",
        )

    @functools.wraps(function, updated=())
    def called(*arguments: Any) -> Any:
        return function(*arguments)

    # Each signature has code of its own, made when Numba infers types.
    numba.extending.overload(called, strict=False, prefer_literal=False)(functools.partial(_code, function))
    return called


# -- functions of Numba in ops


def is_of_numba(function: Any) -> bool:
    """Whether it is a function that Numba compiles."""
    return isinstance(function, Dispatcher | DUFunc | CFunc)


def _of_scalars(function: Any, derivative: Callable[..., Any] | None) -> HostFunction:
    ufunc = function if isinstance(function, DUFunc) else numba.vectorize(_python(function))
    partials = None if derivative is None else _python(derivative)

    def vjp(*given: Any) -> Any:
        *inputs, cotangent = given
        assert partials is not None
        slopes = numba.vectorize(partials)(*inputs) if len(inputs) == 1 else np.vectorize(partials)(*inputs)
        many = slopes if isinstance(slopes, tuple) else (slopes,)
        if len(many) != len(inputs):
            raise ShapeError.at(
                f"the derivative of `{called.__name__}` returns {len(many)} numbers for {len(inputs)} inputs",
                hint="return a tuple with one partial derivative for each input",
            )
        return tuple([_summed(slope * cotangent, np.shape(each)) for slope, each in zip(many, inputs, strict=True)])

    def called(*arrays: Any) -> Any:
        return ufunc(*arrays)

    called.__name__ = _python(function).__name__
    return HostFunction(called, _broadcast, None if derivative is None else vjp)


def _python(function: Any) -> Any:
    for name in ("py_func", "_pyfunc"):
        if hasattr(function, name):
            return getattr(function, name)
    return getattr(getattr(function, "_dispatcher", None), "py_func", function)


def _broadcast(*arrays: Any) -> Any:
    # Extents may be sizes that only the call knows: 1 is what stretches.
    rank = max((each.ndim for each in arrays), default=0)
    found = []
    for axis in range(-rank, 0):
        extents = [each.shape[axis] for each in arrays if each.ndim >= -axis]
        found.append(next((each for each in extents if not (isinstance(each, int) and each == 1)), extents[0]))
    return tuple(found)


def _summed(value: Any, shape: tuple[int, ...]) -> Any:
    value = np.asarray(value)
    value = value.sum(axis=tuple(range(value.ndim - len(shape))))
    axes = tuple(k for k, extent in enumerate(shape) if extent == 1 and value.shape[k] != 1)
    return value.sum(axis=axes, keepdims=True)


# -- functions in Numba's code


def _code(function: Callable[..., Any], *given: Any) -> Callable[..., Any]:
    kinds = given[0].types if len(given) == 1 and hasattr(given[0], "types") else given
    name = getattr(function, "__name__", repr(function))
    holes = tuple(_NUMBERS.get(each, Hole()) for each in kinds)
    operands = [
        (str(_dtype(name, k, each)), each.ndim if isinstance(each, types.Array) else 0) for k, each in enumerate(kinds)
    ]
    served = ArrayFunction.of(function, CallForm(holes, ()))
    found = served.result_types([np.ones((2,) * rank, dtype) for dtype, rank in operands])
    ranks = [len(shape) for shape in found.shapes([(2,) * rank for _, rank in operands])]
    results = list(zip(found.dtypes, ranks, strict=True))
    number = len(_KINDS)
    _KINDS.append((served, operands, results))
    single = found.structure.kind == "leaf"
    text = _text(operands, [isinstance(each, types.Array) for each in kinds], results, single)
    names: dict[str, Any] = {"np": np, "numba": numba, "enter": _ENTER, "number": number, "told": _told}
    names.update({f"t{k}": np.dtype(dtype) for k, (dtype, _) in enumerate(results)})
    exec(text, names)  # noqa: S102  # what is printed below
    made: Callable[..., Any] = names["code"]
    return made


_KINDS: list[tuple[ArrayFunction, list[tuple[str, int]], list[tuple[str, int]]]] = []


def _dtype(function: str, place: int, kind: Any) -> np.dtype[Any]:
    try:
        dtype = as_dtype(kind.dtype if isinstance(kind, types.Array) else kind)
    except (NotImplementedError, AttributeError):
        dtype = np.dtype(object)
    if str(dtype) not in DTYPES:
        raise DtypeError.at(f"{function}(): argument {place} is {kind} in Numba, which tcdsl does not handle")
    return dtype


def _text(
    operands: Sequence[tuple[str, int]], arrays: Sequence[bool], results: Sequence[tuple[str, int]], single: bool
) -> str:
    lines = ["def code(*args):"]
    words: list[str] = []
    for k, ((_, rank), is_array) in enumerate(zip(operands, arrays, strict=True)):
        lines.append(f"    a{k} = args[{k}]" if is_array else f"    a{k} = np.full(1, args[{k}])")
        words += [f"a{k}.ctypes.data", *[f"a{k}.shape[{axis}]" for axis in range(rank)]]
        words += [f"a{k}.strides[{axis}]" for axis in range(rank)]
    first = len(words)
    count = first + sum(1 + rank for _, rank in results)
    lines.append(f"    words = np.empty({max(1, count)}, np.int64)")
    lines += [f"    words[{k}] = {word}" for k, word in enumerate(words)]
    lines += ["    place = words.ctypes.data", "    if enter(number, 0, place):"]
    lines += ["        with numba.objmode():", "            told(place)"]
    place = first
    for k, (_, rank) in enumerate(results):
        extents = "".join(f"words[{place + 1 + axis}], " for axis in range(rank))
        lines.append(f"    r{k} = np.empty(({extents}), t{k})")
        lines.append(f"    words[{place}] = r{k}.ctypes.data")
        place += 1 + rank
    lines += ["    enter(number, 1, place)"]
    # What is used here is not given up before, when only its address is left.
    lines += [f"    words[0] = a{k}.size" for k in range(len(operands))] or ["    words[0] = 0"]
    given = [f"r{k}[()]" if rank == 0 else f"r{k}" for k, (_, rank) in enumerate(results)]
    lines.append(f"    return {given[0] if single else '(' + ''.join(each + ', ' for each in given) + ')'}")
    return "\n".join(lines)


def _entered(number: int, stage: int, address: int) -> int:
    served, operands, results = _KINDS[number]
    first = sum(1 + 2 * rank for _, rank in operands)
    words = (ctypes.c_int64 * (first + sum(1 + rank for _, rank in results))).from_address(address)
    try:
        if stage == 0:
            _HELD[address] = _results(served, operands, results, iter(words))
        place = first
        for array in _HELD[address]:
            if stage == 0:
                words[place + 1 : place + 1 + array.ndim] = array.shape
            elif array.size:
                target = array_at(words[place], array.shape, None, str(array.dtype))
                target[...] = array
            place += 1 + array.ndim
        if stage == 1:
            del _HELD[address]
    except BaseException as fault:
        _HELD[address] = fault
        return 1
    return 0


def _results(served: ArrayFunction, operands: Any, results: Any, words: Any) -> list[np.ndarray]:
    arrays = []
    for dtype, rank in operands:
        address, extents = next(words), [next(words) for _ in range(rank)]
        arrays.append(array_at(address, extents, [next(words) for _ in range(rank)], dtype))
    found = served(arrays)
    if [(str(each.dtype), each.ndim) for each in found] != results:
        fact = f"{served.name}(): types or ranks of the results depend on the numbers that it is called with"
        raise DtypeError.at(fact, hint="call it outside of Numba's code")
    return found


def _told(address: int) -> None:
    raise _HELD.pop(address)


_ENTER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(_entered)
