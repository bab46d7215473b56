"""The cells of a tensor that some point has given a value: the others still hold what all cells began with.

An accumulation onto a cell that holds nothing yet is no operation, in whichever statement of a chain the cell gets its
first value. So the cells written are known as exactly as the points: sets of isl, or masks where indices are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl
import numpy as np

from tcdsl.autodiff.cost.cardinality import cardinality, coordinates
from tcdsl.autodiff.cost.point_sets import AffinePoints, at_values
from tcdsl.ir.expressions import Expr
from tcdsl.polyhedra.writes import cell_map

__all__ = ["Cells", "WrittenCells", "image"]

_BLOCK = 1 << 20

Cells = isl.Set | np.ndarray


@dataclass(frozen=True, slots=True)
class WrittenCells:
    """``cells`` have values (``None``: all), the others hold ``otherwise``; ``shape`` is the tensor's."""

    shape: tuple[int, ...]
    otherwise: bool | int | float
    cells: Cells | None

    @staticmethod
    def nowhere(shape: tuple[int, ...], otherwise: bool | int | float) -> WrittenCells:
        """All cells hold ``otherwise``."""
        return WrittenCells(shape, otherwise, _nothing(shape))

    def fresh(self, cells: Cells, neutral: bool | int | float) -> int:
        """How many of ``cells`` hold nothing but ``neutral``, so that a first value needs no operation."""
        if self.cells is None or self.otherwise != neutral:
            return 0
        return number(_without(cells, self.cells, self.shape))

    def after(self, changed: Cells | None, written: Cells) -> WrittenCells:
        """What is written after a statement; ``changed`` are cells that lose their value first."""
        if self.cells is None:
            return self
        kept = self.cells if changed is None else _without(self.cells, changed, self.shape)
        return WrittenCells(self.shape, self.otherwise, _together(kept, written, self.shape))


def image(points: AffinePoints, indices: Sequence[Expr]) -> isl.Set:
    """The cells at ``indices``, over the points. `NotAffine` if an index is data."""
    cells = cell_map(points.points, [at_values(axis, points.sizes) for axis in indices])
    return points.points.reset_tuple_id().apply(cells).coalesce()


def number(cells: Cells) -> int:
    """How many cells there are."""
    return int(np.count_nonzero(cells)) if isinstance(cells, np.ndarray) else cardinality(cells)


def _nothing(shape: tuple[int, ...]) -> isl.Set:
    return isl.Set.empty(isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(shape)))


def _mask(cells: Cells, shape: tuple[int, ...]) -> np.ndarray:
    if isinstance(cells, np.ndarray):
        return cells
    mask = np.zeros(shape, bool)
    for rows in coordinates(cells, _BLOCK):
        mask[tuple(rows.T)] = True
    return mask


def _without(cells: Cells, others: Cells, shape: tuple[int, ...]) -> Cells:
    if isinstance(cells, np.ndarray) or isinstance(others, np.ndarray):
        # NumPy makes scalars of arrays without axes.
        return np.asarray(_mask(cells, shape) & ~_mask(others, shape))
    return cells.subtract(others)


def _together(cells: Cells, others: Cells, shape: tuple[int, ...]) -> Cells:
    if isinstance(cells, np.ndarray) or isinstance(others, np.ndarray):
        return np.asarray(_mask(cells, shape) | _mask(others, shape))
    return cells.union(others).coalesce()
