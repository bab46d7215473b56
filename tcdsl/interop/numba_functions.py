"""Functions inside Numba's ``@njit``: ``tc.interop.numba``.

In compiled code a call writes where its arrays lie into an array of words. Calls of shapes that were there before are
machine code alone (`tcdsl.runtime.calls.native_calls`). Others call one address twice: first to run the function in
Python, which says what shapes the results have, then to copy these into arrays that the code has allocated. So do those
that fail, to raise what Python raises.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import NumbaNotImplementedError
from numba.np.numpy_support import as_dtype

from tcdsl.errors import ConfigurationError, DtypeError
from tcdsl.interop.array_functions import ArrayFunction, CallForm, Hole
from tcdsl.ir.dtypes import DTYPES, numpy_dtype
from tcdsl.ir.interpreter.host_code import array_at
from tcdsl.runtime.calling.structure import Structure
from tcdsl.runtime.calls.native_calls import NativeCalls

__all__ = ["NumbaFunction"]

_ARRAY = Hole()
_NUMBERS: dict[Any, Hole] = {types.int64: Hole("int"), types.float64: Hole("float"), types.boolean: Hole("bool")}
#: Results, or what was raised, by the address of the words: threads of Numba's have no memory of their own in Python.
_HELD: dict[int, Any] = {}


class NumbaFunction:
    """``g = tc.interop.numba(f)``: ``f`` for code that Numba compiles; see `tcdsl.interop.numba`."""

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        # Each signature has code of its own, made when Numba infers types.
        numba.extending.overload(self, strict=False, prefer_literal=False)(_typed(function))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """What ``f`` gives, outside of Numba's code."""
        return self.function(*arguments, **keywords)

    def __reduce__(self) -> tuple[Any, ...]:
        return NumbaFunction, (self.function,)

    def __repr__(self) -> str:
        return f"<{self.function!r} for Numba>"


class _Kind:
    """A function with operands and results of some types, as Numba's code calls it."""

    def __init__(self, function: Callable[..., Any], given: Sequence[Any]) -> None:
        name = getattr(function, "__name__", repr(function))
        kinds = given[0].types if len(given) == 1 and hasattr(given[0], "types") else given
        kinds = [numba.typeof(each) if type(each) in (float, int, bool) else each for each in kinds]  # defaults
        form = [_place(each) for each in kinds]
        #: Which of the arguments are operands, and which of those are arrays.
        self.places = [k for k, each in enumerate(form) if type(each) is Hole]
        self.arrays = [isinstance(kinds[k], types.Array) for k in self.places]
        self.operands = [
            (str(_dtype(name, k, kinds[k])), kinds[k].ndim if is_array else 0)
            for k, is_array in zip(self.places, self.arrays, strict=True)
        ]
        self.served = ArrayFunction.of(function, CallForm(tuple(form), ()))
        found = self.served.result_types([np.ones((2,) * rank, dtype) for dtype, rank in self.operands])
        self.results = list(zip(found.dtypes, found.ranks, strict=True))
        self.structure = found.structure
        holes = self.served.holes
        sizes = [(rank, numpy_dtype(dtype).itemsize) for dtype, rank in self.operands]
        given = [(-1, 8) if hole.kind else size for hole, size in zip(holes, sizes, strict=True)]
        self.native = NativeCalls(given, found.ranks)

    def entered(self, stage: int, address: int) -> None:
        """Run it in Python, or give the results; see `_lines`."""
        native = self.native
        words = (ctypes.c_int64 * native.words).from_address(address)
        if stage != _GIVE:
            arrays = []
            for (dtype, rank), hole, place in zip(self.operands, self.served.holes, native.places, strict=True):
                where = address + 8 * place if hole.kind else words[place]
                extents, strides = words[place + 1 : place + 1 + rank], words[place + 1 + rank : place + 1 + 2 * rank]
                arrays.append(array_at(where, extents, strides, dtype))
            _HELD[address] = self._made(arrays)
            if stage == _RUN_NEW:
                self.served.keep(native, arrays, address)
        for place, array in zip(native.results, _HELD[address], strict=True):
            if stage != _GIVE:
                words[place + 1 : place + 1 + array.ndim] = array.shape
            elif array.size:
                target = array_at(words[place], array.shape, None, str(array.dtype))
                target[...] = array
        if stage == _GIVE:
            del _HELD[address]

    def _made(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = self.served(arrays)
        if [(str(each.dtype), each.ndim) for each in found] != self.results:
            fact = f"{self.served.name}(): types or ranks of the results depend on the numbers that it is called with"
            raise DtypeError.at(fact, hint="call it outside of Numba's code")
        return found


#: What an address is called for: to run the function, of which shapes are new; once more; to give the results.
_RUN_NEW, _RUN, _GIVE = range(3)
#: What it answers; 0 is what `ctypes` does if something is raised from outside.
_FAILED, _DONE = 1, 2
#: What was last raised on a thread of `prange`.
_LOST: list[BaseException] = []
_KINDS: list[_Kind] = []


def _typed(function: Callable[..., Any]) -> Callable[..., Any]:
    # What Numba asks for code: it has the parameters of the function, and so has the code.
    parameters = inspect.signature(function).parameters.values()
    if all(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) for each in parameters):
        listed = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
        values = {f"_of_{each.name}": each.default for each in listed if each.default is not each.empty}
        head = ", ".join(
            f"{each.name}=_of_{each.name}" if f"_of_{each.name}" in values else each.name for each in listed
        )
        row = f"({''.join(f'{each.name}, ' for each in listed)})"
    else:
        head, row, values = "*args", "args", {}
    names = {"_code": lambda kinds: _code(function, kinds, head, row, values), **values}
    exec(f"def typed({head}): return _code({row})", names)  # noqa: S102  # parameters have names of Python's
    typed: Callable[..., Any] = names["typed"]
    return typed


