"""Where tensors, and the variables of reductions, are cut: as the chunks of the inputs that they are made of.

A grid has for each axis the places where its blocks begin, and the extent: ``((0, 100, 200), (0, 50))``. Any grid gives
the same results; a good one has few blocks that need a part of another one's cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod

from tcdsl.blocks.regions import StatementRegions
from tcdsl.ir.expressions import Expr, IndexValue, Read
from tcdsl.ir.program import Keep, Program
from tcdsl.polyhedra.linear import linear_form

__all__ = ["MERGING", "Grid", "Grids", "volume"]

Grid = tuple[tuple[int, ...], ...]

# Places, and how good they are.
_Suggestion = tuple[tuple[int, bool], tuple[int, ...]]

#: What combines the parts of a reduction, by its accumulator.
MERGING: Mapping[str, str] = {
    "add": "add",
    "subtract": "add",
    "multiply": "multiply",
    "max": "max",
    "min": "min",
    "or": "or",
    "and": "and",
}


def volume(grid: Grid) -> int:
    """How many cells a tensor of that grid has."""
    return prod(places[-1] for places in grid)


class Grids:
    """The grids of all tensors of a program, from those of its inputs, and the cuts of reductions.

    ``statements`` are the regions of each statement by the tensor that it makes.
    """

    def __init__(
        self, program: Program, statements: Mapping[str, StatementRegions], inputs: Mapping[str, Grid]
    ) -> None:
        self.of: dict[str, Grid] = dict(inputs)
        self._inputs = tuple(inputs)
        #: Where the variables of a reduction are cut, by its tensor and the variable.
        self.cuts: dict[str, dict[str, tuple[int, ...]]] = {}
        self._whole = {
            (read.tensor, axis)
            for regions in statements.values()
            for read in regions.reads
            for axis, affine in enumerate(regions.affine_axes(read))
            if not affine
        }
        for statement in program.statements:
            name = statement.target.tensor
            self.of[name] = self._grid(statements[name], name)
            self.cuts[name] = dict(self._cut(statements[name]))

    def _grid(self, regions: StatementRegions, name: str) -> Grid:
        statement = regions.statement
        grid: list[tuple[int, ...]] = []
        for axis, (index, extent) in enumerate(
            zip(statement.target.indices, regions.shapes[name], strict=True),
        ):
            if (name, axis) in self._whole or not regions.is_affine(index):
                grid.append((0, extent))
                continue
            found: list[_Suggestion] = []
            if isinstance(statement.start, Keep):
                kept = self.of[statement.start.tensor]
                found.append(((volume(kept), True), kept[axis]))
            terms, offset = linear_form(index)
            for variable, factor in terms.items():
                if isinstance(variable, IndexValue):
                    for size, places in self._places(regions, variable):
                        found.append((size, _scaled(places, factor, offset, forwards=True)))
            grid.append(_clipped(found or self._of_that_extent(extent), 0, extent))
        return tuple(grid)

    def _of_that_extent(self, extent: int) -> list[_Suggestion]:
        # As of `c[i] += x[k], k <= i`: blocks as large as those of an input.
        inputs = [self.of[name] for name in self._inputs]
        return [((volume(grid), True), places) for grid in inputs for places in grid if places[-1] == extent]

    def _cut(self, regions: StatementRegions) -> Iterator[tuple[str, tuple[int, ...]]]:
        # The variables that the cell of the target leaves open.
        for name, values in regions.summed.items():
            places = _clipped(self._places(regions, IndexValue(name)), values.start, values.stop)
            if len(places) > 2:
                yield name, places

    def _places(self, regions: StatementRegions, variable: Expr) -> list[_Suggestion]:
        # Where reads suggest to cut a variable: large tensors first, and of these reads that go the same way.
        return [
            ((volume(self.of[read.tensor]), upwards), places)
            for read, _, places, upwards in self._suggested(regions, variable)
        ]

    def _suggested(
        self, regions: StatementRegions, variable: Expr
    ) -> Iterator[tuple[Read, int, tuple[int, ...], bool]]:
        for read in regions.reads:
            grid = self.of[read.tensor]
            for axis, (index, places) in enumerate(zip(regions.concrete(read).indices, grid, strict=True)):
                terms, offset = linear_form(index)
                if len(places) > 2 and variable in terms:
                    factor = terms[variable]
                    yield read, axis, _scaled(places, factor, offset, forwards=False), factor > 0

    def cutting(self, regions: StatementRegions, variable: str) -> tuple[Read, int]:
        """The read, and its axis, whose chunks cut a variable."""
        suggested = self._suggested(regions, IndexValue(variable))
        read, axis, *_ = max(suggested, key=lambda each: volume(self.of[each[0].tensor]))
        return read, axis

    def chunked_access(self, regions: StatementRegions) -> tuple[Read, int] | None:
        """A read of the statement that may find any cell of an axis that has several blocks, and the axis."""
        for read in regions.reads:
            for axis, affine in enumerate(regions.affine_axes(read)):
                if not affine and len(self.of[read.tensor][axis]) > 2:
                    return read, axis
        return None


def _scaled(places: tuple[int, ...], factor: int, offset: int, forwards: bool) -> tuple[int, ...]:
    # The places of `factor * variable + offset` where the variable is cut, or the other way round. A small offset is a
    # neighbour in a stencil, with which the blocks stay as they are.
    least = min((b - a for a, b in pairwise(places)), default=0)
    if 2 * abs(offset) < least and factor > 0:
        offset = 0
    if forwards:
        return tuple([factor * place + offset for place in places])
    flipped = int(factor < 0)
    return tuple(
        [
            -((offset - place) // factor) + flipped if factor > 0 else (place - offset) // factor + flipped
            for place in places
        ]
    )


def _clipped(found: list[_Suggestion], first: int, end: int) -> tuple[int, ...]:
    best: tuple[int, ...] = max(found, key=lambda each: each[0], default=((0, True), ()))[1]
    inside = sorted({place for place in best if first < place < end})
    return (first, *inside, max(first, end))
