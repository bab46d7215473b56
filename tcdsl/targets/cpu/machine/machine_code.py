"""From the text of a generated module, or of the driver, to functions that can be called by address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from tcdsl.locks import COMPILING
from tcdsl.targets.cache.kept_values import keep_value, kept_value
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.emission.driver_emission import driver_symbols, emitted_driver
from tcdsl.targets.cpu.emission.module_emission import EmittedNest, emitted_nests
from tcdsl.targets.cpu.machine.concurrent_llvm import concurrently
from tcdsl.targets.cpu.machine.module_names import module_stem
from tcdsl.targets.cpu.machine.object_code import LoadedObject, object_code
from tcdsl.targets.cpu.machine.threading_layer import default_threads

__all__ = ["CompiledModule", "compiled_driver", "compiled_module"]


class CompiledModule:
    """Machine code of a module's functions: ``addresses["nest_C"]`` is ``void (int64 begin, int64 end, int64 frame)``.

    ``path`` is the file that shows the text, ``from_disk`` says whether the machine code was found beside it. The
    addresses are good as long as this lives.
    """

    def __init__(self, path: Path, loaded: LoadedObject, from_disk: bool) -> None:
        self.path = path
        self.from_disk = from_disk
        self.addresses: Mapping[str, int] = loaded.addresses
        self._loaded = loaded


_LOADED: WeakValueDictionary[Path, Any] = WeakValueDictionary()


def compiled_module(store: ProgramStore, stem: str, text: str, nests: Sequence[str]) -> CompiledModule:
    """The ``nests`` of the generated module ``text``: compiled, or taken from ``store``, where ``stem`` names them."""
    return _module(store, stem, text, nests, lambda: _compiled_nests(text, len(nests)))


def compiled_driver(store: ProgramStore, text: str, constants: Mapping[str, int]) -> CompiledModule:
    """The driver of this ``text``: see `tcdsl.targets.cpu.emission.driver_emission`."""
    stem = module_stem("tcdsl_driver", text)
    return _module(store, stem, text, driver_symbols(text), lambda: [object_code(emitted_driver(text, constants))])


def _compiled_nests(text: str, count: int) -> list[bytes]:
    return concurrently(_compiled_nest, emitted_nests(text), min(count, default_threads()))


def _compiled_nest(nest: EmittedNest) -> bytes:
    # Where rows are passed again and again, what LLVM's highest level saves around them shows: up to a tenth.
    return object_code(nest.text, level=3 if nest.depth > 2 else 2)


def _module(
    store: ProgramStore, stem: str, text: str, symbols: Sequence[str], compiled: Callable[[], list[bytes]]
) -> CompiledModule:
    with COMPILING:
        path = store.directory / f"{stem}.py"
        found: CompiledModule | None = _LOADED.get(path)
        if found is None:
            store.write_text(path.name, text)
            found = _from_disk(store, stem, symbols)
            if found is None:
                code = compiled()
                keep_value(store, f"{stem}.code", code)
                found = CompiledModule(path, LoadedObject(code, symbols), from_disk=False)
            _LOADED[path] = found
        return found


def _from_disk(store: ProgramStore, stem: str, symbols: Sequence[str]) -> CompiledModule | None:
    code = kept_value(store, f"{stem}.code")
    if code is None:
        return None
    try:
        loaded = LoadedObject(code, symbols)
    except (RuntimeError, TypeError) as fault:
        store.reject(f"{stem}.code", fault)
        return None
    return CompiledModule(store.directory / f"{stem}.py", loaded, from_disk=True)
