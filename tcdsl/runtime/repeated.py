"""The short way for a repeated call: same types, ranks, layouts and configuration as the call before, other arrays.

A call of a small kernel takes microseconds, so finding its program must not take more. What `StagedFunction.entry`
looks up is checked here against one remembered call, by identity where that decides; anything else takes the long way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CellType
from typing import Any

import numpy as np

from tcdsl.frontend.readings import Reading
from tcdsl.runtime.arguments import Call
from tcdsl.runtime.entries import Entry

__all__ = ["RepeatedCall"]

_MISSING = object()


class RepeatedCall:
    """What a call must look like to be served by ``entry`` without further questions."""

    def __init__(self, entry: Entry, call: Call, keywords: Mapping[str, Any]) -> None:
        self.entry = entry
        self._kinds: list[tuple[Any, Any]] = []
        self._keyword_kinds: dict[str, tuple[Any, Any]] = {}
        positional: dict[int, tuple[Any, Any]] = {}
        for argument in call.arguments:
            kind = type(argument.given)
            detail = (argument.array.dtype, argument.array.ndim) if kind is np.ndarray else argument.array.dtype
            if isinstance(argument.place, int):
                positional[argument.place] = (kind, detail)
            else:
                self._keyword_kinds[argument.place] = (kind, detail)
        self._kinds = [positional[k] for k in range(call.positions)]
        self._configuration = {name: call.configuration[name] for name in keywords if name in call.configuration}
        self._keywords = frozenset(keywords)
        places = {argument.place: k for k, argument in enumerate(call.arguments)}
        names = [a.place for a in call.arguments]
        self._sources = [names[source] for source in entry.inputs if isinstance(source, int)]
        self._globals, self._cells, self._others = _sorted_readings(entry.readings)
        self.usable = (
            all(isinstance(source, int) for source in entry.inputs)
            and not entry.constants
            and not entry.narrowed
            and len(places) == len(call.arguments)
            and all(kind in (np.ndarray, float, int) for kind, _ in (*self._kinds, *self._keyword_kinds.values()))
            # Defaults of keywords would have to be filled in: the long way does that.
            and self._keywords == frozenset((*self._keyword_kinds, *call.configuration))
        )

    def arrays(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[np.ndarray] | None:
        """The program's inputs for these arguments, or ``None`` if the long way has to be taken."""
        if len(arguments) != len(self._kinds) or keywords.keys() != self._keywords:
            return None
        given: list[np.ndarray] = []
        for value, (kind, detail) in zip(arguments, self._kinds, strict=True):
            if type(value) is not kind:
                return None
            if kind is np.ndarray:
                if value.dtype != detail[0] or value.ndim != detail[1]:
                    return None
                given.append(value)
            else:
                given.append(np.array(value, detail))
        for name, value in self._configuration.items():
            other = keywords[name]
            if other is not value and (type(other) is not type(value) or other != value):
                return None
        found: list[np.ndarray] = []
        for source in self._sources:
            if isinstance(source, int):
                found.append(given[source])
            else:
                kind, detail = self._keyword_kinds[source]
                if type(keywords[source]) is not kind:
                    return None
                found.append(np.array(keywords[source], detail))
        return found if self._surroundings_unchanged() else None

    def _surroundings_unchanged(self) -> bool:
        for namespace, name, seen in self._globals:
            if namespace.get(name, _MISSING) is not seen:
                return False
        for cell, seen in self._cells:
            if cell.cell_contents is not seen:
                return False
        return all(reading.unchanged() for reading in self._others)


def _sorted_readings(
    readings: Sequence[Reading],
) -> tuple[list[tuple[dict[str, Any], str, Any]], list[tuple[CellType, Any]], list[Reading]]:
    # Names whose object decides, by where they stand; containers and attributes are compared as always.
    names: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
    cells: dict[int, tuple[CellType, Any]] = {}
    others: list[Reading] = []
    for reading in readings:
        if len(reading.names) > 1 or isinstance(reading.seen, list | dict | set | np.ndarray):
            others.append(reading)
        elif isinstance(reading.root, CellType):
            try:
                now = reading.root.cell_contents
            except ValueError:
                others.append(reading)
                continue
            cells[id(reading.root)] = (reading.root, now)
        elif isinstance(reading.root, dict):
            name = reading.names[0]
            names[id(reading.root), name] = (reading.root, name, reading.root.get(name, _MISSING))
        else:
            others.append(reading)
    return list(names.values()), list(cells.values()), others
