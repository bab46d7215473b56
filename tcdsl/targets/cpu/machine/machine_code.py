"""From the nests of a kernel, or the text of the driver, to functions that can be called by address.

The machine code of each function is kept by itself, under a name that says what it depends on, and not who needs it: a
second program with the same kinds of nests compiles next to nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tcdsl.installation import FOLDER, sources_digest
from tcdsl.locks import COMPILING, COMPILING_AHEAD
from tcdsl.progress import advance
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.emission.interface import driver_symbols, python_symbol
from tcdsl.targets.cpu.machine.object_code import LoadedObject, emission, object_code
from tcdsl.targets.cpu.machine.processor import processor_of_code, vector_machine
from tcdsl.targets.cpu.machine.threading_layer import default_threads

if TYPE_CHECKING:
    from tcdsl.lowering.loopir.loops import Kernel
    from tcdsl.targets.cpu.layout.kernel_code import KernelCode
    from tcdsl.targets.protocol.target import Build

__all__ = [
    "CompiledModule",
    "begin_driver",
    "compiled_driver",
    "compiled_module",
    "generator_digest",
    "kept_module",
    "module_stem",
    "nest_symbol",
    "python_function",
]


class CompiledModule:
    """Machine code: ``addresses`` are those of a kernel's nests, in order.

    ``from_disk`` says whether nothing had to be compiled. The addresses are good as long as this lives.
    """

    def __init__(self, addresses: Sequence[int], loaded: object, from_disk: bool) -> None:
        self.from_disk = from_disk
        self.addresses = addresses
        self._loaded = loaded


_NESTS: WeakValueDictionary[tuple[Path, str], LoadedObject] = WeakValueDictionary()
#: What this process has compiled, for its other directories.
_DRIVERS: dict[str, bytes] = {}
#: The threads that are compiling some.
_BEGUN: dict[str, Thread] = {}


def compiled_module(store: ProgramStore, kernel: Kernel, code: KernelCode, build: Build, level: int) -> CompiledModule:
    """The nests of ``kernel``: compiled at LLVM's ``level``, or taken from ``store``."""
    symbols = [nest_symbol(key, level) for key in code.keys]
    with COMPILING:
        loaded = _known_nests(store, symbols)
        absent = {symbol: number for number, symbol in reversed([*enumerate(symbols)]) if symbol not in loaded}
        if absent:
            made = _compiled(kernel, build, {number: symbol for symbol, number in absent.items()}, level)
            for symbol, each in made.items():
                store.write(f"{symbol}.code", each)
            whole = LoadedObject(list(made.values()), list(made))
            for symbol in made:
                loaded[symbol] = _NESTS[store.directory, symbol] = whole
        return _of_nests(symbols, loaded, from_disk=not absent)


def _of_nests(symbols: Sequence[str], loaded: Mapping[str, LoadedObject], *, from_disk: bool) -> CompiledModule:
    addresses = [loaded[symbol].addresses[symbol] for symbol in symbols]
    return CompiledModule(addresses, list(loaded.values()), from_disk=from_disk)


def kept_module(store: ProgramStore, symbols: Sequence[str]) -> CompiledModule | None:
    """The machine code of nests with these symbols (`nest_symbol`), if all of it is in ``store``."""
    with COMPILING:
        loaded = _known_nests(store, symbols)
        if any(symbol not in loaded for symbol in symbols):
            return None
        return _of_nests(symbols, loaded, from_disk=True)


def compiled_driver(store: ProgramStore, text: str, constants: Mapping[str, int]) -> LoadedObject:
    """The driver of this ``text``: see `tcdsl.targets.cpu.emission.driver_emission`."""
    stem = module_stem("tcdsl_driver", text)
    symbols = driver_symbols(text)
    with COMPILING:
        loaded = _from_disk(store, {f"{stem}.code": symbols})
        if loaded is None:
            ahead = _BEGUN.pop(stem, None)
            if ahead is not None:
                ahead.join()
            code = _DRIVERS.get(stem)
            if code is None:
                code = _DRIVERS[stem] = _driver_code(text, constants)
            store.write(f"{stem}.code", code)
            loaded = LoadedObject([code], symbols)
        return loaded


