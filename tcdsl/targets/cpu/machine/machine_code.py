"""From the text of a generated module to functions that can be called by address."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

from numba import types

from tcdsl.locks import COMPILING
from tcdsl.targets.cache.kept_values import keep_value, kept_value
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.machine.internals import MachineCode, compiled_callback, compiled_function, own_settings

__all__ = ["CompiledNest", "compile_driver", "load_module", "nest", "procedure"]

_SIGNATURE = types.void(types.int64, types.int64, types.int64)
_CODE = "__machine_code__"


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
        code = _code_around(function)
        compiled = compiled_callback(function, _SIGNATURE, options, code)
        return CompiledNest(function.__name__, compiled.address, function.__name__ in code.used, compiled)

    return decorate


def procedure(*, fastmath: tuple[str, ...]) -> Callable[[Callable[..., Any]], Any]:
    """The decorator of generated procedures: they are compiled with the nests that call them, whose code holds them."""
    from numba import njit

    decorate: Callable[[Callable[..., Any]], Any] = njit(
        fastmath=set(fastmath), error_model="numpy", boundscheck=False, nogil=True
    )
    return decorate


def _code_around(function: Callable[..., Any]) -> MachineCode:
    code: MachineCode = function.__globals__.get(_CODE) or MachineCode()
    return code


def compile_driver(function: Callable[..., Any], *, parameters: int, parallel: bool = False) -> Any:
    """``function`` of so many int64, with an int64 result, as machine code that releases the interpreter's lock."""
    signature = types.int64(*[types.int64] * parameters)
    options = {"nogil": True, "parallel": parallel, "error_model": "numpy"}
    return compiled_function(function, signature, options, _code_around(function))


def _compiled(text: str, path: str) -> CodeType:
    try:
        return compile(text, path, "exec")
    except (SyntaxError, MemoryError):
        # Python's parser has limits of its own: blocks within blocks, for one.
        raise RecursionError from None


def load_module(store: ProgramStore, stem: str, text: str) -> ModuleType:
    """Run the generated module ``text``; its nests are compiled on the way, or taken from ``store``.

    The module stays in ``sys.modules``, where Numba looks for it when it loads machine code.
    """
    with COMPILING:
        path = str(store.directory / f"{stem}.py")
        loaded = sys.modules.get(stem)
        if loaded is not None and loaded.__file__ == path:
            return loaded
        store.write_text(f"{stem}.py", text)
        spec = importlib.util.spec_from_loader(stem, loader=None, origin=path)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__file__ = path
        code = MachineCode(kept_value(store, f"{stem}.code") or {})
        setattr(module, _CODE, code)
        sys.modules[stem] = module
        try:
            with own_settings():
                exec(_compiled(text, path), module.__dict__)  # noqa: S102 - the module just generated
        except BaseException:
            del sys.modules[stem]
            raise
        if code.fault is not None:
            store.reject(f"{stem}.code", code.fault)
        if code.made:
            keep_value(store, f"{stem}.code", {**code.kept, **code.made})
        # It has served: functions made later, of which there are none, would not be kept.
        delattr(module, _CODE)
        return module
