"""The language's functions to import, for code that static checkers read: ``from tcdsl.primitives import relu, exp,
clamp``.

Decorated functions know them without an import. On symbolic arrays the primitives build programs; on NumPy arrays and
numbers they compute.
"""

from __future__ import annotations

import sys
from typing import Any

from tcdsl.tensors import LANGUAGE_FUNCTIONS
from tcdsl.tracebacks import missing_name

__all__ = ["names"]


def names() -> list[str]:
    """The names that this module offers."""
    return sorted(LANGUAGE_FUNCTIONS)


def __getattr__(name: str) -> Any:
    try:
        return LANGUAGE_FUNCTIONS[name]
    except KeyError:
        raise missing_name(f"module {__name__}", name, sys.modules[__name__], names()) from None


def __dir__() -> list[str]:
    return names()
