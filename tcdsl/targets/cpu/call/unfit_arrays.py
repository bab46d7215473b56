"""Arrays that the compiled binding turned down: copied where a copy helps, refused where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.lowering.loopir.loops import Buffer
from tcdsl.targets.cpu.call.launch_plans import Frame, LaunchPlan
from tcdsl.targets.cpu.layout.call_arrays import CallArray
from tcdsl.targets.cpu.layout.frame import FrameLayout

__all__ = ["BoundArrays", "bind_arrays", "require_outputs"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class BoundArrays:
    """The arrays that the nests see, and the ``(array, computed)`` pairs to copy back after the last nest."""

    arrays: list[Array]
    back: list[tuple[Array, Array]]


def bind_arrays(
    plan: LaunchPlan,
    frame: Frame,
    layout: FrameLayout,
    program: str,
    bindings: Sequence[CallArray],
    arrays: Sequence[Array],
) -> BoundArrays:
    """Enter ``arrays`` into ``frame``, as the driver does where nothing is unusual.

    Misaligned arrays, strides that are no whole number of elements, and strided arrays in the place of contiguous ones
    are copied; so is a written array that shares memory with another one, because nests assume that it does not. Raises
    ``ValueError`` for a wrong shape or dtype, and for a read-only array that is to be written.
    """
    seen: list[Array] = []
    back: list[tuple[Array, Array]] = []
    for position, (binding, array) in enumerate(zip(bindings, arrays, strict=True)):
        _require(plan, layout, program, binding, array)
        others = (*arrays[:position], *arrays[position + 1 :])
        shared = binding.exclusive and any(np.may_share_memory(array, other) for other in others)
        if shared or not _is_plain(array, binding):
            copy = np.array(array, order="C", copy=True)
            if binding.exclusive:
                back.append((array, copy))
            array = copy
        seen.append(array)
        _enter(layout, frame, binding, array)
    return BoundArrays(seen, back)


def require_outputs(
    plan: LaunchPlan, layout: FrameLayout, program: str, buffers: Sequence[Buffer], arrays: Sequence[Array]
) -> None:
    """Raise ``ValueError`` unless ``arrays`` can receive the results that lie in ``buffers``."""
    if len(arrays) != len(buffers):
        raise ValueError(f"{program} has {len(buffers)} outputs, not {len(arrays)}")
    for k, (buffer, array) in enumerate(zip(buffers, arrays, strict=True)):
        _require(plan, layout, program, CallArray(buffer, k, contiguous=False, exclusive=False, written=True), array)


def _require(plan: LaunchPlan, layout: FrameLayout, program: str, binding: CallArray, array: Array) -> None:
    name = binding.buffer.name
    shape = plan.shape(layout.buffers[name], len(binding.buffer.shape))
    dtype = np.dtype(binding.buffer.dtype)
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        found = f"{array.dtype}{array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{program}: the array for {name} is {found}, not {dtype}{shape}")
    if binding.written and not array.flags.writeable:
        raise ValueError(f"{program} changes {name}, but the array given is read-only")


def _is_plain(array: Array, binding: CallArray) -> bool:
    flags = array.flags
    whole = all(stride % array.itemsize == 0 for stride in array.strides)
    return bool(flags.aligned and whole and (flags.c_contiguous or not binding.contiguous))


def _enter(layout: FrameLayout, frame: Frame, binding: CallArray, array: Array) -> None:
    slot = layout.buffers[binding.buffer.name]
    frame.words[slot] = array.__array_interface__["data"][0]
    for axis, stride in enumerate(array.strides):
        frame.words[slot + 1 + axis] = stride // array.itemsize
