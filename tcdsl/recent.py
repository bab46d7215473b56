"""A mapping of bounded size that forgets what was not used for long.

::

    shapes = Recent(1000)          # keeps the last 1000 entries that were used, at most 2000
    shapes[3, 4] = plan
    shapes.get((3, 4))
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Recent"]

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Entries in two generations: once the younger one is full, the older one is forgotten and it takes its place.

    An ordinary LRU list would have to be changed at every look-up. Here a look-up of what is in use is that of a dict,
    ``young``, which who counts nanoseconds may ask before `get`. Entries may be ones that several threads make at once;
    the last one stays.
    """

    __slots__ = ("_limit", "_old", "young")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """What is kept for ``key``, or None."""
        found = self.young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self[key] = found
        return found

    def __setitem__(self, key: K, value: V) -> None:
        young = self.young
        if len(young) >= self._limit and key not in young:
            self._old, self.young = young, {key: value}
        else:
            young[key] = value

    def __len__(self) -> int:
        return len(self.young.keys() | self._old.keys())

    def clear(self) -> None:
        """Forget everything."""
        self.young, self._old = {}, {}
