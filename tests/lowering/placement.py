"""Where the temporaries of a call lie, by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.lowering.loop_passes.liveness import Temporaries
from tcdsl.lowering.loopir.loops import Kernel

__all__ = ["place_temporaries"]


def place_temporaries(kernel: Kernel, sizes: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """The offset of each in the block, and the bytes of the block."""
    temporaries = Temporaries(kernel)
    counts = []
    for buffer in temporaries.buffers:
        shape = [max(0, evaluate_size(extent, sizes)) for extent in buffer.shape]
        counts.append(int(np.prod(shape)) * np.dtype(buffer.dtype).itemsize)
    offsets, size = temporaries.placed(counts)
    return {buffer.name: offset for buffer, offset in zip(temporaries.buffers, offsets, strict=True)}, size