def begin_driver(store: ProgramStore, text: str, constants: Mapping[str, int]) -> None:
    """What `compiled_driver` will have to compile, if anything, is compiled in another thread from now on."""
    stem = module_stem("tcdsl_driver", text)
    if stem in _DRIVERS or stem in _BEGUN or store.read(f"{stem}.code") is not None:
        return
    import tcdsl.targets.cpu.emission.driver_emission  # noqa: F401  # imports are for the thread of the user

    def work() -> None:
        try:
            _DRIVERS[stem] = _driver_code(text, constants)
        except Exception:  # who needs it compiles it again
            pass
        finally:
            COMPILING_AHEAD.release()

    if COMPILING_AHEAD.acquire(blocking=False):
        # Python ends when it has ended.
        thread = Thread(target=work, name="tcdsl driver", daemon=False)
        try:
            thread.start()
        except RuntimeError:
            COMPILING_AHEAD.release()
        else:
            _BEGUN[stem] = thread


def _driver_code(text: str, constants: Mapping[str, int]) -> bytes:
    from tcdsl.targets.cpu.emission.driver_emission import emitted_driver

    with emission(quick=True):
        return object_code(emitted_driver(text, constants), 0)


def nest_symbol(key: str, level: int) -> str:
    """The symbol of the nest with this key, compiled at LLVM's ``level``; its entry on disk is named after it."""
    return f"nest_{hashlib.sha256(f'{generator_digest()}{level}{key}'.encode()).hexdigest()[:32]}"


def _known_nests(store: ProgramStore, symbols: Sequence[str]) -> dict[str, LoadedObject]:
    # What holds those of the symbols that are in memory or on disk.
    loaded: dict[str, LoadedObject] = {}
    for symbol in symbols:
        known = _NESTS.get((store.directory, symbol))
        if known is not None:
            loaded[symbol] = known
    missing = sorted({symbol for symbol in symbols if symbol not in loaded})
    kept = _from_disk(store, {f"{symbol}.code": [symbol] for symbol in missing})
    if kept is not None:
        for symbol in kept.addresses:
            loaded[symbol] = _NESTS[store.directory, symbol] = kept
    return loaded


def _compiled(kernel: Kernel, build: Build, symbols: Mapping[int, str], level: int) -> dict[str, bytes]:
    # The object code of the nests with these numbers, each under its symbol.
    from tcdsl.targets.cpu.emission.module_emission import emitted_nests
    from tcdsl.targets.cpu.machine.concurrent_llvm import concurrently

    def compiled(nest: tuple[str, str]) -> tuple[str, bytes]:
        return nest[0], object_code(nest[1], level)

    count = len(symbols)
    made: dict[str, bytes] = {}
    nests = emitted_nests(kernel, build.contiguous, symbols, vector_machine(), checked=build.checked)
    with emission(quick=level < 3):
        for symbol, code in concurrently(compiled, nests, min(count, default_threads())):
            made[symbol] = code
            advance(f"{len(made)} of {count} nests")
    return made


def _from_disk(store: ProgramStore, files: Mapping[str, Sequence[str]]) -> LoadedObject | None:
    # The symbols of the files that could be read.
    found = {name: code for name in files if (code := store.read(name)) is not None}
    if not found:
        return None
    symbols = [symbol for name in found for symbol in files[name]]
    try:
        return LoadedObject(list(found.values()), symbols)
    except (RuntimeError, TypeError) as fault:
        store.reject(next(iter(found)), fault)
        return None


@cache
def generator_digest() -> str:
    """All that machine code depends on beside the module's text: this target's files, versions, the host."""
    import llvmlite
    import llvmlite.binding as llvm
    import numpy as np

    sources = sources_digest(os.path.join(FOLDER, "targets", "cpu"))
    versions = (sys.version, llvmlite.__version__, np.__version__)
    processor = (llvm.get_default_triple(), *processor_of_code())
    return hashlib.sha256(repr((sources, versions, processor)).encode()).hexdigest()


def module_stem(title: str, text: str) -> str:
    """The name of the module with this text, without its suffix: ``matmul_`` and a hash."""
    key = f"{generator_digest()}\0{text}"
    safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in title)[:40] or "kernel"
    return f"{safe}_{hashlib.sha256(key.encode()).hexdigest()[:20]}"


_FASTCALL = 0x80  # Functions of Python's stable interface: a call costs no more than one of a built-in.


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
