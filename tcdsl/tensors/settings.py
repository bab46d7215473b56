"""Numbers that are given at each run of a routine: a learning rate, the number of a minibatch."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Setting"]


class Setting:
    """A number of a routine: ``routine.run(learning_rate=0.1)``. ``initial`` is used until one is given.

    Settings of the same name in one routine are one number.
    """

    __slots__ = ("dtype", "initial", "name")

    def __init__(self, name: str, dtype: str, initial: Any) -> None:
        self.name = name
        self.dtype = dtype
        self.initial = initial

    def array(self) -> np.ndarray:
        """Memory for it."""
        return np.array(self.initial, self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and (other.name, other.dtype) == (self.name, self.dtype)

    def __hash__(self) -> int:
        return hash((self.name, self.dtype))

    def __repr__(self) -> str:
        return f"<setting {self.name} = {self.initial!r}>"
