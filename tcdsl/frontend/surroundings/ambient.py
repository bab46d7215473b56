"""State of Python and NumPy around all code, which functions of theirs give: the folder, how numbers are rounded."""

from __future__ import annotations

import decimal
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.readings import Related

__all__ = ["AMBIENT", "Ambient"]

#: By what code calls to ask for it.
AMBIENT: Mapping[str, Callable[[], Any]] = {
    "Decimal": decimal.getcontext,
    "getcontext": decimal.getcontext,
    "getcwd": os.getcwd,
    "cwd": os.getcwd,
    "abspath": os.getcwd,
    "geterr": np.geterr,
}


class Ambient(Related):
    """What a function gives that asks for such a state."""

    __slots__ = ("_text",)

    def __init__(self, state: Callable[[], Any]) -> None:
        self._text = repr(state())

    def same(self, now: Any) -> bool:
        """Whether it gives the same now."""
        return repr(now()) == self._text
