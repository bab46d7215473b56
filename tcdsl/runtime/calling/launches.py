"""The table of launches: what runs a program on inputs of which shapes.

A program, staged in this process or kept on disk by an earlier one, has one table for each settings and for each set of
inputs that are given as numbers. For shapes it holds a kernel and a plan for each layout that calls had: in a plan
all has been worked out that depends on the sizes (`tcdsl.targets.protocol.loaded_kernel.LaunchedKernel`). Compiled code
checks the arrays: type, shape, layout, alignment, and of those that are written that they are writable and share no
cells.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.config import Settings
from tcdsl.recent import Recent

if TYPE_CHECKING:
    from tcdsl.targets.protocol.loaded_kernel import Launch, LaunchedKernel

__all__ = ["LaunchedProgram", "Launches", "Out", "Planned", "Shapes"]

_SHAPES = 2048  # How many combinations of shapes are remembered.
_SETTINGS = 8
_LAYOUTS = 8
_SHAPE = attrgetter("shape")
_NUMBERS = {"float64": "d", "int64": "q", "uint64": "Q", "bool": "?7x"}

Shapes = tuple[tuple[int, ...], ...]
Out = tuple[Any, ...] | None
# What runs, for which plan, the kernel of both, and the inputs that it takes not to be row-major. Row-major ones would
# be right for it too, but sums would depend on the calls before, and be slower.
Planned = tuple["Launch", Any, "LaunchedKernel", tuple[int, ...]]


class LaunchedProgram(ABC):
    """A program that has a table of launches."""

    def __init__(
        self, input_types: Iterable[tuple[str, int]], updated: Iterable[int], with_cells: Iterable[int]
    ) -> None:
        #: The element type and the rank of each input.
        self.input_types = tuple((np.dtype(dtype), rank) for dtype, rank in input_types)
        #: The positions of the inputs that it changes, and of those that have cells in some calls.
        self.updated, self.with_cells = frozenset(updated), frozenset(with_cells)
        self._launches: dict[tuple[Settings, tuple[int, ...]], Launches] = {}

    @abstractmethod
    def sized(self, shapes: Shapes) -> tuple[Sequence[int], int] | None:
        """The values of all sizes in order for inputs of these shapes, and the largest one; None if there are none."""

    @abstractmethod
    def fitting(self, contiguous: tuple[bool, ...], current: Settings, largest: int) -> LaunchedKernel | None:
        """The machine code for inputs of this layout and for sizes as large as this, if there can be any."""

    @abstractmethod
    def check_written(self, inputs: Sequence[np.ndarray]) -> None:
        """Raise unless written arrays are as they must be."""

    def launches(self, current: Settings, numbers: tuple[int, ...] = ()) -> Launches:
        """The table for these settings. The inputs at the positions ``numbers`` are given as numbers."""
        known = self._launches
        found = known.get((current, numbers))
        if found is None:
            if len(known) > _SETTINGS:
                known.clear()
            found = known[current, numbers] = Launches(self, current, numbers)
        return found


class Launches:
    """The launches of a program, for some ``settings`` and some ``numbers``."""

    def __init__(self, program: LaunchedProgram, current: Settings, numbers: tuple[int, ...]) -> None:
        types = program.input_types
        self.settings = current
        self.numbers = numbers
        self._threads = current.threads
        self._program = program
        self._count = len(types)
        self._arrays = [k for k in range(len(types)) if k not in numbers]
        self._ranks = tuple([types[k][1] for k in self._arrays])
        self._pack = struct.Struct("".join(_NUMBERS[str(types[k][0])] for k in numbers)).pack_into
        self._by_shapes: Recent[Shapes, tuple[Planned, ...]] = Recent(_SHAPES)
        # The kernel of the last call with new shapes.
        self._kernel: LaunchedKernel | None = None
        self._strided: tuple[int, ...] = ()
        #: What the last call ran, and how often calls before had run the same.
        self.latest: Planned | None = None
        self.times = 0

    def run(
        self,
        inputs: tuple[Any, ...],
        numbers: tuple[Any, ...] = (),
        out: Out = None,
        serves: Callable[[Shapes], bool] | None = None,
    ) -> Sequence[np.ndarray] | None:
        """The results, which ``out`` receives; None if nothing was run. New shapes are ones that the program serves.

        In the places of ``numbers``, ``inputs`` may hold anything.
        """
        shapes = tuple([inputs[k].shape for k in self._arrays]) if numbers else tuple(map(_SHAPE, inputs))
        known = self._by_shapes.young.get(shapes) or self._by_shapes.get(shapes) or ()
        for found in known:
            for k in found[3]:
                if inputs[k].flags.c_contiguous:
                    results = None
                    break
            else:
                results = found[0](found[1], inputs, numbers, self._threads, self.check, out)
            if results is not None:
                self.times = self.times + 1 if found is self.latest else 0
                self.latest = found
                return results
        return self._run_anew(shapes, known, inputs, numbers, out, serves)

    def latest_for(self, inputs: tuple[Any, ...]) -> Planned | None:
        """What the last call ran, if that was with these shapes: another thread may have made it."""
        latest, shapes = self.latest, tuple([inputs[k].shape for k in self._arrays])
        return latest if any(each is latest for each in self._by_shapes.get(shapes) or ()) else None

    def planned_for(self, inputs: tuple[Any, ...]) -> Planned | None:
        """What calls with these shapes and this layout have run."""
        shapes = tuple([inputs[k].shape for k in self._arrays])
        strided = tuple([k for k in self._arrays if not inputs[k].flags.c_contiguous])
        return next((each for each in self._by_shapes.get(shapes) or () if each[3] == strided), None)

    def check(self, inputs: tuple[Any, ...]) -> None:
        """Raise unless the inputs that are written are as they must be."""
        self._program.check_written([np.empty(()) if k in self.numbers else inputs[k] for k in range(self._count)])

    def _run_anew(
        self,
        shapes: Shapes,
        known: tuple[Planned, ...],
        inputs: tuple[Any, ...],
        numbers: tuple[Any, ...],
        out: Out,
        serves: Callable[[Shapes], bool] | None,
    ) -> Sequence[np.ndarray] | None:
        # The first call with these shapes, or with such a layout.
        self.latest, self.times = None, 0
        current, program = self.settings, self._program
        if current.debug or "nan" in current.check or tuple(map(len, shapes)) != self._ranks:
            return None
        strided: tuple[int, ...] = ()
        for k in self._arrays:
            if inputs[k].dtype != program.input_types[k][0]:
                return None
            if not inputs[k].flags.c_contiguous:
                strided = (*strided, k)
        every = shapes
        if self.numbers:
            given = iter(shapes)
            every = tuple([() if k in self.numbers else next(given) for k in range(self._count)])
        if not known and serves is not None and not serves(every):
            return None
        sized = program.sized(every)
        if sized is None:
            return None
        values, largest = sized
        tried = None
        if not known and self._kernel is not None and largest <= self._kernel.limit and strided == self._strided:
            # Most often all else is as in the last call; what is not, the driver sees.
            kernel = self._kernel
            tried = kernel.launch, kernel.planned(values, self.numbers, self._pack), kernel, strided
            results = tried[0](tried[1], inputs, numbers, self._threads, self.check, out)
            if results is not None:
                self._by_shapes[shapes] = (tried,)
                return results
        fitting = program.fitting(tuple([k not in strided for k in range(self._count)]), current, largest)
        if fitting is None or any(fitting is each[2] for each in (known if tried is None else (tried,))):
            return None
        if not fitting.changes(program.updated, program.with_cells.intersection(self._arrays)):
            return None
        made = fitting.launch, fitting.planned(values, self.numbers, self._pack), fitting, strided
        results = made[0](made[1], inputs, numbers, self._threads, self.check, out)
        if results is not None:
            self._by_shapes[shapes] = (made, *known[:_LAYOUTS])
            self._kernel, self._strided = fitting, strided
        return results
