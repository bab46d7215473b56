"""Names that hold tuples, lists and dicts: rounds carry what is in them, each value for itself.

::

    state = h, {"c": c}      # the values `state[0]` and `state[1]['c']`
    for t in range(T):
        state = step(state, x[t])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["is_nested", "outline", "rebuilt", "values_in"]


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


def _parts(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))
