"""Comparing what range inference says with plain Python over a box of integers, for many sizes, 0 and 1 among them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tcdsl.errors import ShapeError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program, Statement
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tests.ranges.programs import Shapes

__all__ = ["BOX", "agree", "arrays_of", "compute", "domain_points", "largest_interval", "sizes_of"]

# By the number of variables: sizes in tests of many variables are small.
BOX = (range(1), range(-9, 16), range(-7, 13), range(-3, 8), range(-1, 4), range(-1, 3))


def sizes_of(shapes: Shapes, extents: Sequence[int] = (0, 1, 2, 5)) -> list[dict[str, int]]:
    """All ways to choose the extents of the inputs."""
    names = [f"{name}_{axis}" for name, rank in shapes.ranks.items() for axis in range(rank)]
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(extents, repeat=len(names))]


def bound(program: Program, sizes: Mapping[str, int]) -> dict[str, int]:
    """All sizes of a call."""
    given = [tuple(sizes[f"{tensor.name}_{axis}"] for axis in range(len(tensor.shape))) for tensor in program.inputs]
    return bind_sizes(program, given)


def domain_points(statement: Statement, sizes: Mapping[str, int]) -> set[tuple[int, ...]]:
    """The points of the domain, with the variables in alphabetical order."""
    variables = statement.domain.variables
    order = sorted(range(len(variables)), key=lambda k: variables[k])
    return {tuple(point[k] for k in order) for point in statement.domain.points(sizes)}


def agree(
    shapes: Shapes,
    shape: Callable[..., tuple[int, ...] | None],
    points: Callable[..., bool],
    extents: Sequence[int] = (0, 1, 2, 5),
) -> None:
    """The last statement's target has ``shape(**sizes)``, and its domain the integers where ``points(i, j, ...,
    **sizes)``.

    ``points`` takes the index variables in alphabetical order. Where ``shape`` is None the call is a `ShapeError`.
    """
    program = shapes.program()
    statement = program.statements[-1]
    count = len(statement.domain.variables)
    for sizes in sizes_of(shapes, extents):
        expected = shape(**sizes)
        if expected is None:
            with pytest.raises(ShapeError):
                bound(program, sizes)
            continue
        every = bound(program, sizes)
        made = tuple(evaluate_size(extent, every) for extent in program.tensors[-1].shape)
        assert made == expected, (sizes, str(statement.domain))
        box = {place for place in itertools.product(BOX[count], repeat=count) if points(*place, **sizes)}
        assert domain_points(statement, every) == box, sizes


def largest_interval(holds: Callable[[int], bool]) -> range:
    """The integers where ``holds``, which must be an interval that does not reach the ends of the box."""
    found = [value for value in range(-40, 60) if holds(value)]
    if not found:
        return range(0)
    assert found == list(range(found[0], found[-1] + 1))
    assert found[0] > -40
    assert found[-1] < 59
    return range(found[0], found[-1] + 1)


def arrays_of(shapes: Shapes, sizes: Mapping[str, int], seed: int = 0) -> list[np.ndarray]:
    """Random inputs of these sizes; integers where the input is declared as such."""
    random = np.random.default_rng(seed)
    made = []
    for tensor in shapes.inputs:
        extents = tuple(sizes[f"{tensor.name}_{axis}"] for axis in range(len(tensor.shape)))
        if tensor.dtype.startswith("int"):
            made.append(random.integers(0, 3, extents).astype(tensor.dtype))
        elif tensor.dtype == "bool":
            made.append(random.integers(0, 2, extents).astype(bool))
        else:
            made.append(random.standard_normal(extents))
    return made


def compute(shapes: Shapes, arrays: Sequence[np.ndarray]) -> Any:
    """The last tensor, by the reference interpreter."""
    return interpret(shapes.program(), arrays).outputs[0]
