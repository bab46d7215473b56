"""Hard cases as rows of a table: a function, its arguments, and what its derivatives must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["HardCase", "Table"]


@dataclass(frozen=True, eq=False)
class HardCase:
    """One row.

    ``function`` is an `@op`, or a plain function of whole arrays. ``oracle(xp, *arguments)`` computes the same with
    PyTorch's or JAX's functions (``xp``), whose derivatives are then compared; ``peers`` are those that are right.
    ``slopes`` are the gradients of the sum of the outputs by each floating argument, worked out by hand. ``smooth``
    says that differences of values are derivatives there, to second order; ``twice`` is false where there is no second
    derivative. ``compiled`` rows are compiled too. ``broadcast`` ones are made for arguments with extents of one, which
    the program does not say.
    """

    name: str
    function: Any
    arguments: tuple[np.ndarray, ...]
    oracle: Callable[..., Any] | None = None
    slopes: tuple[Any, ...] | None = None
    smooth: bool = False
    compiled: bool = False
    twice: bool = True
    broadcast: bool = False
    peers: tuple[str, ...] = ("torch", "jax")

    def __str__(self) -> str:
        return self.name

    def typed(self, dtype: str) -> list[np.ndarray]:
        """The arguments, floating ones as ``dtype``."""
        return [a.astype(dtype) if a.dtype == np.float64 else a for a in self.arguments]


class Table:
    """Rows in the order in which functions were decorated with it."""

    def __init__(self) -> None:
        self.rows: list[HardCase] = []

    def __call__(self, *arguments: Any, name: str = "", **rest: Any) -> Callable[[Any], Any]:
        """A decorator: its function is a case with these arguments. Several stand on one function."""

        def add(function: Any) -> Any:
            label = str(getattr(function, "__name__", function))
            arrays = tuple(np.asarray(argument) for argument in arguments)
            full = f"{label}-{name}" if name else label
            assert full not in {row.name for row in self.rows}, full
            self.rows.append(HardCase(full, function, arrays, **rest))
            return function

        return add

    def each(self, calls: Sequence[Sequence[Any]], **rest: Any) -> Callable[[Any], Any]:
        """The same for several lists of arguments, named by their position."""

        def add(function: Any) -> Any:
            for number, arguments in enumerate(calls):
                self(*arguments, name=str(number), **rest)(function)
            return function

        return add
