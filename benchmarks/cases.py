"""The list of benchmarks: one row says what runs, on what, and what bounds its speed. To add a case, add a row.

``operations`` counts floating-point operations (an ``exp`` as one), ``moved`` the cells that must be read or written at
least once: inputs and outputs, no temporaries. A case that has ``adjoints`` is run a second time, values and the
adjoints of these arguments; then both are counted as what the adjoints need: twice and three times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from benchmarks import programs

__all__ = ["CASES", "Case", "Shape"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One computation on arrays of these shapes; peers look it up by the name of the ``program``.

    An integer among the ``shapes`` stands for a list of so many rows of the first array.
    """

    program: Callable[..., Any]
    shapes: tuple[Shape | int, ...]
    operations: int
    moved: int
    adjoints: tuple[int, ...] = ()

    @property
    def computation(self) -> str:
        """What is computed."""
        return str(self.program.__name__).replace("_", " ")

    @property
    def name(self) -> str:
        """Unique: the computation and the extents."""
        return f"{self.computation} {' '.join(map(_extents, self.shapes))}"

    def inputs(self, dtype: str) -> list[np.ndarray]:
        """Arrays for the program, the same at every call."""
        generator = np.random.default_rng(0)
        return [
            generator.integers(0, self.rows, each)
            if isinstance(each, int)
            else generator.standard_normal(each).astype(dtype)
            for each in self.shapes
        ]

    @property
    def rows(self) -> int:
        """The rows of the first array."""
        first = self.shapes[0]
        assert not isinstance(first, int)
        return first[0]


def _extents(shape: Shape | int) -> str:
    return str(shape) if isinstance(shape, int) else "x".join(map(str, shape))


def _product(program: Callable[..., Any], multiplied: int, *shapes: Shape, adjoints: bool = True) -> Case:
    # A sum of so many products, whose factors' adjoints take as many each.
    moved = sum(map(prod, shapes)) + prod(shapes[0])
    return Case(program, shapes, 2 * multiplied, moved, tuple(range(len(shapes))) if adjoints else ())


def _cellwise(program: Callable[..., Any], operations: int, *shapes: Shape, results: int = 1) -> Case:
    # So many operations for each cell of the first array.
    cells = prod(shapes[0])
    return Case(program, shapes, operations * cells, cells * (len(shapes) + results), tuple(range(len(shapes))))


IMAGES, KERNELS = (8, 64, 56, 56), (64, 64, 3, 3)
PIXELS = 8 * 56 * 56

CASES = (
    *(_product(programs.matmul, n**3, (n, n), (n, n)) for n in (16, 64, 512, 1024, 2048)),
    _product(programs.matmul, 1021**3, (1021, 1021), (1021, 1021)),
    _product(programs.matmul_transposed, 128 * 32 * 256, (128, 32), (256, 32)),
    _product(programs.matmul_transposed, 128 * 1024**2, (128, 1024), (1024, 1024)),
    _product(programs.matvec, 4096**2, (4096, 4096), (4096,)),
    _product(programs.batched_first, 64 * 128**3, (64, 128, 128), (64, 128, 128)),
    _product(programs.batched_middle, 64 * 128**3, (128, 64, 128), (128, 64, 128)),
    _product(programs.batched_last, 64 * 128**3, (128, 128, 64), (128, 128, 64)),
    _product(programs.batched_first, 500 * 26 * 72 * 26, (500, 26, 72), (500, 72, 26)),
    _product(programs.tensordot, 16 * 8 * 16 * 17 * 25 * 2, (16, 8, 16, 17, 25), (16, 16, 2, 17, 25)),
    _product(programs.three_matrices, 2 * 512**3, (512, 512), (512, 512), (512, 512)),
    _product(programs.kronecker, 3 * 256 * 16**4, (256, 16, 16, 16), (16, 16), (16, 16), (16, 16)),
    Case(programs.layer, ((128, 1024), (1024, 1024), (1024,)), 2 * 128 * 1024**2, 1024**2 + 2 * 128 * 1024, (0, 1, 2)),
    _product(programs.convolution, PIXELS * 64 * 64 * 9, IMAGES, KERNELS),
    _product(programs.channels_last, PIXELS * 64 * 64 * 9, (8, 56, 56, 64), (3, 3, 64, 64)),
    _product(programs.strided, 8 * 27 * 27 * 64 * 64 * 9, IMAGES, KERNELS),
    _product(programs.grouped, 32 * 54 * 54 * 32 * 4 * 4 * 9, (32, 32, 4, 56, 56), (32, 4, 4, 3, 3)),
    _product(programs.depthwise, 8 * 54 * 54 * 64 * 9, IMAGES, (64, 3, 3)),
    Case(programs.max_pool, (IMAGES,), prod(IMAGES), prod(IMAGES) * 5 // 4, (0,)),
    _cellwise(programs.softmax, 5, (4096, 1000)),
    _cellwise(programs.column_softmax, 5, (1000, 4096)),
    _cellwise(programs.log_sum_exp, 4, (4096, 1000), results=0),
    _cellwise(programs.layer_norm, 7, (4096, 1024)),
    _cellwise(programs.group_norm, 7, (4, 32, 16, 48, 48)),
    Case(programs.moments, ((1024, 36_864),), 3 * 1024 * 36_864, 1024 * 36_864),
    _cellwise(programs.row_sums, 1, (4096, 4096), results=0),
    _cellwise(programs.column_sums, 1, (4096, 4096), results=0),
    Case(programs.row_maxima, ((4096, 4096),), 4096**2, 4096**2),
    _cellwise(programs.cumulative_sum, 1, (256, 4096)),
    _cellwise(programs.quick_gelu, 4, (2**22,)),
    _cellwise(programs.mish, 5, (2**20,)),
    _cellwise(programs.black_scholes, 30, (2**20,), (2**20,), (2**20,)),
    _cellwise(programs.five_points, 5, (2048, 2048)),
    _cellwise(programs.seven_points, 7, (192, 192, 192)),
    _cellwise(programs.blur, 10, (2048, 2048)),
    _cellwise(programs.added_transposed, 1, (2048, 2048)),
    _cellwise(programs.heads_first, 0, (8, 256, 8, 64)),
    Case(programs.distances, ((2000, 64), (2000, 64)), 3 * 2000**2 * 64, 2000**2, (0, 1)),
    Case(programs.n_body, ((3, 1024),), 18 * 1024**2, 6 * 1024, (0,)),
    Case(programs.attention, ((8, 8, 256, 64),) * 3, 4 * 64 * 256**2 * 64, 4 * 64 * 256 * 64, (0, 1, 2)),
    Case(programs.embedding, ((50_000, 64), 8192), 0, 2 * 8192 * 64, (0,)),
)
