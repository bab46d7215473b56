"""What fills the inputs of a program that are no arguments: arrays of the surroundings, and integers that are sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.readings import Reading

__all__ = ["LARGEST_CARRIED", "CapturedArray", "CarriedInteger"]

LARGEST_CARRIED = 1 << 40  # Larger ones could leave 64 bits together with other sizes.


@dataclass(frozen=True, slots=True)
class CapturedArray:
    """An array that the program reads from the function's surroundings at every call.

    ``reading`` says where it is read from anew; without one it is ``value`` itself, an array made during staging.
    """

    tensor: str
    value: Any
    reading: Reading | None = None

    def current(self) -> Any:
        """The array as it is now."""
        return self.value if self.reading is None else self.reading.current()


@dataclass(frozen=True, slots=True)
class CarriedInteger:
    """An integer that is a size: the extent of an input without cells. ``place`` says which argument it is.

    Sizes are not negative: with ``negative`` the extent is that of ``-n``. The program serves the integers of this sign
    that are at least ``least``.
    """

    tensor: str
    place: int | str
    negative: bool
    least: int = -LARGEST_CARRIED

    def array(self, number: int) -> np.ndarray | None:
        """The input for the integer ``number``; ``None`` if the program does not serve it."""
        number = int(number)
        if (number < 0) != self.negative or not self.least <= number or abs(number) >= LARGEST_CARRIED:
            return None
        return np.empty((abs(number), 0), np.bool_)
