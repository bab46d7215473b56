"""Kernels on arrays that stay: bound once, run many times at the cost of a function call.

::

    bound = compiled.bind([w, x, rate], sizes)     # checks the arrays, enters their addresses
    for step in range(1000):
        rate[()] = schedule(step)                  # numbers are arrays of rank 0, which may change between runs
        bound()                                    # nothing is looked up, checked or allocated
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcdsl.locks import lock_of_this_process
from tcdsl.targets.cpu.call.launch_plans import Frame, LaunchPlan
from tcdsl.targets.cpu.layout.frame import STATUS_WORD

__all__ = ["BoundMachineCode"]

Array = np.ndarray[Any, np.dtype[Any]]


class BoundMachineCode:
    """A kernel with its arrays; calling it runs the machine code. `CompiledKernel.bind` makes it.

    ``inputs`` and ``outputs`` are the arrays, to which it holds on: their addresses are in the frame. After each run
    the ``copies`` are made, in order. It has a frame and temporaries of its own. Runs in several threads wait for
    each other, since they would write the same arrays.
    """

    __slots__ = ("_arguments", "_copies", "_count", "_failed", "_frame", "_lock", "_plan", "_run", "inputs", "outputs")

    def __init__(
        self,
        plan: LaunchPlan,
        frame: Frame,
        run: Callable[..., int],
        arguments: tuple[int, ...],
        failed: Callable[[int], Exception],
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        copies: Sequence[tuple[Array, Array]],
    ) -> None:
        self._plan = plan  # machine code reads its table
        self._frame = frame
        self._run = run
        self._arguments = arguments
        self._count = arguments[1]
        self._failed = failed
        self._lock = lock_of_this_process()
        self._copies = copies
        self.inputs: tuple[Array, ...] = tuple(inputs)
        self.outputs: tuple[Array, ...] = tuple(outputs)

    def __call__(self) -> None:
        """Run. Raises `DataIndexError` if an index read from data is out of range, and has then changed no input."""
        with self._lock:
            try:
                done = self._run(*self._arguments)
            except BaseException:  # of a signal that Python has handled
                self._frame.words[STATUS_WORD] = 0
                raise
            if done != self._count:
                error = self._failed(done)
                self._frame.words[STATUS_WORD] = 0
                raise error
            for destination, source in self._copies:
                np.copyto(destination, source)
