"""Keys of random numbers: a call draws one, and its derivatives compute with the one that they have drawn.

A key depends on the seed, and on how many calls have drawn one since it was set. A call that fails has drawn none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import numpy as np

__all__ = ["KEYS", "KEY_TYPE", "Keys"]

KEY_TYPE = "uint64"


class Keys(threading.local):
    """The keys that are drawn: ``KEYS.current()`` until ``KEYS.spend()``; threads draw different ones."""

    _seed = 0
    _ordinals = count()

    def __init__(self) -> None:
        self._drawn: tuple[count[int], np.ndarray] | None = None
        self._held = 0

    @classmethod
    def start(cls, seed: int) -> None:
        """Begin anew with a seed."""
        cls._seed, cls._ordinals = seed, count()

    def current(self) -> np.ndarray:
        """The key of the call that runs or comes next, of rank 0."""
        if self._drawn is None or self._drawn[0] is not self._ordinals:
            # The leaves of graphs draw from the sequences of two numbers.
            sequence = np.random.SeedSequence((self._seed, next(self._ordinals), 1))
            self._drawn = self._ordinals, sequence.generate_state(1, np.uint64).reshape(())
        return self._drawn[1]

    def spend(self) -> None:
        """The call has run: the next one draws another key."""
        if not self._held:
            self._drawn = None

    @property
    def are_held(self) -> bool:
        """Whether calls are repeated, to be compared with each other."""
        return self._held > 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block in which all calls draw the same key."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.spend()


KEYS = Keys()
