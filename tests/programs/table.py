"""The table of characteristic programs: what to call, with which shapes, and what must come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.programs import definitions, references

__all__ = ["LARGE", "PROGRAMS", "CharacteristicProgram", "arguments_of"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class CharacteristicProgram:
    """One row.

    ``calls`` are shapes of the arguments, call by call; the first is typical, the rest go down to 1 and 0. ``integers``
    says for which arguments (by position) data are indices below a number: an argument's extent, ``(argument, axis)``.
    ``smooth`` is false for programs without a gradient.
    """

    name: str
    calls: tuple[tuple[Shape, ...], ...]
    integers: dict[int, tuple[int, int]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True
    empty_values: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def function(self) -> Any:
        return getattr(definitions, self.name)

    @property
    def reference(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(references, self.name)
        return found


def arguments_of(program: CharacteristicProgram, call: tuple[Shape, ...], dtype: str) -> list[np.ndarray]:
    """Arrays for one call: no two equal elements meet, so that max has no ties and distances are not 0."""
    random = np.random.default_rng(len(program.name) + sum(map(sum, call)))
    arrays = []
    for position, shape in enumerate(call):
        if position in program.integers:
            argument, axis = program.integers[position]
            arrays.append(random.integers(0, max(call[argument][axis], 1), shape))
        else:
            arrays.append(random.uniform(-1, 1, shape).astype(dtype))
    return arrays


def _row(name: str, *calls: tuple[Shape, ...], **rest: Any) -> CharacteristicProgram:
    return CharacteristicProgram(name, calls, **rest)


_ROWS = (
    _row("matmul", ((5, 7), (7, 4)), ((1, 1), (1, 1)), ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((33, 20), (20, 40))),
    _row("transpose", ((3, 5),), ((1, 4),), ((0, 2),)),
    _row("trace", ((4, 4),), ((1, 1),), ((0, 0),)),
    _row("diagonal", ((4, 4),), ((1, 1),), ((0, 0),)),
    _row("average", ((5, 3),), ((1, 1),), ((4, 0),)),
    _row("cumulative_sum", ((9,),), ((1,),), ((0,),)),
    _row("skipping", ((6, 4),), ((5, 3),), ((1, 1),), ((0, 3),), ((3, 0),)),
    _row(
        "valid_convolution",
        ((2, 9, 3), (4, 3, 5)),
        ((1, 4, 1), (4, 1, 1)),
        ((2, 5, 0), (2, 0, 3)),
        ((1, 3, 2), (4, 2, 2)),
    ),
    _row(
        "padded_convolution",
        ((2, 9, 3), (3, 3, 2)),
        ((1, 1, 1), (3, 1, 1)),
        ((2, 8, 2), (4, 2, 1)),
        ((1, 0, 2), (3, 2, 1)),
    ),
    _row("full_convolution", ((6,), (3,)), ((3,), (5,)), ((1,), (1,))),
    _row(
        "strided_convolution_2d",
        ((2, 9, 8, 3), (3, 2, 3, 4)),
        ((1, 3, 2, 1), (3, 2, 1, 1)),
        ((1, 4, 5, 0), (1, 1, 0, 2)),
    ),
    _row(
        "dilated_convolution_2d",
        ((2, 8, 9, 2), (3, 2, 2, 3)),
        ((1, 6, 6, 1), (3, 2, 1, 1)),
        ((1, 4, 5, 1), (2, 2, 1, 1)),
    ),
    _row(
        "padded_convolution_2d",
        ((2, 3, 6, 7), (4, 3, 3, 3)),
        ((1, 1, 1, 1), (1, 1, 3, 3)),
        ((1, 2, 2, 5), (2, 2, 5, 3)),
    ),
    _row(
        "complex_convolution",
        ((2, 7, 8, 2, 3), (3, 2, 2, 3, 2)),
        ((1, 5, 5, 1, 1), (2, 3, 1, 1, 1)),
        options={"stride": (2, 1), "dilation": (1, 2)},
    ),
    _row("max_pool", ((8,),), ((7,),), ((1,),), ((0,),)),
    _row("max_pool_up", ((8,),), ((7,),), ((1,),), ((0,),)),
    _row("upsample", ((3, 2),), ((1, 1),), ((0, 2),)),
    _row("softmax", ((4, 6),), ((1, 1),), ((0, 3),)),
    _row("log_sum_exp", ((4, 6),), ((1, 1),), ((0, 3),)),
    _row("layer_norm", ((4, 6), (6,), (6,)), ((1, 2), (2,), (2,)), ((0, 3), (3,), (3,))),
    _row("gather_rows", ((6, 3), (5,)), ((1, 1), (1,)), ((4, 2), (0,)), ((4, 0), (3,)), integers={1: (0, 0)}),
    _row("scatter_add", ((4, 3), (7,), (7, 3)), ((1, 1), (1,), (1, 1)), ((3, 2), (0,), (0, 2)), integers={1: (0, 0)}),
    _row("histogram", ((9,), (9,), (4,)), ((1,), (1,), (1,)), ((0,), (0,), (3,)), integers={0: (2, 0)}),
    _row("blur_reflect", ((5, 6),), ((2, 3),), ((3, 1),), ((1, 1),)),
    _row("argmax_rows", ((4, 6),), ((1, 1),), ((0, 3),), smooth=False),
    _row("outer_difference", ((4,), (3,)), ((1,), (1,)), ((0,), (3,))),
    _row("pairwise_distance", ((4, 3), (5, 3)), ((1, 1), (1, 1)), ((0, 2), (3, 2))),
    _row("attention", ((4, 3), (5, 3), (5, 2)), ((1, 1), (1, 1), (1, 1)), ((0, 2), (3, 2), (3, 4))),
)

PROGRAMS = {row.name: row for row in _ROWS}

# Shapes at which loops are tiled, vectorized with a remainder, and parallel.
LARGE: dict[str, tuple[Shape, ...]] = {
    "matmul": ((257, 131), (131, 197)),
    "transpose": ((301, 517),),
    "trace": ((411, 411),),
    "diagonal": ((411, 411),),
    "average": ((1003, 517),),
    "cumulative_sum": ((2001,),),
    "skipping": ((301, 517),),
    "valid_convolution": ((3, 203, 17), (5, 17, 33)),
    "padded_convolution": ((3, 203, 17), (5, 17, 33)),
    "full_convolution": ((3001,), (33,)),
    "strided_convolution_2d": ((2, 61, 47, 9), (3, 3, 9, 17)),
    "dilated_convolution_2d": ((2, 61, 47, 9), (3, 3, 9, 17)),
    "padded_convolution_2d": ((2, 9, 61, 47), (17, 9, 3, 3)),
    "complex_convolution": ((2, 31, 29, 3, 5), (3, 3, 3, 5, 7)),
    "max_pool": ((100_003,),),
    "max_pool_up": ((100_003,),),
    "upsample": ((201, 303),),
    "softmax": ((301, 1003),),
    "log_sum_exp": ((301, 1003),),
    "layer_norm": ((301, 1003), (1003,), (1003,)),
    "gather_rows": ((503, 129), (1009,)),
    "scatter_add": ((503, 129), (1009,), (1009, 129)),
    "histogram": ((50_021,), (50_021,), (97,)),
    "blur_reflect": ((301, 517),),
    "argmax_rows": ((301, 1003),),
    "outer_difference": ((1003,), (517,)),
    "pairwise_distance": ((201, 67), (303, 67)),
    "attention": ((131, 65), (211, 65), (211, 33)),
}
