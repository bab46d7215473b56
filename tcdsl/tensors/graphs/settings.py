"""Numbers that are given at each run of a routine: a learning rate, the number of a minibatch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError
from tcdsl.tensors.graphs.location import fault

__all__ = ["Setting"]


class Setting:
    """A number of a routine: ``routine.run(learning_rate=0.1)``. ``initial`` is used until one is given.

    A run that gives one gives it to all settings of that name. Until then each has its own: two calls with different
    learning rates keep them. Those that start alike are one input of the program.
    """

    __slots__ = ("dtype", "initial", "name")

    def __init__(self, name: str, dtype: str, initial: Any) -> None:
        self.name = name
        self.dtype = dtype
        self.initial = initial

    def array(self) -> np.ndarray:
        """Memory for it."""
        return np.array(self.initial, self.dtype)

    def checked(self, given: object) -> int | float:
        """``given`` as its number. `ConfigurationError` for what is none, or a fraction where code holds an integer."""
        if type(given) is float and self.dtype != "int64":
            return given
        if isinstance(given, bool) or not isinstance(given, int | float | np.integer | np.floating):
            raise fault(ConfigurationError, f"`{self.name}` is a number, not a {type(given).__name__}")
        if self.dtype == "int64" and int(given) != given:
            raise fault(
                ConfigurationError,
                f"`{self.name}` is an integer in this code, which {given} is not",
                f"write {self.name}={float(self.initial)} where the code is made, for one that may have fractions",
            )
        return int(given) if self.dtype == "int64" else float(given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str, str]:
        # By text, so that not-a-number equals itself and -0.0 differs from 0.0.
        return self.name, self.dtype, repr(self.initial)

    def __repr__(self) -> str:
        return f"<setting {self.name} = {self.initial!r}>"
