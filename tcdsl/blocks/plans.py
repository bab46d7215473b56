"""How a program runs on blocks: which tensors are kept, as blocks, and what each block is made of.

::

    plan = BlockPlan(program, sizes, {"x": ((0, 1000, 2000),)})
    for family in plan.families:                       # in order: what one reads, those before have made
        family.tensor, family.grid, family.cuts
        for k, place in enumerate(family.places):      # a task for each block, and for each part of a reduction
            [view.boxes[k] for view in family.views]

All that is not kept is computed again in each block that needs it, as far as it is needed: halos of stencils. Kept are
results, reductions that are cut, what data scatters, and what many blocks would compute again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from tcdsl.blocks.grids import MERGING, Grid, Grids, volume
from tcdsl.blocks.regions import MOVED, Box, StatementRegions, has_no_data
from tcdsl.errors import ShapeError
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.expressions import Boundary, Read, reads
from tcdsl.ir.program import Fill, Keep, Program, Statement

__all__ = ["BlockPlan", "Family", "ReadWindow", "started_from"]

#: How many times the cells of a tensor may be computed, by one family and, for reductions, by all of them.
_MOST_AGAIN = 2.0

Boxes = list[Box | None]


@dataclass(slots=True)
class ReadWindow:
    """What the tasks of a family read of a kept tensor: a box for each of them.

    Along an axis of which ``ends`` says ``WRAP``, ``REFLECT`` or ``SYMMETRIC`` a box may go on beyond the ends.
    """

    tensor: str
    boxes: Boxes
    ends: tuple[Boundary | None, ...]
    #: The reads that find their cells here: by the tensor that their statement makes.
    readers: list[tuple[str, Read | None]] = field(default_factory=list)


@dataclass(slots=True)
class Family:
    """The tasks that make the blocks of one tensor.

    ``places`` are, for each task, the number of its block along each axis and then along each of ``cuts``, the
    variables that are cut, with where; tasks without a point are left out, but for the first of a block.
    ``windows`` has a box for each task of each tensor that the tasks make.
    """

    tensor: str
    grid: Grid
    cuts: tuple[tuple[str, tuple[int, ...]], ...]
    places: list[tuple[int, ...]]
    windows: dict[str, Boxes]
    ranges: list[Box]
    views: list[ReadWindow]

    @property
    def is_cut(self) -> bool:
        """Whether tasks make parts of a reduction, which are to be combined."""
        return bool(self.cuts)


class BlockPlan:
    """See the top of this file. `ShapeError` for an access that cannot be cut."""

    def __init__(self, program: Program, sizes: Mapping[str, int], inputs: Mapping[str, Grid]) -> None:
        self.program, self.sizes = program, dict(sizes)
        self.inputs = frozenset(inputs)
        statements = {each.target.tensor: each for each in program.statements}
        self._plain = {name: StatementRegions(each, program, sizes) for name, each in statements.items()}
        self.grids = Grids(program, self._plain, inputs)
        for statement in program.statements:
            self._require_cuttable(statement)
        self._cut_regions = {
            name: StatementRegions(each, program, sizes, tuple(self.grids.cuts[name]))
            for name, each in statements.items()
        }
        kept = {name for name in program.outputs if name not in self.inputs}
        kept.update(name for name, each in self._plain.items() if self._must_be_kept(name, each))
        kept.update(self._read_beyond_ends())
        for name in self._plain:
            if self.grids.cuts[name]:
                # The parts are combined before the tensor's start.
                kept.update(each for each in started_from(statements[name]) if each not in self.inputs)
        while True:
            self.kept = frozenset(kept)
            names = [each.target.tensor for each in program.statements if each.target.tensor in kept]
            self.families = [self._family(name) for name in names]
            again = self._computed_too_often()
            if not again:
                break
            kept.update(again)
        needed = set(program.outputs)
        for family in reversed(self.families):
            if family.tensor in needed:
                needed.update(view.tensor for view in family.views)
                needed.update(started_from(statements[family.tensor]) if family.is_cut else ())
        self.families = [family for family in self.families if family.tensor in needed]

    def statement(self, tensor: str) -> Statement:
        """The statement that makes a tensor."""
        return next(each for each in self.program.statements if each.target.tensor == tensor)

    def _must_be_kept(self, name: str, regions: StatementRegions) -> bool:
        target = regions.statement.target.indices
        return bool(self.grids.cuts[name]) or not all(regions.is_affine(index) for index in target)

    def _read_beyond_ends(self) -> Iterator[str]:
        for regions in self._plain.values():
            for read in regions.reads:
                if read.tensor in self._plain and not MOVED.isdisjoint(read.boundaries):
                    yield read.tensor

    def _computed_too_often(self) -> set[str]:
        found: set[str] = set()
        every: dict[str, float] = {}
        for family in self.families:
            for name, boxes in family.windows.items():
                if name == family.tensor:
                    continue
                times = sum(map(_cells, boxes)) / max(volume(self.grids.of[name]), 1)
                every[name] = every.get(name, 0.0) + times
                if times > _MOST_AGAIN and self._reads_more_than_numbers(name):
                    found.add(name)
        return found | {name for name, times in every.items() if times > _MOST_AGAIN and self._reduces(name)}

    def _reads_more_than_numbers(self, name: str) -> bool:
        return any(self.grids.of[read.tensor] for read in self._plain[name].reads)

    def _reduces(self, name: str) -> bool:
        statement = self._plain[name].statement
        return len(statement.domain.variables) > len(statement.target.indices)

    # -- what cannot be cut

    def _require_cuttable(self, statement: Statement) -> None:
        name = statement.target.tensor
        access = self.grids.chunked_access(self._plain[name])
        if access is not None:
            read, axis = access
            kind = "not affine" if has_no_data(read.indices[axis]) else "data"
            chunks = len(self.grids.of[read.tensor][axis]) - 1
            fact = (
                f"the index of axis {axis} of `{self._called(read.tensor)}` is {kind}, so each block may read any cell "
                f"of it, but it has {chunks} chunks along this axis"
            )
            raise ShapeError.at(fact, read.span, f"make it one chunk: `.rechunk({{{axis}: -1}})`")
        cuts = self.grids.cuts[name]
        if cuts and (statement.accumulate not in MERGING or statement.unique):
            variable = next(iter(cuts))
            symbol = ACCUMULATORS[statement.accumulate].symbol
            reason = (
                f"`{symbol}` takes its values in order" if not statement.unique else "no two values may meet in a cell"
            )
            read, axis = self.grids.cutting(self._plain[name], variable)
            fact = (
                f"the index `{variable}` runs over the chunks of axis {axis} of `{self._called(read.tensor)}`, but "
                f"{reason}, so it cannot be cut"
            )
            raise ShapeError.at(fact, statement.span, f"make it one chunk: `.rechunk({{{axis}: -1}})`")

    def _called(self, name: str) -> str:
        tensor = self.program.tensor(name)
        return tensor.label or name

    # -- families

    def _family(self, name: str) -> Family:
        grid = self.grids.of[name]
        cuts = tuple(self.grids.cuts[name].items())
        axes = [*grid, *(places for _, places in cuts)]
        boxes: list[Box] = []
        places: list[tuple[int, ...]] = []
        begun: set[tuple[int, ...]] = set()
        for place in product(*[range(len(each) - 1) for each in axes]):
            box = tuple([(each[k], each[k + 1]) for each, k in zip(axes, place, strict=True)])
            block = place[: len(grid)]
            # A block in which no part has a point gets one all the same.
            last = place[len(grid) :] == tuple(len(each) - 2 for _, each in cuts) and block not in begun
            if cuts and not last and self._cut_regions[name].of(box) is None:
                continue
            begun.add(block)
            places.append(place)
            boxes.append(box)
        windows: dict[str, Boxes] = {name: [box[: len(grid)] for box in boxes]}
        views = self._views(name, windows, boxes)
        return Family(name, grid, cuts, places, windows, [box[len(grid) :] for box in boxes], views)

    def _views(self, name: str, windows: dict[str, Boxes], boxes: Sequence[Box]) -> list[ReadWindow]:
        views: dict[str, list[ReadWindow]] = {}
        for statement in reversed(self.program.statements):
            target = statement.target.tensor
            if target not in windows:
                continue
            main = target == name
            regions = self._cut_regions[name] if main else self._plain[target]
            asked = list(boxes) if main else windows[target]
            found = [None if box is None else regions.of(box) for box in asked]
            for k, read in enumerate(regions.reads):
                needed: Boxes = [None if each is None else each[k] for each in found]
                self._ask(views, windows, read.tensor, needed, (target, read), _ends(regions, read))
            if isinstance(statement.start, Keep) and not (main and self.grids.cuts[name]):
                ends = (None,) * len(self.grids.of[target])
                self._ask(views, windows, statement.start.tensor, list(windows[target]), (target, None), ends)
        return [view for each in views.values() for view in _merged(each)]

    def _ask(
        self,
        views: dict[str, list[ReadWindow]],
        windows: dict[str, Boxes],
        tensor: str,
        needed: Boxes,
        reader: tuple[str, Read | None],
        ends: tuple[Boundary | None, ...],
    ) -> None:
        if not self.grids.of[tensor]:
            needed = [()] * len(needed)  # its only cell is there, whether a task reads it or not
        if tensor in self.kept or tensor in self.inputs:
            views.setdefault(tensor, []).append(ReadWindow(tensor, needed, ends, [reader]))
        else:
            before = windows.get(tensor)
            windows[tensor] = needed if before is None else list(map(_hull, before, needed))


def started_from(statement: Statement) -> tuple[str, ...]:
    """The tensors that say what the cells of a statement's target start from."""
    match statement.start:
        case Keep(tensor=tensor):
            return (tensor,)
        case Fill(value=value):
            return tuple(dict.fromkeys(read.tensor for read in reads(value)))
    return ()


