"""What a target makes of a kernel: something that runs on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from tcdsl.lowering.loopir.loops import Kernel

__all__ = ["BoundKernel", "LaunchedKernel", "LoadedKernel", "NestStopped"]


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


class LaunchedKernel(Protocol):
    """A kernel as calls see it that are like earlier ones: `plan` works out once what depends on the sizes alone, and
    `launch` runs on what it gave.
    """

    def changes(self, changed: Set[int], arrays: Set[int]) -> bool:
        """Whether `launch` changes the inputs at the positions ``changed`` and no others, of all those in ``arrays``,
        and sees to it itself that they may be changed.
        """

    def plan(self, sizes: Mapping[str, int], numbers: tuple[int, ...] = ()) -> Any:
        """What `launch` wants to know about calls with these sizes. Inputs at the positions ``numbers`` are numbers."""

    @property
    def limit(self) -> int:
        """The largest absolute value of a size that it is made for."""

    def planned(self, values: Sequence[int], numbers: tuple[int, ...]) -> Any:
        """What `plan` gives, for the values of all sizes in order. Nothing remembers it."""

    def launch(
        self,
        plan: Any,
        inputs: tuple[np.ndarray, ...],
        numbers: tuple[bool | int | float, ...],
        pack: Callable[..., None],
        threads: int,
        check: Callable[[tuple[np.ndarray, ...]], None],
        out: tuple[Any, ...] | None = None,
    ) -> Sequence[np.ndarray] | None:
        """Run as `run` does, on arrays that may be otherwise than planned: ``None`` if nothing was run.

        So may be those in ``out``, which receive the results; ``None`` has arrays made for them.

        ``pack(memory, offset, *numbers)`` writes ``numbers`` into memory, eight bytes each. ``check(inputs)`` raises if
        inputs share cells with one that is written; it may be left out where a simpler test shows that none do.
        """

    def repeating(
        self, plan: Any, known: Set[int], pack: Callable[..., None], threads: int | None
    ) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Sequence[np.ndarray] | None] | None:
        """A function of the inputs and the numbers that does the same, where it sees all inputs but the ``known`` ones.

        Any objects may be given; ``None`` says again that nothing was run. There is none where `launch` does more.
        """


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