def _code(
    function: Callable[..., Any], given: Sequence[Any], head: str, row: str, values: dict[str, Any]
) -> Callable[..., Any]:
    kind = _Kind(function, given)
    number = len(_KINDS)
    _KINDS.append(kind)
    functions = kind.native.functions
    names: dict[str, Any] = {"_np": np, "_numba": numba, "_enter": _ENTER, "_number": number, "_told": _told, **values}
    names.update({f"_t{k}": np.dtype(dtype) for k, (dtype, _) in enumerate(kind.results)})
    if functions is not None:
        names.update(_find=_FIND(functions[0]), _run=_ENTER_AT(functions[1]), _table=kind.native.address)
    lines = [f"def code({head}):", f"    args = {row}", *_lines(kind, functions is not None)]
    exec("\n".join(lines), names)  # noqa: S102  # what is printed below
    made: Callable[..., Any] = names["code"]
    return made


def _dtype(function: str, place: int, kind: Any) -> np.dtype[Any]:
    try:
        dtype = as_dtype(kind.dtype if isinstance(kind, types.Array) else kind)
    except (NotImplementedError, NumbaNotImplementedError, AttributeError):
        dtype = np.dtype(object)
    if str(dtype) not in DTYPES:
        fact = f"{function}(): argument {place} is {kind} in Numba, which tcdsl does not handle"
        raise DtypeError.at(fact, hint="say what is configuration outside: `tc.interop.numba(lambda x: f(x, ...))`")
    return dtype


def _place(kind: Any) -> Hole | Any:
    if not isinstance(kind, types.Type):
        return kind  # the default of a parameter
    found: Hole | None = None if kind is types.none else _NUMBERS.get(kind, _ARRAY)
    return found


