"""The small cases: what runs, and the work that it takes turns with.

Each stands for a kind of loops that has passes of its own. A case takes some tens of microseconds, and all of a process
some seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import programs
from benchmarks.cases import Case
from benchmarks.measure import values_and_adjoints
from benchmarks.small.work import work

__all__ = ["CASES", "SmallCase"]

_DTYPE = "float32"


@dataclass(frozen=True, slots=True)
class SmallCase:
    """One program on small arrays, or its values and the adjoints of all arguments where the shape of the ``cotangent``
    is given; and how many calls of Python its work has beside multiply-adds and copies, where a call takes about as
    long as what it calls.
    """

    program: Callable[..., Any]
    shapes: tuple[tuple[int, ...] | int, ...]
    operations: int
    cells: int
    steps: int = 0
    cotangent: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Unique: the computation and the extents."""
        return self._case.name + (", adjoints" if self.cotangent else "")

    @property
    def _case(self) -> Case:
        return Case(self.program, self.shapes, self.operations, self.cells)

    def call(self) -> Callable[[], Any]:
        """A call that nothing is compiled for yet."""
        inputs = self._case.inputs(_DTYPE)
        if not self.cotangent:
            return partial(self.program, *inputs)
        function = values_and_adjoints(self.program, tuple(range(len(inputs))))
        return partial(function, *inputs, np.ones(self.cotangent, _DTYPE))

    def work(self) -> Callable[[], None]:
        """The work beside it."""
        return work(_DTYPE, self.operations, 2 * 4 * self.cells, self.steps)


CASES = (
    SmallCase(programs.matmul, ((4, 4), (4, 4)), 0, 0, 20),
    SmallCase(programs.matmul_transposed, ((160, 160), (160, 160)), 2 * 160**3, 0),
    SmallCase(programs.layer, ((96, 96), (96, 96), (96,)), 6 * 96**3, 0, 200, (96, 96)),
    SmallCase(programs.convolution, ((1, 16, 28, 28), (16, 16, 3, 3)), 2 * 16 * 16 * 9 * 28 * 28, 0),
    SmallCase(programs.softmax, ((128, 1000),), 60 * 128 * 1000, 0),
    SmallCase(programs.column_sums, ((512, 512),), 0, 512 * 512),
    SmallCase(programs.five_points, ((512, 512),), 0, 2 * 512 * 512),
    SmallCase(programs.embedding, ((5000, 64), 2048), 0, 2 * 2048 * 64),
)
