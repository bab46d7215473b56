"""What a target must be: it generates a module of a kernel's loop nests, loads it, and allocates memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcdsl.targets.protocol.loaded_kernel import LoadedKernel

if TYPE_CHECKING:
    from tcdsl.ir.text.declined import Declined
    from tcdsl.lowering.loopir.loops import Kernel
    from tcdsl.lowering.loopir.machine import Machine

__all__ = ["HOST", "Build", "MemorySpace", "Target"]


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """``MemorySpace("host", (1, 0))``: memory that a target can allocate; ``device`` is what DLPack calls it."""

    name: str
    device: tuple[int, int]


HOST = MemorySpace("host", (1, 0))
"""The memory of the process, where NumPy's arrays lie. All arguments and results of calls do."""


@dataclass(frozen=True, slots=True)
class Build:
    """``Build((True, False))``: how a kernel is built, here for a row-major input and one with strides.

    ``contiguous`` says of each input whether its arrays will be row-major. ``checked`` code tests every access, and
    raises instead of touching memory that is out of range. ``lasting`` kernels are for arrays that stay and will run
    often, so that a longer compilation pays. ``cache_dir`` is where compiled programs live (``None``: the user's cache
    directory).
    """

    contiguous: tuple[bool, ...]
    checked: bool = False
    lasting: bool = False
    cache_dir: Path | None = None


class Target(Protocol):
    """A machine that runs kernels: ``target.load(kernel, target.generate(kernel, build), build).run(arrays, sizes)``.

    ``spaces`` are the memory spaces that it knows. `HOST` is one of them, because arguments and results lie there.
    """

    @property
    def name(self) -> str:
        """What ``tc.config(target=...)`` calls it."""

    @property
    def spaces(self) -> tuple[MemorySpace, ...]:
        """The memory spaces that it knows, `HOST` among them."""

    @property
    def machine(self) -> Machine:
        """What loops are made for."""

    def fingerprint(self) -> Sequence[Any]:
        """What modules and their meaning depend on beside kernel and build: versions, flags, the machine.

        Modules are kept on disk under names that contain it.
        """

    def generate(self, kernel: Kernel, build: Build) -> Any:
        """A module for ``kernel``: a text, or any value that can be pickled, because it is kept for later processes."""

    def declined(self, kernel: Kernel, build: Build) -> Iterable[tuple[str, Declined]]:
        """What it could not do with loops, for ``f.explain("schedule", ...)``: the name of the nest, and why."""

    def load(self, kernel: Kernel, module: Any, build: Build) -> LoadedKernel:
        """``module``, which `generate` made here or in an earlier process, ready to run."""

    def allocate(self, shape: tuple[int, ...], dtype: str, space: MemorySpace = HOST) -> np.ndarray:
        """A row-major array of zeros, as kernels of this target like their memory, such as that of parameters."""
