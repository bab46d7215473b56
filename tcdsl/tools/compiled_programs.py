"""The compiled programs on disk: ``python -m tcdsl cache info``, ``cache clear``, ``compile`` and ``explain``.

What is compiled ahead of time is there for containers and first lessons.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.filesize import decimal

from tcdsl.config import settings
from tcdsl.errors import ConfigurationError
from tcdsl.runtime.displays.tables import Table
from tcdsl.targets.cache.store import cache_entries, cache_size, clear_cache, default_cache_dir

__all__ = ["clear", "compile_function", "explain_function", "show"]


def _folder() -> Path:
    return Path(settings().cache_dir) if settings().cache_dir else default_cache_dir()


def _counted(programs: int) -> str:
    return f"{programs} program{'' if programs == 1 else 's'}"


def show(console: Console) -> None:
    """List every compiled program, newest first, and what all of them take with their machine code."""
    entries = sorted(cache_entries(_folder()), key=lambda entry: -entry.modified)
    if entries:
        made = (datetime.fromtimestamp(entry.modified).strftime("%Y-%m-%d %H:%M") for entry in entries)
        rows = [(entry.title, when, entry.path.name) for entry, when in zip(entries, made, strict=True)]
        Table("", ("program", "compiled", "file"), rows, left=frozenset((0, 1, 2))).print(console)
    total = decimal(cache_size(_folder()))
    console.print(f"{_counted(len(entries))}, {total}, in {_folder()}", soft_wrap=True, highlight=False)


def clear(console: Console) -> None:
    """Remove every compiled program; other files in the folder stay."""
    removed = clear_cache(_folder())
    console.print(f"removed {_counted(removed)} from {_folder()}", soft_wrap=True, highlight=False)


_ARRAY = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d\s,]*)\]")


def compile_function(console: Console, function: str, arguments: Sequence[str]) -> int:
    """Call ``module:function`` on arrays, as in ``float32[8, 3]``, and numbers, so that what it needs is on disk.

    A kernel serves arrays of every size, so small ones do. `ConfigurationError` if there is no such function.
    """
    called = _function(function)
    given, named = _arguments(arguments)
    begin = time.perf_counter()
    with np.errstate(all="ignore"):
        called(*given, **named)
    seconds = time.perf_counter() - begin
    folder = settings().cache_dir or default_cache_dir()
    told = f"called {function} in {seconds:.2f} s; compiled programs are in {folder}"
    console.print(told, markup=False, highlight=False, soft_wrap=True)
    return 0


def explain_function(console: Console, function: str, arguments: Sequence[str], stage: str) -> int:
    """Print what ``module:function`` explains of a stage for arguments as `compile_function` takes them."""
    called = _function(function)
    if not hasattr(called, "explain"):
        raise ConfigurationError(f"{function} is no decorated function, which could explain itself")
    given, named = _arguments(arguments)
    shown = called.explain(stage, *given, **named)
    if console.is_terminal:
        console.print(shown)
    else:
        console.print(str(shown), markup=False, highlight=False, soft_wrap=True, end="")
    return 0


def _arguments(texts: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    named = {name: _argument(text.partition("=")[2]) for text in texts if (name := _keyword(text))}
    return [_argument(text) for text in texts if not _keyword(text)], named


def _function(text: str) -> Any:
    module, colon, path = text.partition(":")
    if not (colon and module and path):
        raise ConfigurationError(f"{text!r} names no function; write module:function")
    # As for `python -m`, the modules of this folder are at hand.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise ConfigurationError(f"there is no module {module!r} in this folder or among those installed") from None
        raise
    for name in path.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"{module} has no {path!r}")
        found = getattr(found, name)
    if not callable(found):
        raise ConfigurationError(f"{path!r} of {module} is no function")
    return found


def _keyword(text: str) -> str:
    name, equals, _ = text.partition("=")
    return name if equals and name.isidentifier() else ""


def _argument(text: str) -> Any:
    array = _ARRAY.fullmatch(text.strip())
    try:
        if array is None:
            return ast.literal_eval(text)
        shape = tuple(int(extent) for extent in array["shape"].split(",") if extent.strip())
        # Zeros are in range of whatever they index, and nothing is divided by ones in vain.
        made = np.zeros if array["dtype"].startswith(("int", "uint")) else np.ones
        return made(shape, array["dtype"])
    except (ValueError, TypeError, SyntaxError):
        hint = "write a type and a shape, float32[8, 3], or a number"
        raise ConfigurationError(f"{text!r} is no argument; {hint}") from None
