"""``python -m tcdsl compile module:function``: programs compiled ahead of time, for containers and first lessons."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console

from tcdsl.config import settings
from tcdsl.errors import ConfigurationError
from tcdsl.targets.cache.store import default_cache_dir

__all__ = ["compile_function"]

_ARRAY = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d\s,]*)\]")


def compile_function(console: Console, function: str, arguments: Sequence[str]) -> int:
    """Call ``module:function`` on arrays, as in ``float32[8, 3]``, and numbers, so that what it needs is on disk.

    A kernel serves arrays of every size, so small ones do. `ConfigurationError` if there is no such function.
    """
    called = _function(function)
    given = [_argument(text) for text in arguments if not _keyword(text)]
    named = {name: _argument(text.partition("=")[2]) for text in arguments if (name := _keyword(text))}
    begin = time.perf_counter()
    with np.errstate(all="ignore"):
        called(*given, **named)
    seconds = time.perf_counter() - begin
    folder = settings().cache_dir or default_cache_dir()
    told = f"called {function} in {seconds:.2f} s; compiled programs are in {folder}"
    console.print(told, markup=False, highlight=False, soft_wrap=True)
    return 0


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
