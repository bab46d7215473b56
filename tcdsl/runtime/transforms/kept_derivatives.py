"""The derivatives of a function, kept by the function itself: equal derivatives of one function are one object.

::

    for x in data:
        loss, slope = tc.value_and_grad(f)(x)      # staged once

What is kept ends with the function: derivatives belong to it and know it, and nothing else holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import MethodType
from typing import Any, TypeVar
from weakref import ref

__all__ = ["kept"]

_NAME = "__tcdsl_derivatives__"

T = TypeVar("T")


def kept(function: Any, key: Hashable, make: Callable[[], T]) -> T:
    """``make()``, or what it gave before for this ``function`` and an equal ``key``.

    Objects that cannot be referenced weakly or have no attributes, as NumPy's functions, keep nothing.
    """
    # Methods are made anew whenever they are asked for: their instance keeps what belongs to them.
    owner = function.__self__ if isinstance(function, MethodType) else function
    try:
        attributes = vars(owner)
        found = attributes.get(_NAME)
        if not isinstance(found, _Derivatives) or found.owner() is not owner:
            found = attributes[_NAME] = _Derivatives(owner)
    except TypeError:
        return make()
    place = (function.__func__, key) if isinstance(function, MethodType) else (None, key)
    made: T | None = found.get(place)
    return found.setdefault(place, make()) if made is None else made


class _Derivatives(dict[tuple[Any, Hashable], Any]):
    """What is kept. To copies of ``owner``, and to what took over its attributes, it means nothing."""

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner: Callable[[], Any] = ref(owner)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ()