def _lines(kind: _Kind, is_native: bool) -> list[str]:
    native = kind.native
    lines = [f"    words = _np.empty({max(1, native.words)}, _np.int64)"]
    for k, ((_, rank), hole, at) in enumerate(zip(kind.operands, kind.served.holes, native.places, strict=True)):
        value = f"args[{kind.places[k]}]"
        if hole.kind:
            lines.append(
                f"    words[{at}] = _np.{'float64' if hole.kind == 'float' else 'int64'}({value}).view(_np.int64)"
            )
            continue
        lines.append(f"    a{k} = {value}" if kind.arrays[k] else f"    a{k} = _np.full(1, {value})")
        values = [f"a{k}.ctypes.data", *(f"a{k}.shape[{axis}]" for axis in range(rank))]
        values += [f"a{k}.strides[{axis}]" for axis in range(rank)]
        lines += [f"    words[{at + k_}] = {value}" for k_, value in enumerate(values)]
    lines.append("    place = words.ctypes.data")
    # What is used at the end is not given up before, when only its address is left.
    held = [f"a{k}.size" for k, hole in enumerate(kind.served.holes) if not hole.kind] or ["0"]
    results = _allocated(kind)
    given = [f"r{k}[()]" if rank == 0 else f"r{k}" for k, (_, rank) in enumerate(kind.results)]
    returned = f"return {_nested(kind.served.name, kind.structure, iter(given))}"
    stage = str(_RUN_NEW)
    if is_native:
        lines += ["    record = _find(_table, place)", "    if record != 0:"]
        lines += [
            f"        memory = _np.empty(words[{native.answer}], _np.int64)",
            *[f"    {line}" for line in results],
        ]
        lines += ["        failed = _run(record, place, memory.ctypes.data)"]
        lines += [f"        words[{native.answer}] = {' + '.join([*held, 'memory.size'])}"]
        lines += ["        if failed == 0:", f"            {returned}"]
        stage = f"{_RUN_NEW} if record == 0 else {_RUN}"
    lines += [f"    if _enter(_number, {stage}, place) != {_DONE}:"]
    lines += ["        with _numba.objmode():", "            _told(place)"]
    lines += [*results, f"    _enter(_number, {_GIVE}, place)"]
    lines += [f"    words[{native.answer}] = {each}" for each in held]
    lines.append(f"    {returned}")
    return lines


def _nested(function: str, structure: Structure, leaves: Iterator[str]) -> str:
    if structure.kind == "leaf":
        return next(leaves)
    if structure.kind != "tuple":
        what = "a value that is no array" if structure.kind == "constant" else f"a {structure.kind}"
        raise ConfigurationError.at(
            f"{function}() returns {what}, but Numba's code takes arrays, and tuples of them",
            hint="return a tuple: `tc.interop.numba(lambda x: tuple(f(x).values()))`",
        )
    return f"({''.join([_nested(function, each, leaves) + ', ' for each in structure.parts])})"


def _allocated(kind: _Kind) -> list[str]:
    # Makes the arrays of the results, whose extents the words have, and enters their addresses.
    lines = []
    for k, ((_, rank), at) in enumerate(zip(kind.results, kind.native.results, strict=True)):
        extents = "".join(f"words[{at + 1 + axis}], " for axis in range(rank))
        lines += [f"    r{k} = _np.empty(({extents}), _t{k})", f"    words[{at}] = r{k}.ctypes.data"]
    return lines


def _entered(number: int, stage: int, address: int) -> int:
    try:
        _KINDS[number].entered(stage, address)
    except BaseException as fault:
        _HELD[address] = fault
        return _FAILED
    return _DONE


def _told(address: int) -> None:
    fault = _HELD.pop(address, None)
    if not isinstance(fault, BaseException):
        # Something was raised from outside, as by Control-C, while `_entered` did not look.
        fault = _LOST.pop() if _LOST else KeyboardInterrupt()
    if threading.get_ident() not in {each.ident for each in threading.enumerate()}:
        _tell_caller(fault)
    raise fault


def _tell_caller(fault: BaseException) -> None:
    # Numba loses what is raised on the threads of `prange`. Where the main thread alone can have called it, that one
    # raises it as soon as it is back in Python.
    main = threading.main_thread()
    if any(not each.daemon for each in threading.enumerate() if each is not main):
        threading.excepthook(threading.ExceptHookArgs((type(fault), fault, fault.__traceback__, None)))
        return
    # What is raised elsewhere is a class, which is called without arguments.
    _LOST[:] = [fault]
    kind = type(type(fault).__name__, (type,), {"__call__": lambda _: fault})
    raised = ctypes.py_object(kind(type(fault).__name__, (type(fault),), {}))
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main.ident or 0), raised)


_FIND = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_ENTER_AT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_ENTER = _ENTER_AT(_entered)
