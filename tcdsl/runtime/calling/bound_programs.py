"""Programs on arrays that stay, such as the parameters and buffers of a training step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tcdsl.targets.protocol.loaded_kernel import BoundKernel

__all__ = ["BoundProgram"]


class BoundProgram:
    """``bound = Executable(step).bind([w, x, rate])``, then ``bound()`` runs the machine code on these arrays.

    ::

        w: float32[2, 16], x: float32[100, 2], rate: float64
        bound()                    # w changes in place; bound.outputs are the results, overwritten by each run
        rate[()] = 0.05            # numbers are arrays of rank 0
        bound.replace(1, other)    # another array of the same type; its shape and layout may differ

    A run looks nothing up, checks no shape and allocates nothing. Settings are those of the time of binding. Runs in
    several threads wait for each other.
    """

    __slots__ = ("_bind", "_kernel", "_watch")

    def __init__(
        self,
        bind: Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], BoundKernel],
        kernel: BoundKernel,
        watch: Callable[[BoundKernel], None] | None = None,
    ) -> None:
        self._bind = bind
        self._kernel = kernel
        self._watch = watch

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs."""
        return self._kernel.inputs

    @property
    def outputs(self) -> tuple[np.ndarray, ...]:
        """The results of the last run."""
        return self._kernel.outputs

    def replace(self, position: int, array: np.ndarray) -> None:
        """Take ``array`` for the input at ``position`` from now on. `ShapeError` if it does not fit: nothing changes.

        The outputs are made anew if their shapes change.
        """
        arrays = list(self._kernel.inputs)
        arrays[position] = array
        self._kernel = self._bind(arrays, self._kernel.outputs)

    def __call__(self) -> None:
        """Run. Raises `DataIndexError` if an index read from data is out of range, and has then changed no input."""
        if self._watch is None:
            self._kernel()
        else:
            self._watch(self._kernel)
