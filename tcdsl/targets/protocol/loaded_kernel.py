"""What a target makes of a kernel: something that runs on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from tcdsl.lowering.loopir.loops import Kernel

__all__ = ["BoundKernel", "Launch", "LaunchedKernel", "LoadedKernel", "NestStopped"]


class NestStopped(Exception):  # noqa: N818  # no fault: the call goes another way
    """A kernel that was kept on disk stopped, and does not know what it was told: run the program itself."""


class BoundKernel(Protocol):
    """A kernel on arrays that stay: ``bound = loaded.bind([w, x], sizes)``, and then ``bound()`` again and again."""

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The arrays that it reads, and changes where the program does."""

    @property
    def outputs(self) -> tuple[np.ndarray, ...]:
        """The results of the last run; each run overwrites them."""

    def __call__(self) -> None:
        """Run. Raises `DataIndexError` if an index read from data is out of range, and has then changed no input."""


class Launch(Protocol):
    """``launch(plan, inputs, numbers, threads, check, out)`` runs as `LoadedKernel.run` does, as was planned.

    The arrays may be otherwise: ``None`` says that nothing was run. So may be those in ``out``, which receive the
    results; without it arrays are made. ``check(inputs)`` raises if inputs share cells with one that is written; it may
    be left out where a simpler test shows that none do.
    """

    def __call__(
        self,
        plan: Any,
        inputs: tuple[Any, ...],
        numbers: tuple[bool | int | float, ...],
        threads: int,
        check: Callable[[tuple[Any, ...]], None],
        out: tuple[Any, ...] | None = None,
        /,
    ) -> Sequence[np.ndarray] | None:
        """Run."""


class LaunchedKernel(Protocol):
    """A kernel as calls see it that are like earlier ones: `planned` works out once what depends on the sizes alone,
    and `launch` runs on what it gave.
    """

    @property
    def limit(self) -> int:
        """The largest absolute value of a size that it is made for."""

    def changes(self, changed: Set[int], arrays: Set[int]) -> bool:
        """Whether a launch changes the inputs at the positions ``changed`` and no others, of all those in ``arrays``,
        and sees to it itself that they may be changed.
        """

    def sees(self, positions: Set[int]) -> bool:
        """Whether a launch looks at all inputs at these positions, where any objects may be given."""

    def planned(self, values: Sequence[int], numbers: tuple[int, ...], pack: Callable[..., None]) -> Any:
        """What `launch` wants to know of calls with these values of all sizes, in order. Nothing remembers it.

        The inputs at the positions ``numbers`` are given as numbers: ``pack(memory, offset, *numbers)`` writes them
        into memory, eight bytes each.
        """

    @property
    def launch(self) -> Launch:
        """What runs."""


class LoadedKernel(LaunchedKernel, Protocol):
    """A kernel that runs: ``[C] = loaded.run([A, B], {"N": 3, "K": 4, "M": 5})``. May be called from several threads.

    `run` serves every call. A target without a quicker way for calls like earlier ones says so in `changes`, and is
    then never asked to `launch`.
    """

    @property
    def kernel(self) -> Kernel:
        """The loop nests that it was made of."""

    @property
    def source(self) -> str:
        """The kernel as text, for people."""

    @property
    def path(self) -> Path:
        """Where people find that text."""

    @property
    def from_disk(self) -> bool:
        """Whether nothing had to be compiled."""

    def run(
        self,
        inputs: Sequence[np.ndarray],
        sizes: Mapping[str, int],
        outputs: Sequence[np.ndarray] | None = None,
        threads: int | None = None,
        before_copying: Callable[[], None] | None = None,
    ) -> list[np.ndarray]:
        """Run the program and return its outputs; inputs that it updates are changed in place.

        ``inputs`` have the program's dtypes and shapes, ``sizes`` the value of every size. Inputs may be misaligned or
        overlap one that is written; ``before_copying`` is called then, and may raise. ``outputs``, if given, receive
        the results and are returned. Raises `DataIndexError` if an index read from data is out of range, ``ValueError``
        if an array does not fit: inputs and ``outputs`` then hold what they held.
        """

    def timed(
        self, inputs: Sequence[np.ndarray], sizes: Mapping[str, int], threads: int | None = None
    ) -> tuple[float, dict[int, tuple[float, int]]]:
        """Run once, as `run` does, and give the seconds of all, and by nest those that it took and how often it ran.

        The inputs are aligned, and those that are written share no memory with others; they are changed.
        """

    def bind(
        self,
        inputs: Sequence[np.ndarray],
        sizes: Mapping[str, int],
        outputs: Sequence[np.ndarray] | None = None,
        threads: int | None = None,
    ) -> BoundKernel:
        """The kernel on these arrays, to be run many times. ``outputs``, or arrays made here, receive the results.

        Raises ``ValueError`` for arrays that do not fit, and for what `run` would copy: misaligned arrays, and ones
        that share memory with one that is written.
        """
