"""Modules of our own that Numba compiles: the drivers, whose threads are Numba's."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from numba import types

from tcdsl.locks import COMPILING
from tcdsl.targets.cache.kept_values import keep_value, kept_value
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.machine.internals import MachineCode, compiled_function, own_settings

__all__ = ["compile_driver", "load_module"]

_CODE = "__machine_code__"


def compile_driver(function: Callable[..., Any], *, parameters: int, parallel: bool = False) -> Any:
    """``function`` of so many int64, with an int64 result, as machine code that releases the interpreter's lock."""
    signature = types.int64(*[types.int64] * parameters)
    options = {"nogil": True, "parallel": parallel, "error_model": "numpy"}
    code: MachineCode = function.__globals__.get(_CODE) or MachineCode()
    return compiled_function(function, signature, options, code)


def load_module(store: ProgramStore, stem: str, text: str) -> ModuleType:
    """Run the module ``text``; its functions are compiled on the way, or taken from ``store``.

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
                exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102 - our own source
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
