"""Programs with loops that run, and arrays for them: their texts are beside this file, in `loop_texts/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.verifier.verifier import verify

__all__ = ["DERIVED", "LOOPS", "LOWERED", "SMOOTH", "LoopProgram", "rounds_of"]

TEXTS = Path(__file__).parent / "loop_texts"


@dataclass(frozen=True)
class LoopProgram:
    """A program, and arrays for it with which the outermost loop has about as many rounds as a number says."""

    name: str
    arrays: Callable[[np.random.Generator, int], list[np.ndarray]]
    #: Whether derivatives are those of the values: not where values are rounded, nor where a rule says otherwise.
    smooth: bool = True

    @cached_property
    def text(self) -> str:
        """The program, as text."""
        return (TEXTS / f"{self.name.replace(' ', '_')}.txt").read_text(encoding="utf-8")

    @property
    def program(self) -> Program:
        """The program, verified."""
        program = parse_program(self.text)
        verify(program)
        return program

    def of(self, size: int) -> list[np.ndarray]:
        """Arrays for this number."""
        return self.arrays(np.random.default_rng(size), size)

    def problems(self) -> Iterator[list[np.ndarray]]:
        """Arrays for no round, one, two, and more."""
        return map(self.of, (0, 1, 2, 3, 7))


def rounds_of(count: int) -> np.ndarray:
    """An array without cells whose first extent is ``count``."""
    return np.empty((count, 0), bool)


def _uniform(*shape: int, seed: int = 3, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(dtype)


def _definite(matrix: np.ndarray) -> np.ndarray:
    return matrix @ matrix.T + len(matrix) * np.eye(len(matrix))


LOOPS = {
    each.name: each
    for each in (
        LoopProgram("heat", lambda rng, n: [rng.normal(size=5), rounds_of(n)]),
        LoopProgram("product", lambda rng, n: [rng.normal(size=()), rng.normal(size=n)]),
        LoopProgram(
            "recurrent",
            lambda rng, n: [
                rng.normal(size=3),
                rng.normal(size=(3, 3)),
                rng.normal(size=(n, 3)),
            ],
        ),
        LoopProgram("swap", lambda rng, n: [rng.normal(size=()), rng.normal(size=()), rng.normal(size=n)]),
        LoopProgram("delay", lambda rng, n: [rng.normal(size=()), rng.normal(size=n)]),
        LoopProgram("lorenz", lambda rng, n: [rng.normal(size=3), np.array(10.0), rounds_of(n)]),
        LoopProgram("cholesky", lambda rng, n: [_definite(rng.normal(size=(n, n)))]),
        LoopProgram(
            "nested", lambda rng, n: [rng.normal(size=2), 0.5 * rng.normal(size=2), 0.5 * rng.normal(size=max(n, 1))]
        ),
        # Used before, inside and after; carried by two results; carried and never changed; given as an initial value
        # and as an invariant; one loop after the other.
        LoopProgram(
            "everywhere", lambda rng, n: [rng.normal(size=()), rng.normal(size=()), rng.normal(size=max(n, 1))]
        ),
        # The number of the place to read, and whether to add, are carried; neither has a derivative.
        LoopProgram("integers", lambda rng, n: [rng.normal(size=()), rng.normal(size=3), rounds_of(n)]),
        # A triangular system, row by row.
        LoopProgram("substitution", lambda rng, n: [rng.normal(size=(n, n)) + 3 * np.eye(n), rng.normal(size=n)]),
        # Cells that each round overwrites in place, of which other cells are made.
        LoopProgram("overwritten", lambda rng, n: [0.5 * rng.normal(size=4), 0.5 * rng.normal(size=()), rounds_of(n)]),
        # A loop of one round or none.
        LoopProgram("branch", lambda rng, n: [rng.normal(size=2), np.array(0.7 * (-1) ** n)]),
        # Data say how often the loop runs; a round reads its number.
        LoopProgram("until", lambda rng, n: [rng.normal(size=2), np.array(0.15 + 0.1 * n)]),
        # Data say how often the loop runs, without a condition.
        LoopProgram("counted", lambda rng, n: [rng.normal(size=()), rng.normal(size=3), np.array(n)]),
        # The body knows no extent that says how many rounds there are.
        LoopProgram("unrelated", lambda rng, n: [rng.normal(size=()), rng.normal(size=n + 2), rounds_of(n)]),
        # Tensors of one round, whose extents depend on it, and a maximum that is recognized again.
        LoopProgram("growing", lambda rng, n: [rng.normal(size=()), 0.4 * rng.normal(size=n)]),
        LoopProgram(
            "single precision", lambda rng, n: [rng.normal(size=3), rng.normal(size=3), rounds_of(n)], smooth=False
        ),
        # A history of two cells, each overwritten by every second round.
        LoopProgram("ring", lambda rng, n: [rng.normal(size=2), rng.normal(size=()), rounds_of(n)]),
        # A history from its last row to its first, of which each round reads the first row too.
        LoopProgram("upwards", lambda rng, n: [rng.normal(size=n), rng.normal(size=())]),
        # A history that is read and written at places that are data.
        LoopProgram(
            "places", lambda rng, n: [rng.normal(size=3), rng.integers(0, 3, size=n), rng.integers(0, 3, size=n)]
        ),
        # Rows of a history made by a loop in each round.
        LoopProgram("two histories", lambda rng, n: [rng.normal(size=(n, 2)), rng.normal(size=2)]),
        # A derivative rule in the body, and a part without a derivative.
        LoopProgram("ruled", lambda rng, n: [rng.normal(size=()), rng.normal(size=n)], smooth=False),
        LoopProgram("newton", lambda rng, n: [np.array(1.0 + 3 * n)]),
        LoopProgram("fibonacci", lambda rng, n: [np.array(0), np.array(1), rounds_of(n)]),
        # The same with arrays: memory moves in a circle.
        LoopProgram(
            "wave",
            lambda rng, n: [_uniform(6, 5, dtype=np.float32), _uniform(6, 5, seed=5, dtype=np.float32), rounds_of(n)],
        ),
        # One tensor becomes two, one stays what it was outside, and one is the start of two.
        LoopProgram("shared", lambda rng, n: [_uniform(5), rounds_of(n)]),
        LoopProgram("cholesky in place", lambda rng, n: [_definite(_uniform(n, n))]),
        # A history: each step writes the next row; the step uses a tensor that is as long as the round's number.
        LoopProgram("history", lambda rng, n: [_uniform(n, 3), _uniform(3, seed=1)]),
        # Two loops, the inner as long as the number of the outer round; the inner one starts anew in each.
        LoopProgram("triangle", lambda rng, n: [_uniform(n)]),
        # Counts from data, a round that is data, indices by it.
        LoopProgram("counted rounds", lambda rng, n: [np.array(n), _uniform(15, dtype=np.float32)]),
        # Game of life: bools, neighbours.
        LoopProgram("life", lambda rng, n: [rng.integers(0, 2, (7, 6)).astype(bool), rounds_of(n)]),
        # Loops three deep: the innermost changes the state of the outermost one, one cell in each round.
        LoopProgram("matrix product", lambda rng, n: [_uniform(n, 3), _uniform(3, 2)]),
        # An array that some rounds change: a branch is a loop of at most one round. A history of what was there; the
        # last stage of a body reads what loops have made of the memory that it writes.
        LoopProgram("branches", lambda rng, n: [_uniform(4), (np.arange(n) % 3).astype(np.int32)]),
    )
}

LOWERED = (
    "heat",
    "newton",
    "fibonacci",
    "wave",
    "shared",
    "cholesky in place",
    "history",
    "triangle",
    "counted rounds",
    "life",
    "matrix product",
    "branches",
)
"""Those whose code is looked at: all that carrying, counting and nesting can be."""

DERIVED = tuple(name for name in LOOPS if name == "heat" or name not in LOWERED)
"""Those whose derivatives are tested."""

SMOOTH = tuple(name for name in DERIVED if LOOPS[name].smooth)
