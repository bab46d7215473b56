"""Names that hold tuples, lists and dicts: rounds carry what is in them, each value for itself.

::

    state = h, {"c": c}      # the values `state[0]` and `state[1]['c']`
    for t in range(T):
        state = step(state, x[t])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import Any

from tcdsl.frontend.staging.declarations import OfARound, Unwritten

__all__ = [
    "CONTAINERS",
    "NamesBefore",
    "is_nested",
    "is_unchanged",
    "outline",
    "own_copies",
    "own_copy",
    "rebuilt",
    "values_in",
]

#: What Python changes in place.
CONTAINERS = (list, dict, set, deque)


def is_nested(value: Any) -> bool:
    """Whether a value holds others, which Python takes apart."""
    return bool(value) if type(value) in (list, dict) else isinstance(value, tuple) and bool(value)


def values_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values in what ``name`` holds, by how a user would write them."""
    if not is_nested(value):
        yield name, value
        return
    for key, part in _parts(value):
        yield from values_in(f"{name}[{key!r}]", part)


def outline(value: Any) -> Any:
    """What two values have in common that differ only in what they hold."""
    if not is_nested(value):
        return None
    return type(value), tuple((key, outline(part)) for key, part in _parts(value))


def rebuilt(name: str, value: Any, found: Callable[[str, Any], Any]) -> Any:
    """``value`` with ``found(place, part)`` for each of `values_in` it; itself if that changes nothing."""
    if not is_nested(value):
        return found(name, value)
    made = {key: rebuilt(f"{name}[{key!r}]", part, found) for key, part in _parts(value)}
    if all(made[key] is part for key, part in _parts(value)):
        return value
    if isinstance(value, dict):
        return made
    # The parts of a named tuple are arguments of their own.
    return type(value)(*made.values()) if hasattr(value, "_fields") else type(value)(made.values())


def own_copy(value: Any) -> Any:
    """``value`` for one round to change, which changes no container of those around it."""
    if type(value) not in CONTAINERS:
        return value
    if isinstance(value, dict):
        return {key: own_copy(part) for key, part in value.items()}
    return list(map(own_copy, value)) if isinstance(value, list) else copy(value)


def own_copies(held: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The containers of Python's that names hold, as they are now."""
    return {name: own_copy(held[name]) for name in names if type(held.get(name)) in CONTAINERS}


def is_unchanged(before: Any, after: Any) -> bool:
    """Whether ``after`` is ``before``, or a container like it of the same values."""
    if after is before:
        return True
    if type(before) is not type(after) or type(before) not in CONTAINERS or len(before) != len(after):
        return False
    if isinstance(before, set):
        return bool(before == after)
    return all(
        key == other and is_unchanged(part, changed)
        for (key, part), (other, changed) in zip(_parts(before), _parts(after), strict=True)
    )


class NamesBefore:
    """What names hold before a loop: ``before["h"]``, and of a nested value each part, ``before["state[0]"]``."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        #: The nested values, by their names.
        self.nested: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return self.values.get(key, Unwritten(key))

    def hold(self, name: str, value: Any) -> None:
        """The name holds a value."""
        self.values |= self.taken_apart(name, value)

    def taken_apart(self, name: str, value: Any) -> dict[str, Any]:
        """The parts of a value, or itself, if that is the outline of what the name holds."""
        if is_nested(value):
            self.nested[name] = value
        return dict(values_in(name, value))

    def hold_blank(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """Names without a value are there without cells, as they are ``bound`` later; the kinds of their parts."""
        kinds: dict[str, Any] = {}
        for name, each in bound.items():
            if name not in self.nested and isinstance(self[name], Unwritten):
                values = self.taken_apart(name, each.value)
                self.values |= {key: Unwritten(key) if key in each.kinds else part for key, part in values.items()}
                kinds |= each.kinds
        return kinds

    def put_together(self, name: str, found: Callable[[str], Any]) -> Any:
        """What the name holds if its parts are what is ``found``."""
        return rebuilt(name, self.nested[name], lambda key, _: found(key)) if name in self.nested else found(name)

    def binds(self, name: str) -> bool:
        """Whether the name has a value."""
        return name in self.nested or not isinstance(self[name], Unwritten | OfARound)


def _parts(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))
