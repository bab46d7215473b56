"""The nesting of a function's results: tuples, lists and dicts of arrays, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tcdsl.runtime.calling.argument_code import NamedValues

__all__ = ["LEAF", "NOTHING", "Structure", "flatten"]

_MOST_PARTS = 64  # Of structures that are built by code of their own.


@dataclass(frozen=True, slots=True)
class Structure:
    """``kind`` is ``leaf`` (the next array), ``tuple``, ``list``, ``dict`` or ``constant`` (a value that is no
    array).
    """

    kind: str
    parts: tuple[Structure, ...] = ()
    keys: tuple[Any, ...] = ()
    value: Any = None

    @property
    def leaves(self) -> int:
        """How many arrays there are."""
        return 1 if self.kind == "leaf" else sum(part.leaves for part in self.parts)

    def with_leaves(self, replacements: Iterable[Structure]) -> Structure:
        """The same nesting with each array replaced by a structure, and ``None`` for what is no array."""
        return self._with_leaves(iter(replacements))

    def _with_leaves(self, replacements: Iterator[Structure]) -> Structure:
        if self.kind == "leaf":
            return next(replacements)
        if self.kind == "constant":
            return NOTHING
        return replace(self, parts=tuple(part._with_leaves(replacements) for part in self.parts))

    def paths(self, prefix: str = "") -> list[str]:
        """Where the arrays are: ``["['y']", "['rest'][0]"]``."""
        if self.kind == "leaf":
            return [prefix]
        names = self.keys or range(len(self.parts))
        return [
            path for name, part in zip(names, self.parts, strict=True) for path in part.paths(f"{prefix}[{name!r}]")
        ]

    def match(self, value: Any, path: str = "") -> list[Any] | str:
        """What ``value`` holds in the places of the arrays; or, if it is built otherwise, the first such place.

        In the places of what is no array anything may stand.
        """
        match self.kind:
            case "leaf":
                return path or "the whole" if isinstance(value, tuple | list | dict) else [value]
            case "constant":
                return []
            case "dict":
                if type(value) is not dict or value.keys() != set(self.keys):
                    return path or "the whole"
                items = [value[key] for key in self.keys]
            case _:
                wanted = self.value if self.kind == "namedtuple" else {"tuple": tuple, "list": list}[self.kind]
                if type(value) is not wanted or len(value) != len(self.parts):
                    return path or "the whole"
                items = list(value)
        found: list[Any] = []
        for name, part, item in zip(self.keys or range(len(items)), self.parts, items, strict=True):
            inner = part.match(item, f"{path}[{name!r}]")
            if isinstance(inner, str):
                return inner
            found.extend(inner)
        return found

    def __str__(self) -> str:
        match self.kind:
            case "leaf":
                return "array"
            case "constant":
                return repr(self.value)
            case "dict":
                return "{" + ", ".join(f"{k!r}: {part}" for k, part in zip(self.keys, self.parts, strict=True)) + "}"
        inner = ", ".join(map(str, self.parts))
        if self.kind == "list":
            return f"[{inner}]"
        name = self.value.__name__ if self.kind == "namedtuple" else ""
        return f"{name}({inner}{',' if len(self.parts) == 1 and not name else ''})"

    def build(self, leaves: Sequence[Any]) -> Any:
        """Put ``leaves`` into their places."""
        return self._build(iter(leaves))

    def builder(self) -> Callable[[Sequence[Any]], Any]:
        """What puts arrays into their places, those without axes as numbers: made once for many results."""
        if self._size > _MOST_PARTS:
            return lambda arrays: self.build([array if array.ndim else array[()] for array in arrays])
        code = NamedValues()
        text = self._text(code, count())
        build: Callable[[Sequence[Any]], Any] = code.compiled(f"def build(arrays):\n return {text}")
        return build

    @property
    def _size(self) -> int:
        return 1 + sum(part._size for part in self.parts)

    def _text(self, code: NamedValues, numbers: Iterator[int]) -> str:
        if self.kind == "leaf":
            array = f"arrays[{next(numbers)}]"
            return f"({array} if {array}.ndim else {array}[()])"
        if self.kind == "constant":
            return code.name(self.value)
        parts = [part._text(code, numbers) for part in self.parts]
        if self.kind == "dict":
            items = (f"{code.name(key)}: {part}" for key, part in zip(self.keys, parts, strict=True))
            return f"{{{', '.join(items)}}}"
        listed = "".join(f"{part}, " for part in parts)
        return f"[{listed}]" if self.kind == "list" else f"{code.name(self.value) if self.value else ''}({listed})"

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


LEAF = Structure("leaf")
NOTHING = Structure("constant")


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
