"""Arrays around a function that Python changes in place while the function is staged: that would happen once.

Such as ``weights *= 2`` of a global array in a helper, or ``model.weights[:] = 0``. Python does not say when it stores
into an array. So where code that runs has a statement which could, the cells are compared with those before.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType

import numpy as np

from tcdsl.frontend.surroundings.named_values import spelled
from tcdsl.frontend.surroundings.readings import Reading
from tcdsl.span import Span

__all__ = ["ArrayChanges"]

_STORES = frozenset(("STORE_SUBSCR", "STORE_SLICE"))
# Functions and methods of NumPy that store into what they are given, or into the array whose method they are.
_STORING = frozenset(
    ("at", "byteswap", "copyto", "fill", "fill_diagonal", "itemset", "partition", "place", "put", "put_along_axis")
) | frozenset(("putmask", "random", "resize", "setfield", "shuffle", "sort"))


class ArrayChanges:
    """``changes.expect(readings, code)`` before code runs, ``changes.found()`` afterwards."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Reading, np.ndarray, np.ndarray]] = {}
        self._sites: dict[Span, None] = {}

    def expect(self, readings: Iterable[Reading], own: CodeType | None) -> None:
        """The arrays that readings lead to are as they are to be. ``own`` is the code of a decorated function.

        Of that the statements on names are no stores of Python's.
        """
        readings = tuple(readings)
        arrays = [each for each in readings if isinstance(each.seen, np.ndarray)]
        if not arrays:
            return
        codes = [each.seen for each in readings if isinstance(each.seen, CodeType)]
        sites = dict.fromkeys(site for code in codes for site in _sites(code))
        others = {} if own is None else dict.fromkeys(_sites(own))
        for reading in arrays:
            here = {**sites, **others} if len(reading.names) > 1 else sites
            if here and id(reading.seen) not in self._before:
                self._before[id(reading.seen)] = reading, reading.seen, reading.seen.copy()
            self._sites |= here

    def found(self) -> Iterator[tuple[str, Span]]:
        """The arrays that have been changed, as they are spelled, and where that may have been. They are put back."""
        for reading, array, before in self._before.values():
            if not np.array_equal(_bytes(array), _bytes(before)):
                array[...] = before
                last = str(reading.names[-1])
                sites = sorted(self._sites, key=lambda site: last not in site.text)
                yield spelled(reading.names), sites[0]


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@lru_cache(1024)
def _sites(code: CodeType) -> tuple[Span, ...]:
    # The expressions and statements that could store into an array.
    found: dict[Span, None] = {}
    for each in dis.get_instructions(code):
        in_place = each.opname == "BINARY_OP" and each.argrepr.endswith("=")
        named = isinstance(each.argval, str) and each.argval in _STORING and each.opname.startswith("LOAD")
        given = isinstance(each.argval, tuple) and "out" in each.argval
        if in_place or named or given or each.opname in _STORES:
            place = each.positions
            if place is not None and place.lineno is not None:
                end = place.end_lineno or place.lineno
                span = Span(code.co_filename, place.lineno, place.col_offset or 0, end, place.end_col_offset or 0)
                found[span] = None
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found.update(dict.fromkeys(_sites(inner)))
    return tuple(found)
