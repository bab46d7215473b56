"""Memory that a call writes: in-place arguments and output buffers must be the caller's own, writable and apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DtypeError, ShapeError
from tcdsl.frontend.staging.given_arrays import require_plain
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.runtime.calling.arguments import Call

__all__ = ["check_written", "output_buffers"]


def check_written(program: Program, arrays: Sequence[np.ndarray], call: Call | None = None) -> None:
    """Check the arrays that ``program`` updates: writable, without shared cells, apart from every other argument.

    ``call`` tells which arrays were made from other objects; without it all are the caller's own arrays.
    """
    updates = {name for name, _ in program.updates}
    apart = _all_apart(arrays)
    for position, (tensor, array) in enumerate(zip(program.inputs, arrays, strict=True)):
        if tensor.name not in updates:
            continue
        label = tensor.label or tensor.name
        given = None if call is None else next((a.given for a in call.arguments if a.array is array), array)
        if given is not None and not isinstance(given, np.ndarray):
            raise DtypeError.at(
                f"{program.name}() writes to `{label}`, which is a {type(given).__name__}",
                hint="pass a NumPy array, whose memory can be written",
            )
        if not array.flags.writeable:
            raise ShapeError.at(
                f"{program.name}() writes to `{label}`, but the array is read-only", hint="pass a copy: `x.copy()`"
            )
        if not array.flags.c_contiguous and array.size and _overlaps_itself(array):
            raise ShapeError.at(
                f"{program.name}() writes to `{label}`, but some of its cells share memory (strides {array.strides})",
                hint="pass a copy: `x.copy()`",
            )
        for other_position, other in enumerate(() if apart else arrays):
            if other_position != position and _overlap(array, other):
                raise ShapeError.at(
                    f"{program.name}() writes to `{label}`, which shares memory with "
                    f"`{program.inputs[other_position].label or program.inputs[other_position].name}`",
                    hint="pass arrays that do not overlap, or a copy of one of them",
                )


def _all_apart(arrays: Sequence[np.ndarray]) -> bool:
    # Whether the ends of all arrays show that no two share memory: routines have hundreds of them.
    ends: list[tuple[int, int]] = []
    for array in arrays:
        if array.size:
            first = array.__array_interface__["data"][0]
            steps = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)]
            low, high = (sum(step for step in steps if (step > 0) is up) for up in (False, True))
            ends.append((first + low, first + high + array.itemsize))
    ends.sort()
    return all(end <= start for (_, end), (start, _) in pairwise(ends))


def _overlap(left: np.ndarray, right: np.ndarray) -> bool:
    # The bounds are compared first: the exact answer is a search.
    return np.may_share_memory(left, right) and np.shares_memory(left, right)


def _overlaps_itself(array: np.ndarray) -> bool:
    # Sorted by stride, every axis must step over all that the smaller ones reach.
    axes = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    reach = array.itemsize
    for stride, extent in axes:
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def output_buffers(
    program: Program, out: Sequence[Any], arrays: Sequence[np.ndarray], sizes: Mapping[str, int]
) -> list[np.ndarray]:
    """The arrays of ``out``, one per output: of its type and shape, row-major, writable, and apart from the inputs."""
    buffers = list(out)
    if len(buffers) != len(program.outputs):
        raise ConfigurationError(f"{program.name}(): out has {len(buffers)} arrays for {len(program.outputs)} outputs")
    for number, (buffer, output) in enumerate(zip(buffers, program.outputs, strict=True)):
        tensor = program.tensor(output)
        label = tensor.label or tensor.name
        shape = tuple(evaluate_size(extent, sizes) for extent in tensor.shape)
        if isinstance(buffer, np.ndarray):
            require_plain(buffer, "out", f"{program.name}(): ")
        if not isinstance(buffer, np.ndarray) or buffer.dtype != tensor.dtype or buffer.shape != shape:
            got = f"{buffer.dtype}{list(buffer.shape)}" if isinstance(buffer, np.ndarray) else type(buffer).__name__
            raise ShapeError.at(
                f"{program.name}(): the output `{label}` is {tensor.dtype}{list(shape)}, but out is {got}"
            )
        if not buffer.flags.writeable or not buffer.flags.c_contiguous:
            raise ShapeError.at(
                f"{program.name}(): out must be writable and row-major", hint="allocate it with np.empty"
            )
        if any(_overlap(buffer, other) for other in (*arrays, *buffers[:number])):
            raise ShapeError.at(f"{program.name}(): out shares memory with another array", hint="allocate it anew")
    return buffers
