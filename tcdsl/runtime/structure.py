"""The nesting of a function's results: tuples, lists and dicts of arrays, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Structure", "flatten"]


@dataclass(frozen=True, slots=True)
class Structure:
    """``kind`` is ``leaf`` (the next array), ``tuple``, ``list``, ``dict`` or ``constant`` (a value that is no
    array).
    """

    kind: str
    parts: tuple[Structure, ...] = ()
    keys: tuple[Any, ...] = ()
    value: Any = None

    def build(self, leaves: Sequence[Any]) -> Any:
        """Put ``leaves`` into their places."""
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        match self.kind:
            case "leaf":
                return next(leaves)
            case "constant":
                return self.value
            case "dict":
                return {key: part._build(leaves) for key, part in zip(self.keys, self.parts, strict=True)}
            case "namedtuple":
                return self.value(*(part._build(leaves) for part in self.parts))
            case _:
                items = [part._build(leaves) for part in self.parts]
                return items if self.kind == "list" else tuple(items)


def flatten(value: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], Structure]:
    """The leaves of nested tuples, lists and dicts, in order, and the structure that puts them together again."""
    leaves: list[Any] = []

    def visit(item: Any) -> Structure:
        if is_leaf(item):
            leaves.append(item)
            return Structure("leaf")
        if isinstance(item, tuple) and hasattr(item, "_fields"):
            return Structure("namedtuple", tuple(map(visit, item)), value=type(item))
        if type(item) in (tuple, list):
            return Structure(type(item).__name__, tuple(map(visit, item)))
        if type(item) is dict:
            return Structure("dict", tuple(map(visit, item.values())), tuple(item))
        return Structure("constant", value=item)

    structure = visit(value)
    return leaves, structure
