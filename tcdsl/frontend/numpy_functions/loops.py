"""Functions of arrays that are loops, written in the language: rows of NumPy's functions call them by `looped`."""

from __future__ import annotations

from functools import cache
from types import FunctionType
from typing import Any

__all__ = ["looped"]


def looped(function: Any, *arguments: Any) -> Any:
    """``function(*arguments)`` in the program under construction, as if a decorated function had called it."""
    return _template(function).run(None, *arguments)


@cache
def _template(function: FunctionType) -> Any:
    # Programs without such loops do without all that rewrites functions of Python's.
    from tcdsl.frontend.python.template import Template
    from tcdsl.frontend.source.function_source import read_source

    return Template(function, read_source(function), False)
