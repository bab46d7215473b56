"""The language's functions to import, for code that static checkers read: ``from tcdsl.primitives import relu, exp,
clamp``.

Decorated functions know them without an import. On symbolic arrays the primitives build programs; on NumPy arrays and
numbers they compute.
"""

from __future__ import annotations

from typing import Any

from tcdsl.tensors import LANGUAGE_FUNCTIONS

__all__ = ["names"]


def names() -> list[str]:
    """The names that this module offers."""
    return sorted(LANGUAGE_FUNCTIONS)


def __getattr__(name: str) -> Any:
    try:
        return LANGUAGE_FUNCTIONS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return names()
