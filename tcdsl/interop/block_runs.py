"""What the tasks of a cut function do: put the cells of a window together, and run a program on them.

Tasks hold programs, which workers of other processes get with their first task; each process keeps the machine code.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tcdsl.config import config
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Program
from tcdsl.recent import Recent
from tcdsl.runtime.calling.execution import Executable

__all__ = ["Window", "combined", "cut", "run"]

#: What a window is put together of: its shape, and where each of its pieces goes.
Window = tuple[tuple[int, ...], tuple[tuple[slice, ...], ...]]

_EXECUTABLES: Recent[Program, Executable] = Recent(256)


def cut(block: np.ndarray, cells: tuple[slice, ...]) -> np.ndarray:
    """A part of a block, which does not keep the block alive."""
    return np.array(block[cells])


def combined(primitive: str, *parts: np.ndarray) -> np.ndarray:
    """Parts of a reduction as one, cell by cell."""
    with np.errstate(all="ignore"):
        return np.asarray(functools.reduce(PRIMITIVES[primitive].evaluate, parts), parts[0].dtype)


def run(
    program: Program, sizes: Sequence[int], windows: Sequence[Window | None], *pieces: np.ndarray
) -> np.ndarray[Any, Any]:
    """The only result of ``program`` on windows that are made of ``pieces``, in order; one that is None is one piece.

    Its last inputs, which have no cells, have the extents ``sizes``.
    """
    rest = iter(pieces)
    arrays = [
        _window(window, rest, tensor.dtype)
        for window, tensor in zip(windows, program.inputs[: len(windows)], strict=True)
    ]
    arrays += [np.empty((each, 0), np.bool_) for each in sizes]
    executable = _EXECUTABLES.get(program)
    if executable is None:
        executable = _EXECUTABLES[program] = Executable(program)
    # The scheduler's own threads are as many as may run at once.
    with config(threads=1):
        [result] = executable.run(arrays)
    return result


def _window(window: Window | None, pieces: Iterator[np.ndarray], dtype: str) -> np.ndarray:
    if window is None:
        return _aligned(next(pieces), dtype)
    shape, places = window
    if len(places) == 1 and all(one == slice(0, extent) for one, extent in zip(places[0], shape, strict=True)):
        return _aligned(next(pieces), dtype)
    made = np.empty(shape, dtype)
    for place in places:
        made[place] = next(pieces)
    return made


def _aligned(block: Any, dtype: str) -> np.ndarray:
    # What comes from another worker lies anywhere in the bytes of a message.
    return np.require(block, dtype, ["ALIGNED"])
