"""`TensorLens`: names of the axes as a tensor stores them, and as a program writes them.

::

    lens = TensorLens("NCHW", "NHWC")
    X = I.use(lens)                             I is stored as NCHW; X[n, h, w, c] are its cells
    O = TensorOutput(N, H, W, C, lens=lens)     O[n, h, w, c] += ..., stored as NCHW
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.views import permuted
from tcdsl.frontend.tile.user_lines import fault
from tcdsl.rows.ranks import RowRanks

__all__ = ["TensorLens"]


class TensorLens:
    """``TensorLens(source, target)``: axes that are stored in the order of ``source`` are written as ``target``."""

    __slots__ = ("_order", "source", "target")

    def __init__(self, source: str, target: str) -> None:
        if not isinstance(source, str) or not isinstance(target, str):
            raise fault(DslSyntaxError, "the names of axes are text", 'write `TensorLens("NCHW", "NHWC")`')
        self.source = source
        self.target = target
        if len(set(source)) < len(source) or sorted(source) != sorted(target):
            raise fault(
                DslSyntaxError,
                f"a lens from {source!r} to {target!r}",
                'both name the same axes, each by one letter: `TensorLens("NCHW", "NHWC")`',
            )
        self._order = tuple(source.index(axis) for axis in target)

    def shown(self, stored: Sequence[Any]) -> tuple[Any, ...]:
        """What belongs to the axes as they are stored, in the order in which they are written."""
        self.check(len(stored))
        return tuple(stored[axis] for axis in self._order)

    def stored(self, shown: Sequence[Any]) -> tuple[Any, ...]:
        """What belongs to the axes as they are written, in the order in which they are stored."""
        self.check(len(shown))
        return tuple(shown[self.target.index(axis)] for axis in self.source)

    def used(self, array: Any) -> Any:
        """``array.use(lens)``: its cells with the axes in the order in which they are written."""
        self.check(array.ndim)
        return array.builder.algebra.operation("use", (array,), partial(_permuted, self._order))

    def check(self, rank: int) -> None:
        """`ShapeError` for a tensor of another rank."""
        if rank != len(self.source):
            raise fault(ShapeError, f"a lens for {self.source!r} on a tensor of rank {rank}", "name every axis")

    def __repr__(self) -> str:
        return f"TensorLens({self.source!r}, {self.target!r})"


def _permuted(order: Sequence[int], _: Any, given: Sequence[Any]) -> Any:
    return permuted(given[0], order, RowRanks(output=len(order)))