def _ends(regions: StatementRegions, read: Read) -> tuple[Boundary | None, ...]:
    # What becomes of indices out of range, along each axis: as the block has it (``CLAMP``), as if the axis went on, or
    # nothing, as there are none.
    return tuple(
        [
            Boundary.CLAMP
            if not affine or boundary in (Boundary.CLAMP, Boundary.FILL)
            else boundary
            if boundary in MOVED
            else None
            for boundary, affine in zip(read.boundaries, regions.affine_axes(read), strict=True)
        ]
    )


def _hull(one: Box | None, other: Box | None) -> Box | None:
    if one is None or other is None:
        return other if one is None else one
    return tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)])


def _cells(box: Box | None) -> int:
    return 0 if box is None else prod(high - low for low, high in box)


def _merged(views: Iterable[ReadWindow]) -> list[ReadWindow]:
    # Views become one where this makes nothing larger: the reads of a stencil, but not `x[i, k]` and `x[j, k]`.
    done: list[ReadWindow] = []
    for view in views:
        size = sum(map(_cells, view.boxes))
        for other in done:
            ends = _both_ends(view.ends, other.ends)
            if ends is None:
                continue
            boxes = list(map(_hull, view.boxes, other.boxes))
            if sum(map(_cells, boxes)) <= size + sum(map(_cells, other.boxes)):
                other.boxes, other.ends = boxes, ends
                other.readers += view.readers
                break
        else:
            done.append(view)
    return done


def _both_ends(
    one: tuple[Boundary | None, ...], other: tuple[Boundary | None, ...]
) -> tuple[Boundary | None, ...] | None:
    if any(a and b and a is not b for a, b in zip(one, other, strict=True)):
        return None
    return tuple([a or b for a, b in zip(one, other, strict=True)])
