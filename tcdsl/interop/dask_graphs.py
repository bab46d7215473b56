"""Graphs of Dask for a program that is cut into blocks: a layer for each tensor that is kept.

A task takes the blocks that it reads whole, and pieces of others, which are tasks too: so what goes from one worker to
another is no more than what is read there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import count, pairwise, product
from typing import Any

import dask.array
import numpy as np
from dask._task_spec import Alias, DataNode, Task, TaskRef
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from tcdsl.blocks.block_programs import BlockProgram, finishing_program
from tcdsl.blocks.grids import MERGING
from tcdsl.blocks.plans import BlockPlan, Family, ReadWindow, started_from
from tcdsl.blocks.regions import MOVED, Box
from tcdsl.interop.block_runs import Window, combined, cut, run
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.boundaries import moved
from tcdsl.ir.exact import EXACT
from tcdsl.ir.expressions import Boundary
from tcdsl.ir.program import Program

__all__ = ["computed", "grid_of"]

#: How many parts of a reduction one task combines.
_PARTS_AT_ONCE = 4

Key = tuple[Hashable, ...]


def grid_of(array: dask.array.Array) -> tuple[tuple[int, ...], ...]:
    """Where the chunks of an array begin, and its extents."""
    return tuple([(0, *np.cumsum(chunks).tolist()) for chunks in array.chunks])


def computed(plan: BlockPlan, given: Mapping[str, dask.array.Array]) -> dict[str, dask.array.Array]:
    """The arrays of all tensors that a plan keeps, from those of the inputs."""
    arrays = dict(given)
    token = tokenize(plan.program, tuple(sorted(plan.sizes.items())), *[arrays[name].name for name in sorted(arrays)])
    for family in plan.families:
        layer = _Layer(plan, family, arrays, token)
        arrays[family.tensor] = layer.array()
    return arrays


class _Layer:
    """The tasks of one family."""

    def __init__(self, plan: BlockPlan, family: Family, arrays: Mapping[str, dask.array.Array], token: str) -> None:
        self.plan, self.family, self.arrays, self._token = plan, family, arrays, token
        self.name = self._called()
        self._tasks: dict[Any, Any] = {}
        self._pieces: dict[tuple[Key, tuple[tuple[int, int, int], ...]], Key] = {}
        self._read: set[str] = set()

    def _called(self, *what: str) -> str:
        # Schedulers learn how long tasks take by the words in front of the token.
        return "-".join((self.plan.program.name, *what, self.family.tensor, self._token))

    def array(self) -> dask.array.Array:
        """The blocks that the tasks make, as an array."""
        family, plan = self.family, self.plan
        blocks = BlockProgram.of(plan, family)
        program = self._program(blocks.program, "program")
        rank = len(family.grid)
        parts: dict[tuple[int, ...], list[Key]] = {}
        for k, place in enumerate(family.places):
            block = place[:rank]
            key: Key = (self.name, *block) if not family.is_cut else (self._called("part"), *place)
            self._run(key, program, blocks.values[k], [(view, view.boxes[k]) for view in family.views])
            parts.setdefault(block, []).append(key)
        if family.is_cut:
            self._combine(parts)
        tensor = plan.program.tensor(family.tensor)
        graph = HighLevelGraph.from_collections(
            self.name, self._tasks, dependencies=[self.arrays[name] for name in sorted(self._read)]
        )
        chunks = tuple(tuple(b - a for a, b in pairwise(places)) for places in family.grid)
        return dask.array.Array(graph, self.name, chunks, dtype=np.dtype(tensor.dtype))

    def _program(self, program: Program, what: str) -> TaskRef:
        key = self._called(what)
        if key not in self._tasks:
            self._tasks[key] = DataNode(key, program)
        return TaskRef(key)

    def _run(
        self, key: Key, program: TaskRef, sizes: Sequence[int], windows: Sequence[tuple[ReadWindow, Box | None]]
    ) -> None:
        forms: list[Window] = []
        pieces: list[TaskRef] = []
        for view, box in windows:
            form, keys = self._window(view, ((0, 0),) * len(view.ends) if box is None else box)
            forms.append(form)
            pieces += map(TaskRef, keys)
        self._tasks[key] = Task(key, run, program, tuple(sizes), tuple(forms), *pieces)

    def _window(self, view: ReadWindow, box: Box) -> tuple[Window, list[Key]]:
        # The pieces of a window, block by block.
        self._read.add(view.tensor)
        grid = self.plan.grids.of[view.tensor]
        axes = [
            list(_spans(low, high, places, end)) for (low, high), places, end in zip(box, grid, view.ends, strict=True)
        ]
        places: list[tuple[slice, ...]] = []
        keys: list[Key] = []
        for spans in product(*axes):
            block: Key = (self.arrays[view.tensor].name, *[number for number, _, _ in spans])
            whole = all(
                cells == (0, places[number + 1] - places[number], 1)
                for (number, cells, _), places in zip(spans, grid, strict=True)
            )
            keys.append(block if whole else self._piece(block, tuple([cells for _, cells, _ in spans])))
            places.append(tuple([slice(at, at + (end - begin) * step) for _, (begin, end, step), at in spans]))
        return (tuple([max(high - low, 0) for low, high in box]), tuple(places)), keys

    def _piece(self, block: Key, cells: tuple[tuple[int, int, int], ...]) -> Key:
        found = self._pieces.get((block, cells))
        if found is None:
            found = self._pieces[block, cells] = (self._called("piece"), len(self._pieces))
            # From the first cell to the last one, also backwards.
            slices = tuple([slice(a, None if b < 0 else b, step) for a, b, step in cells])
            self._tasks[found] = Task(found, cut, TaskRef(block), slices)
        return found

    def _combine(self, parts: Mapping[tuple[int, ...], list[Key]]) -> None:
        plan, name = self.plan, self.family.tensor
        primitive = ACCUMULATORS[MERGING[plan.statement(name).accumulate]].primitive
        finishing = finishing_program(plan, name)
        for block, level in parts.items():
            number = count()
            while len(level) > 1:
                groups = [level[k : k + _PARTS_AT_ONCE] for k in range(0, len(level), _PARTS_AT_ONCE)]
                level = []
                for group in groups:
                    level.append((self._called("combined"), *block, next(number)))
                    self._tasks[level[-1]] = Task(level[-1], combined, primitive, *map(TaskRef, group))
            key = (self.name, *block)
            if finishing is None:
                self._tasks[key] = Alias(key, level[0])
            else:
                self._finish(key, level[0], finishing, block)

    def _finish(self, key: Key, parts: Key, program: Program, block: tuple[int, ...]) -> None:
        statement = self.plan.statement(self.family.tensor)
        box = tuple([(places[k], places[k + 1]) for places, k in zip(self.family.grid, block, strict=True)])
        forms: list[Window | None] = [None]
        keys = [parts]
        for name in started_from(statement):
            rank = len(self.plan.grids.of[name])
            form, more = self._window(ReadWindow(name, [], (None,) * rank), box[:rank])
            forms.append(form)
            keys += more
        self._tasks[key] = Task(key, run, self._program(program, "finishing"), (), tuple(forms), *map(TaskRef, keys))


def _spans(
    low: int, high: int, places: tuple[int, ...], end: Boundary | None
) -> Iterator[tuple[int, tuple[int, int, int], int]]:
    """The parts of a window along an axis: a block, from where to where in it and in which steps, and where it goes."""
    extent = places[-1]
    first, last = min(max(low, 0), high), max(min(high, extent), low)
    if end is not None and end in MOVED:
        for begin, stop in ((low, first), (last, high)):
            yield from _spans_beyond(low, begin, stop, places, end)
    number = int(np.searchsorted(places, first, side="right")) - 1
    while first < last:
        stop = min(last, places[number + 1])
        if stop > first:
            yield number, (first - places[number], stop - places[number], 1), first - low
        first, number = stop, number + 1


def _spans_beyond(
    low: int, begin: int, stop: int, places: tuple[int, ...], end: Boundary
) -> Iterator[tuple[int, tuple[int, int, int], int]]:
    # Runs of cells that go up or down.
    cells = [moved(k, places[-1], end, lambda name, *given: EXACT[name](*given), int) for k in range(begin, stop)]
    numbers = (np.searchsorted(places, cells, side="right") - 1).tolist()
    first = 0
    while first < len(cells):
        last, step = first + 1, 0
        while last < len(cells) and numbers[last] == numbers[first]:
            change = cells[last] - cells[last - 1]
            if abs(change) != 1 or (step and change != step):
                break
            step, last = change, last + 1
        step = step or 1
        inside = cells[first] - places[numbers[first]]
        yield numbers[first], (inside, inside + step * (last - first), step), begin + first - low
        first = last
