"""From the text of a generated module to functions that can be called by address."""

from __future__ import annotations

import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import cfunc, njit, types
from numba.core.errors import NumbaError

from tcdsl.codegen.internals import loaded_from_cache, own_settings
from tcdsl.codegen.store import discard_damaged, machine_code, seal

__all__ = ["CompiledNest", "compile_driver", "load_module", "nest"]

_SIGNATURE = types.void(types.int64, types.int64, types.int64)
_LOCK = threading.RLock()


@dataclass(frozen=True, slots=True)
class CompiledNest:
    """Machine code of a nest, ``void address(int64 begin, int64 end, int64 frame)``; ``compiled`` keeps it alive."""

    name: str
    address: int
    from_disk: bool
    compiled: Any


def nest(*, fastmath: tuple[str, ...]) -> Callable[[Callable[..., Any]], CompiledNest]:
    """The decorator of generated nests: compile, or load from disk."""

    def decorate(function: Callable[..., Any]) -> CompiledNest:
        options = {"fastmath": set(fastmath), "error_model": "numpy", "boundscheck": False}

        def compile_nest(cache: bool) -> Any:
            return cfunc(_SIGNATURE, cache=cache, **options)(function)

        compiled = _cached(function, compile_nest)
        return CompiledNest(function.__name__, compiled.address, loaded_from_cache(compiled), compiled)

    return decorate


def _cached(function: Callable[..., Any], compile_function: Callable[[bool], Any]) -> Any:
    """``compile_function(True)``, which uses Numba's cache; with that emptied or left alone where it is at fault.

    Numba lets an unreadable index or a read-only directory out as whatever exception it meets.
    """
    with _LOCK:
        try:
            return compile_function(True)
        except NumbaError:
            raise
        except Exception:
            path = Path(function.__code__.co_filename)
            for file in machine_code(path):
                if file.name.startswith(f"{path.stem}.{function.__qualname__}-"):
                    file.unlink(missing_ok=True)
        try:
            return compile_function(True)
        except NumbaError:
            raise
        except Exception as fault:
            reason = repr(fault)
        compiled = compile_function(False)
        warnings.warn(f"machine code cannot be kept on disk: {reason}", RuntimeWarning, stacklevel=2)
        return compiled


def compile_driver(function: Callable[..., Any], *, parameters: int, parallel: bool = False) -> Any:
    """``function`` of so many int64, with an int64 result, as machine code that releases the interpreter's lock."""
    signature = types.int64(*[types.int64] * parameters)

    def compile_function(cache: bool) -> Any:
        return njit(signature, cache=cache, nogil=True, parallel=parallel, error_model="numpy")(function)

    return _cached(function, compile_function)


def load_module(path: Path, text: str) -> ModuleType:
    """Run the generated module ``text``, which is the content of ``path``; its nests are compiled on the way.

    The module stays in ``sys.modules``, where Numba looks for it when it loads machine code.
    """
    with _LOCK:
        loaded = sys.modules.get(path.stem)
        if loaded is not None and loaded.__file__ == str(path):
            return loaded
        discard_damaged(path)
        before = _versions(path)
        spec = importlib.util.spec_from_loader(path.stem, loader=None, origin=str(path))
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__file__ = str(path)
        sys.modules[path.stem] = module
        try:
            with own_settings():
                exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 - the module just generated
        except BaseException:
            del sys.modules[path.stem]
            raise
        if _versions(path) != before:
            seal(path)
        return module


def _versions(path: Path) -> set[tuple[str, int, int]]:
    return {(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in machine_code(path)}
