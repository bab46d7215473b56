"""What ``tc.config(debug=True)`` shows on standard error: each compilation and each run, with its time.

::

    tcdsl: compiled matmul: 1 nest in 0.21 s, /home/me/.cache/tcdsl/modules/matmul_1f2e.py
    tcdsl: ran matmul(float32[512, 512], float32[512, 512]) in 3.1 ms
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tcdsl.targets.protocol.loaded_kernel import LoadedKernel

__all__ = ["Stopwatch", "show_compilation", "show_run"]

_LOGGER = logging.getLogger("tcdsl")


class Stopwatch:
    """``Stopwatch().seconds`` is the time since it was made."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._begin


def _show(text: str) -> None:
    # Whoever has set up logging gets the lines there; else they go to standard error.
    if not _LOGGER.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        _LOGGER.addHandler(handler)
        _LOGGER.propagate = False
    if not _LOGGER.isEnabledFor(logging.INFO):
        _LOGGER.setLevel(logging.INFO)
    _LOGGER.info(text)


def show_compilation(name: str, compiled: LoadedKernel, watch: Stopwatch) -> None:
    """Tell that a kernel was compiled, or loaded from the cache directory."""
    verb = "loaded" if compiled.from_disk else "compiled"
    count = len(compiled.kernel.nests)
    nests = "1 nest" if count == 1 else f"{count} nests"
    _show(f"{verb} {name}: {nests} in {watch.seconds:.2f} s, {compiled.path}")


def show_run(name: str, arrays: Sequence[np.ndarray], watch: Stopwatch) -> None:
    """Tell that a program ran on arrays of these types and shapes."""
    given = ", ".join(f"{array.dtype}{list(array.shape)}" for array in arrays)
    _show(f"ran {name}({given}) in {1000 * watch.seconds:.3g} ms")
