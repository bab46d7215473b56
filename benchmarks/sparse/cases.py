"""The table: a program, by which argument to differentiate it, at which sizes, and how its own cost grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks.sparse import programs

__all__ = ["CASES", "Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """One program.

    ``arguments`` makes inputs and configuration for a size. Peers that store a ``matrix`` of size by size cells stop
    where it gets too large.
    """

    title: str
    function: Any
    arguments: Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]]
    sizes: tuple[int, ...]
    argnum: int = 0
    matrix: bool = False

    @property
    def name(self) -> str:
        """The program's name, by which peers look up theirs."""
        return str(self.function.__name__)

    def gradient(self, size: int) -> Callable[[], Any]:
        """A call of tcdsl's gradient."""
        derivative = tc.grad(self.function, argnums=self.argnum)
        arguments, configuration = self.arguments(size)
        return lambda: derivative(*arguments, **configuration)


def _vector(size: int) -> Any:
    return np.random.default_rng(size).uniform(0.5, 1.5, size)


def _signals(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (_vector(size), _vector(9), _vector(size) + 1), {}


def _batches(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    signals = _vector(8 * size).reshape(8, size)
    return (signals, _vector(9), signals + 1), {}


_LONG = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_WRITTEN_OUT = (8, 16, 32, 64, 128)
_CELLS = (*_WRITTEN_OUT, 256, 512)

CASES = (
    Case(
        "10 traces of a diagonal matrix", programs.traces, lambda n: ((_vector(n),), {"count": 10}), _LONG, matrix=True
    ),
    Case(
        "column times row of a diagonal matrix",
        programs.row_times_column,
        lambda n: ((_vector(n),), {}),
        _LONG,
        matrix=True,
    ),
    Case(
        "trace of x times the identity",
        programs.trace_of_identity,
        lambda n: ((np.asarray(2.0), _vector(n)), {}),
        _LONG,
        matrix=True,
    ),
    Case(
        "x[0] + x[2] + x[3] + ..., written out",
        programs.chosen_cells,
        lambda n: ((_vector(n + 1),), {"count": n}),
        _CELLS,
    ),
    Case("deconvolution, by the signal", programs.deconvolution, _signals, _LONG),
    Case("deconvolution, by the kernel", programs.deconvolution, _signals, _LONG, argnum=1),
    Case("8 deconvolutions, by their kernel", programs.batched_deconvolution, _batches, _LONG[:-2], argnum=1),
    Case("product of named scalars", programs.product_of_cells, lambda n: ((_vector(n),), {"count": n}), _WRITTEN_OUT),
)
