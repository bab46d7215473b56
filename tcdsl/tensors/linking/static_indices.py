"""Static indices: numbers of a run that choose a part of the data, such as the number of a minibatch.

::

    batch_n = tc.static_index("batch_n", 10)
    x = data[batch_n]                    # data: 10, 100 | -> 2;  x: 100 | -> 2
    step = tc.compile(tc.train.grad_update(loss(x)))
    step.run(batch_n=3)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DataIndexError
from tcdsl.rows.inference import known
from tcdsl.tensors.graphs.initialization import Filled
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tensors.graphs.tensor_memory import tick
from tcdsl.tracebacks import user_facing

__all__ = ["StaticIndex", "static_index"]


class StaticIndex(Tensor):
    """An integer from 0 to ``size - 1``, set by ``routine.run(batch_n=3)`` or ``batch_n.value = 3``."""

    __slots__ = ("extent",)

    def __init__(self, name: str, size: int) -> None:
        super().__init__((name,), known(), "int64", initial=Filled(0))
        self.extent = size

    def checked(self, number: object) -> int:
        """``number`` as a position. `DataIndexError` if out of range, `ConfigurationError` if it is no integer."""
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise fault(ConfigurationError, f"the static index `{self.label}` is an integer, not {number!r}")
        if not 0 <= number < self.extent:
            raise fault(
                DataIndexError,
                f"the static index `{self.label}` = {number} is out of range",
                f"it runs from 0 to {self.extent - 1}",
            )
        return int(number)

    @property
    @user_facing
    def value(self) -> Any:
        """The position, as an array of rank 0; assigning checks its range."""
        return super().value

    @value.setter
    @user_facing
    def value(self, number: object) -> None:
        self.set(number)

    def set(self, number: object) -> None:
        """Take a number, as `checked`."""
        position = self.checked(number)
        buffer = self.buffer("value")
        buffer.allocated()[()] = position
        buffer.clock = tick()


@user_facing
def static_index(name: str, size: int) -> StaticIndex:
    """``batch_n = tc.static_index("batch_n", 10)``: an index from 0 to 9, 0 until it is set.

    ``data[batch_n]`` (in the literal spelling ``data @| batch_n``) is the part of the leading axis at that position.
    `ConfigurationError` unless ``name`` is an identifier and ``size`` an integer above 0.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise fault(
            ConfigurationError,
            f"tc.static_index({name!r}): the name of a static index is an identifier",
            'write tc.static_index("batch_n", size); run(batch_n=...) sets it',
        )
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise fault(
            ConfigurationError,
            f"tc.static_index({name!r}, {size!r}): a size is an integer above 0",
            "give the number of positions, such as the number of minibatches",
        )
    return StaticIndex(name, int(size))
