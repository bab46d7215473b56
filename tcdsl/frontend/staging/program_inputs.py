"""What fills the inputs of a program that are no arguments: arrays of the surroundings, and integers that are sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.draws import KEYS
from tcdsl.frontend.surroundings.readings import Reading

__all__ = ["LARGEST_CARRIED", "CapturedArray", "CarriedInteger", "DrawnKey", "ViewOf"]

LARGEST_CARRIED = 1 << 40  # Larger ones could leave 64 bits together with other sizes.


@dataclass(frozen=True, slots=True)
class ViewOf:
    """A view such as ``w[1:].T``, which is made again of what ``w`` is at each call."""

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    layout: tuple[np.dtype, tuple[int, ...], tuple[int, ...]]

    @staticmethod
    def between(view: np.ndarray, array: np.ndarray) -> ViewOf:
        """What makes ``view`` of ``array``."""
        offset = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
        return ViewOf(view.dtype, view.shape, view.strides, offset, (array.dtype, array.shape, array.strides))

    def of(self, array: Any) -> np.ndarray | None:
        """The view of ``array``; None of an array of another layout."""
        if type(array) is not np.ndarray or (array.dtype, array.shape, array.strides) != self.layout:
            return None
        return np.ndarray(self.shape, self.dtype, array, self.offset, self.strides)


@dataclass(frozen=True, slots=True)
class CapturedArray:
    """An array that the program reads from the function's surroundings at every call.

    ``reading`` says where it is read from anew, and ``view`` which view of what stands there it is; without a reading
    it is ``value`` itself, an array made during staging.
    """

    tensor: str
    value: Any
    reading: Reading | None = None
    view: ViewOf | None = None

    def current(self) -> Any:
        """The array as it is now."""
        if self.reading is None:
            return self.value
        array = self.reading.current()
        return array if self.view is None else self.view.of(array)


class DrawnKey(CapturedArray):
    """The key of a call's random numbers."""

    __slots__ = ()

    def current(self) -> Any:
        """The key of this call."""
        return KEYS.current()


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
