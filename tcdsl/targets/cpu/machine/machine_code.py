"""From the nests of a kernel, or the text of the driver, to functions that can be called by address.

The machine code of each function is kept by itself, under a name that says what it depends on, and not who needs it: a
second program with the same kinds of nests compiles next to nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tcdsl.installation import FOLDER, sources_digest
from tcdsl.locks import COMPILING, COMPILING_AHEAD, without_collecting
from tcdsl.progress import advance, shown
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.emission.interface import TRANSPOSING, driver_symbols, python_symbol
from tcdsl.targets.cpu.machine.object_code import LoadedObject, emission, object_code
from tcdsl.targets.cpu.machine.processor import machine, processor_of_code, vector_machine
from tcdsl.targets.cpu.machine.threading_layer import default_threads
from tcdsl.targets.protocol.loaded_kernel import NestStopped

if TYPE_CHECKING:
    from tcdsl.lowering.loopir.loops import Kernel
    from tcdsl.targets.cpu.layout.kernel_code import KernelCode
    from tcdsl.targets.protocol.target import Build

__all__ = [
    "CompiledModule",
    "NestModule",
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
    """Machine code: ``addresses`` are those of a kernel's nests, in order. They are good as long as this lives.

    ``from_disk`` says whether nothing had to be compiled until now.
    """

    def __init__(self, addresses: Sequence[int], loaded: object, from_disk: bool) -> None:
        self.from_disk = from_disk
        self.addresses = addresses
        #: Whether there is an address for each.
        self.complete = True
        self._loaded = loaded

    def need(self, nests: Iterable[int]) -> None:
        """Have the addresses of the nests of these numbers, if some were left out: see `NestModule`."""


class NestModule(CompiledModule):
    """Machine code of which nests are left out until a call needs them.

    The number of such a nest and 1 stands for its address. ``make(numbers)`` compiles nests; without it they come from
    ``store``, or `NestStopped` is raised.
    """

    def __init__(self, store: ProgramStore, symbols: Sequence[str], make: _Make | None) -> None:
        super().__init__(range(1, len(symbols) + 1), {}, from_disk=True)
        self._store, self._symbols, self._make = store, symbols, make
        self._found: dict[str, LoadedObject] = {}
        with COMPILING:
            self._enter(_known_nests(store, symbols))
        #: Those that were looked for in vain just now.
        self._missed = set(symbols) - self._found.keys()

    @property
    def is_empty(self) -> bool:
        """Whether no nest has an address."""
        return not self._found

    def need(self, nests: Iterable[int]) -> None:
        """Have the addresses of the nests of these numbers: from memory, from disk, or compiled now."""
        symbols = {self._symbols[number]: number for number in sorted(nests, reverse=True)}
        with COMPILING:
            loaded = {symbol: self._found[symbol] for symbol in symbols if symbol in self._found}
            loaded |= _known_nests(self._store, [each for each in symbols if each not in {*loaded, *self._missed}])
            self._missed = set()
            absent = {number: symbol for symbol, number in symbols.items() if symbol not in loaded}
            if absent:
                if self._make is None:
                    raise NestStopped
                made = self._make(absent)
                for symbol, each in made.items():
                    self._store.write(f"{symbol}.code", each)
                whole = LoadedObject(_with_shared(self._store, made.values()), list(made))
                for symbol in made:
                    loaded[symbol] = _NESTS[self._store.directory, symbol] = whole
                self.from_disk = False
            self._enter(loaded)

    def _enter(self, loaded: Mapping[str, LoadedObject]) -> None:
        self._found |= loaded
        found, self.complete = self._found, self._found.keys() >= set(self._symbols)
        self.addresses = tuple(
            [
                found[symbol].addresses[symbol] if symbol in found else number + 1
                for number, symbol in enumerate(self._symbols)
            ]
        )


_Make = Callable[[Mapping[int, str]], Mapping[str, bytes]]
_NESTS: WeakValueDictionary[tuple[Path, str], LoadedObject] = WeakValueDictionary()
#: What this process has compiled, for its other directories.
_DRIVERS: dict[str, bytes] = {}
#: The threads that are compiling some.
_BEGUN: dict[str, Thread] = {}


def compiled_module(store: ProgramStore, kernel: Kernel, code: KernelCode, build: Build, level: int) -> NestModule:
    """The nests of ``kernel``: compiled at LLVM's ``level``, or taken from ``store``.

    Those that have nothing to do for some sizes wait until a call needs them.
    """
    from tcdsl.targets.cpu.layout.kernel_code import may_have_nothing_to_do

    def make(symbols: Mapping[int, str]) -> Mapping[str, bytes]:
        with shown(f"compiling {kernel.program.name}"), without_collecting():
            return _compiled(kernel, build, symbols, level)

    module = NestModule(store, [nest_symbol(key, level) for key in code.keys], make)
    module.need(number for number, nest in enumerate(kernel.nests) if not may_have_nothing_to_do(nest))
    return module


def kept_module(store: ProgramStore, symbols: Sequence[str]) -> NestModule | None:
    """The machine code of nests with these symbols (`nest_symbol`), as far as it is in ``store``; None for nothing."""
    module = NestModule(store, symbols, None)
    return None if symbols and module.is_empty else module


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
        return LoadedObject(_with_shared(store, found.values()), symbols)
    except (RuntimeError, TypeError) as fault:
        store.reject(next(iter(found)), fault)
        return None


_SHARED: dict[str, bytes] = {}
_CALLED = re.compile(re.escape(TRANSPOSING.encode()) + rb"\d+")


def _with_shared(store: ProgramStore, objects: Iterable[bytes]) -> list[bytes]:
    # The objects, and those with the functions that they call: object code holds the symbols of these.
    found = list(objects)
    symbols = sorted({symbol.decode() for code in found for symbol in _CALLED.findall(code)})
    return found + [_shared_code(store, symbol) for symbol in symbols]


def _shared_code(store: ProgramStore, symbol: str) -> bytes:
    name = f"{module_stem(symbol, '')}.code"
    code = store.read(name)
    if code is None:
        code = _SHARED.get(symbol)
        if code is None:
            from tcdsl.targets.cpu.emission.transposed_copies import emitted_transposition

            with emission(quick=True):
                code = _SHARED[symbol] = object_code(emitted_transposition(symbol, machine()), 1)
        store.write(name, code)
    return code


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
