"""From the text of a generated module, or of the driver, to functions that can be called by address.

The machine code of each function is kept by itself, under a name that says what it depends on, and not who needs it: a
second program with the same kinds of nests compiles next to nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread
from weakref import WeakValueDictionary

from tcdsl.locks import COMPILING, COMPILING_AHEAD
from tcdsl.progress import advance
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.emission.driver_symbols import driver_symbols
from tcdsl.targets.cpu.machine.module_names import generator_digest, module_stem
from tcdsl.targets.cpu.machine.object_code import LoadedObject, emission, object_code
from tcdsl.targets.cpu.machine.processor import vector_form
from tcdsl.targets.cpu.machine.threading_layer import default_threads

__all__ = ["CompiledModule", "begin_driver", "compiled_driver", "compiled_module", "kept_module", "nest_symbol"]


class CompiledModule:
    """Machine code of a module's functions: ``addresses["nest_C"]`` is ``void (int64 begin, int64 end, int64 frame)``.

    ``path`` is the file that shows the text, ``from_disk`` says whether nothing had to be compiled. The addresses are
    good as long as this lives.
    """

    def __init__(self, path: Path, addresses: Mapping[str, int], loaded: object, from_disk: bool) -> None:
        self.path = path
        self.from_disk = from_disk
        self.addresses = addresses
        self._loaded = loaded


_MODULES: WeakValueDictionary[tuple[Path, int], CompiledModule] = WeakValueDictionary()
_NESTS: WeakValueDictionary[tuple[Path, str], LoadedObject] = WeakValueDictionary()
#: What this process has compiled, for its other directories.
_DRIVERS: dict[str, bytes] = {}
#: The threads that are compiling some.
_BEGUN: dict[str, Thread] = {}


def compiled_module(store: ProgramStore, stem: str, text: str, nests: Mapping[str, str], level: int) -> CompiledModule:
    """The nests of the generated module ``text``: compiled at LLVM's ``level``, or taken from ``store``.

    ``nests`` gives each its key (`tcdsl.targets.cpu.printing.nest_deduplication.shared`).
    """

    def made(path: Path) -> CompiledModule:
        symbols = {name: nest_symbol(key, level) for name, key in nests.items()}
        loaded, compiled = _loaded_nests(store, text, symbols, level)
        addresses = {name: loaded[symbol].addresses[symbol] for name, symbol in symbols.items()}
        return CompiledModule(path, addresses, list(loaded.values()), from_disk=not compiled)

    return _module(store, stem, text, level, made)


def kept_module(store: ProgramStore, symbols: Sequence[str]) -> CompiledModule | None:
    """The machine code of nests with these symbols (`nest_symbol`), if all of it is in ``store``."""
    with COMPILING:
        loaded = _known_nests(store, symbols)
        if any(symbol not in loaded for symbol in symbols):
            return None
        addresses = {symbol: loaded[symbol].addresses[symbol] for symbol in symbols}
        return CompiledModule(store.directory, addresses, list(loaded.values()), from_disk=True)


def compiled_driver(store: ProgramStore, text: str, constants: Mapping[str, int]) -> CompiledModule:
    """The driver of this ``text``: see `tcdsl.targets.cpu.emission.driver_emission`."""
    stem = module_stem("tcdsl_driver", text)
    symbols = driver_symbols(text)

    def made(path: Path) -> CompiledModule:
        loaded = _from_disk(store, {f"{stem}.code": symbols})
        if loaded is not None:
            return CompiledModule(path, loaded.addresses, loaded, from_disk=True)
        ahead = _BEGUN.pop(stem, None)
        if ahead is not None:
            ahead.join()
        code = _DRIVERS.get(stem)
        if code is None:
            code = _DRIVERS[stem] = _driver_code(text, constants)
        store.write(f"{stem}.code", code)
        loaded = LoadedObject([code], symbols)
        return CompiledModule(path, loaded.addresses, loaded, from_disk=False)

    return _module(store, stem, text, 3, made)


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


def _module(
    store: ProgramStore, stem: str, text: str, level: int, made: Callable[[Path], CompiledModule]
) -> CompiledModule:
    with COMPILING:
        path = store.directory / f"{stem}.py"
        found = _MODULES.get((path, level))
        if found is None:
            store.write_text(path.name, text)
            found = _MODULES[path, level] = made(path)
        return found


def nest_symbol(key: str, level: int) -> str:
    """The symbol of the nest with this key, compiled at LLVM's ``level``; its entry on disk is named after it."""
    return f"nest_{hashlib.sha256(f'{generator_digest()}{level}{key}'.encode()).hexdigest()[:32]}"


def _loaded_nests(
    store: ProgramStore, text: str, symbols: Mapping[str, str], level: int
) -> tuple[dict[str, LoadedObject], list[str]]:
    # What holds each symbol, and the symbols that had to be compiled.
    loaded = _known_nests(store, tuple(symbols.values()))
    absent = {symbol: name for name, symbol in symbols.items() if symbol not in loaded}
    if absent:
        code = _compiled(text, {name: symbol for symbol, name in absent.items()}, level)
        for symbol, each in code.items():
            store.write(f"{symbol}.code", each)
        made = LoadedObject(list(code.values()), list(code))
        for symbol in code:
            loaded[symbol] = _NESTS[store.directory, symbol] = made
    return loaded, list(absent)


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


def _compiled(text: str, symbols: Mapping[str, str], level: int) -> dict[str, bytes]:
    from tcdsl.targets.cpu.emission.module_emission import emitted_nests
    from tcdsl.targets.cpu.machine.concurrent_llvm import concurrently

    def compiled(nest: tuple[str, str]) -> tuple[str, bytes]:
        return nest[0], object_code(nest[1], level)

    count = len(symbols)
    made: dict[str, bytes] = {}
    nests = emitted_nests(text, symbols, vector_form())
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
