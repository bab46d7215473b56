"""The values that leaves start with. Reproducible: they depend on the seed and on the order in which leaves are made.

::

    tc.seed(1)
    w = tc.param("w", i=16, o=16)      # uniform in [-1/4, 1/4): the bound is 1 / sqrt(fan-in)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.surroundings.draws import KEYS
from tcdsl.tensors.graphs.location import fault
from tcdsl.tracebacks import user_facing

__all__ = ["Copied", "Drawn", "Filled", "Given", "InitialValue", "Made", "Uniform", "seed"]


class InitialValue:
    """How a leaf's first value comes about."""

    def array(self, sizes: tuple[int, ...], fan_in: int, dtype: str) -> np.ndarray:
        """The value for these sizes."""
        raise NotImplementedError


class _Seeds:
    # The number of leaves made since the seed was set.
    def __init__(self) -> None:
        self.seed = 0
        self.ordinals = count()

    def set(self, number: int) -> None:
        self.seed = number
        self.ordinals = count()


_SEEDS = _Seeds()


@user_facing
def seed(number: int) -> None:
    """``tc.seed(1)``: parameters made from here on start with the values of that seed. Without a call the seed is 0.

    A parameter's first value depends on the seed, on how many parameters were made since, and on its sizes. So do
    random numbers that functions draw (`tcdsl.library.rand`), which depend on how many calls have drawn some since.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise fault(ConfigurationError, f"tc.seed({number!r}): a seed is an integer, 0 or more")
    _SEEDS.set(int(number))
    KEYS.start(int(number))


@dataclass(frozen=True, slots=True)
class Filled(InitialValue):
    """One number in every cell."""

    number: float

    def array(self, sizes: tuple[int, ...], fan_in: int, dtype: str) -> np.ndarray:
        """The value for these sizes."""
        return np.full(sizes, self.number, dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Given(InitialValue):
    """An array of the user's; ``labels`` are those of its cells, by which another library would align it."""

    value: np.ndarray
    labels: object = None

    def array(self, sizes: tuple[int, ...], fan_in: int, dtype: str) -> np.ndarray:
        """The value, copied."""
        return np.array(self.value.reshape(sizes), dtype=dtype, order="C")


@dataclass(frozen=True, slots=True, eq=False)
class Copied(InitialValue):
    """What a tensor holds when the value is first asked for."""

    source: Any

    def array(self, sizes: tuple[int, ...], fan_in: int, dtype: str) -> np.ndarray:
        """Its value."""
        return np.asarray(self.source.value)


class Uniform(InitialValue):
    """Uniform in ``[-b, b)`` with ``b = 1 / sqrt(fan-in)``.

    Fan-in is the number of cells of the input axes; without input axes, the size of the last output axis.
    """

    def __init__(self) -> None:
        self._key = (_SEEDS.seed, next(_SEEDS.ordinals))

    def array(self, sizes: tuple[int, ...], fan_in: int, dtype: str) -> np.ndarray:
        """The value for these sizes."""
        bound = 1 / math.sqrt(max(fan_in, 1))
        return np.random.default_rng(self._key).uniform(-bound, bound, sizes).astype(dtype)


class Drawn(InitialValue):
    """A key of random numbers."""

    def array(self, sizes: tuple[int, ...], fan_in: int, dtype: str) -> np.ndarray:
        """The key of the call that comes next, which is spent."""
        key = KEYS.current()
        KEYS.spend()
        return key


class Made(InitialValue):
    """What a function of the user's makes: ``init(generator, sizes)``."""

    def __init__(self, function: Callable[[np.random.Generator, Sequence[int]], Any]) -> None:
        self._function = function
        self._key = (_SEEDS.seed, next(_SEEDS.ordinals))

    def array(self, sizes: tuple[int, ...], fan_in: int, dtype: str) -> np.ndarray:
        """The value for these sizes; `ConfigurationError` if the function gives another shape."""
        made = np.asarray(self._function(np.random.default_rng(self._key), sizes))
        if made.shape != sizes:
            raise ConfigurationError.at(
                f"init gives an array of shape {list(made.shape)}, but the parameter has the sizes {list(sizes)}",
                hint="init(generator, sizes) returns an array of the sizes that it is given",
            )
        return made.astype(dtype)
