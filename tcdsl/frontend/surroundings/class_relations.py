"""Which classes stand below a class: those that are made of it, and those that are registered with it.

``isinstance(model, Plugin)`` and ``Plugin.__subclasses__()`` give something else when another class comes.
"""

from __future__ import annotations

import weakref
from abc import ABCMeta, get_cache_token
from typing import Any

from tcdsl.frontend.surroundings.readings import Related

__all__ = ["Registered", "Subclasses", "names_asked_by_kind"]


class Registered(Related):
    """What ``isinstance`` asks an abstract class for.

    Python counts what is registered, and does not say with which class: so another class that is registered anywhere
    stages anew.
    """

    __slots__ = ("_token",)

    def __init__(self, kind: type) -> None:
        self._token = get_cache_token()

    def same(self, now: Any) -> bool:
        """Whether nothing has been registered since."""
        return get_cache_token() == self._token


class Subclasses(Related):
    """The classes that are made of a class, and of these, which are held weakly."""

    __slots__ = ("_below",)

    def __init__(self, kind: type) -> None:
        self._below = _below(kind)

    def same(self, now: Any) -> bool:
        """Whether ``now`` has the same ones."""
        return isinstance(now, type) and _below(now) == self._below


def names_asked_by_kind(kind: type) -> frozenset[str]:
    """The attributes by which ``isinstance(value, kind)`` tells, where it asks for attributes."""
    if not isinstance(kind, ABCMeta):
        return frozenset()
    asked = frozenset(kind.__abstractmethods__)
    if getattr(kind, "_is_protocol", False):
        members = {*vars(kind), *vars(kind).get("__annotations__", ())}
        asked |= {each for each in members if not each.startswith("_")}
    return asked


def _below(kind: type) -> list[weakref.ref[type]]:
    subclasses: list[type] = type.__subclasses__(kind)
    return [weakref.ref(each) for each in subclasses] + [ref for each in subclasses for ref in _below(each)]
