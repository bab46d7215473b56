"""Random statements against their definition: all integers are tried for every index, and each point is looked at."""

from __future__ import annotations

import functools
import itertools
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.tile import *

# No valid point of the statements below has an index beyond this.
FARTHEST = 14
AGGREGATIONS = {"+=": np.sum, "*=": np.prod, ">=": np.max, "<=": np.min, "=": np.sum}


@dataclass(frozen=True)
class Linear:
    """``(sum of coefficients * indices + offset) // divisor``."""

    coefficients: tuple[int, ...]
    offset: int
    divisor: int

    def written(self, indices: tuple[Any, ...]) -> Any:
        total: Any = self.offset
        for coefficient, each in zip(self.coefficients, indices, strict=True):
            total = total + coefficient * each
        return total // self.divisor

    def at(self, point: tuple[int, ...]) -> int | None:
        total = self.offset + sum(c * value for c, value in zip(self.coefficients, point, strict=True))
        return None if total % self.divisor else total // self.divisor


@dataclass(frozen=True)
class Statement:
    """A statement on a target of ``sizes``, which reads A and B and has constraints with bounds."""

    aggregation: str
    combination: str
    sizes: tuple[int, ...]
    target: tuple[Linear, ...]
    reads: tuple[tuple[Linear, ...], ...]
    constraints: tuple[tuple[Linear, int], ...]
    has_default: bool

    @property
    def count(self) -> int:
        return len(self.target[0].coefficients)


def random_statement(rng: random.Random) -> Statement:
    count = rng.randint(1, 3)

    def linear(used: float) -> Linear:
        coefficients = tuple(rng.choice([1, 1, 1, 2, -1, 3, -2]) if rng.random() < used else 0 for _ in range(count))
        return Linear(coefficients, rng.randint(-2, 2), rng.choice([1, 1, 1, 1, 2, 3]))

    def single(k: int) -> Linear:
        return Linear(tuple(int(k == each) for each in range(count)), rng.choice([0, 0, 1, -1]), 1)

    def index() -> Linear:
        return single(rng.randrange(count)) if rng.random() < 0.5 else linear(0.6)

    return Statement(
        rng.choice(list(AGGREGATIONS)),
        rng.choice(["", "*", "+"]),
        tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 2))),
        tuple(index() for _ in range(2)),
        (tuple(index() for _ in range(2)), (index(),)),
        tuple((linear(0.7), rng.randint(1, 4)) for _ in range(rng.randint(0, 2))),
        rng.random() < 0.3,
    )


A = np.random.default_rng(3).permutation(12).reshape(3, 4) - 5.5
B = np.random.default_rng(4).permutation(5) - 2.25


def run(statement: Statement, A: Any, B: Any) -> Any:
    """The statement as Tile has it."""
    indices = TensorIndexes(statement.count)
    rank = len(statement.sizes)
    O = TensorOutput(*statement.sizes)
    key = tuple(each.written(indices) for each in statement.target[:rank])
    cells = [
        tensor[tuple(each.written(indices) for each in access)]
        for tensor, access in zip((A, B), statement.reads, strict=True)
    ]
    value = {"": cells[0], "*": cells[0] * cells[1], "+": cells[0] + cells[1]}[statement.combination]
    match statement.aggregation:
        case "+=":
            O[key] += value
        case "*=":
            O[key] *= value
        case ">=":
            O[key] >= value
        case "<=":
            O[key] <= value
        case "=":
            O[key] = value
    O.add_constraints([each.written(indices) < bound for each, bound in statement.constraints if used(statement, each)])
    if statement.has_default:
        O.use_default(index(statement.sizes, 0) + 0.5)
    return O


def used(statement: Statement, constraint: Linear) -> bool:
    """Whether all of its indices occur in the statement too, and some do."""
    rank, reads = len(statement.sizes), statement.reads[: 2 if statement.combination else 1]
    occurring = [each for access in (statement.target[:rank], *reads) for each in access]
    present = {k for k in range(statement.count) if constraint.coefficients[k]}
    return bool(present) and all(any(each.coefficients[k] for each in occurring) for k in present)


def expected(statement: Statement) -> tuple[np.ndarray, int, bool]:
    """What the definition says: the cells, the farthest index, and whether a cell has two values."""
    rank, reads = len(statement.sizes), statement.reads[: 2 if statement.combination else 1]
    places = [(statement.target[:rank], statement.sizes), *zip(reads, (A.shape, B.shape), strict=False)]
    occurring = [
        k for k in range(statement.count) if any(each.coefficients[k] for access, _ in places for each in access)
    ]
    values: dict[tuple[int, ...], list[float]] = {}
    farthest = 0
    ranges = [range(-FARTHEST, FARTHEST + 1) if k in occurring else (0,) for k in range(statement.count)]
    for point in itertools.product(*ranges):
        found = []
        for access, sizes in places:
            cell = tuple(each.at(point) for each in access)
            if any(each is None or not 0 <= each < size for each, size in zip(cell, sizes, strict=True)):
                break
            found.append(cell)
        else:
            bounds = [(each.at(point), bound) for each, bound in statement.constraints if used(statement, each)]
            if all(value is not None and 0 <= value < bound for value, bound in bounds):
                farthest = max(farthest, *map(abs, point))
                cells = [float(array[cell]) for array, cell in zip((A, B), found[1:], strict=False)]
                combined = functools.reduce(lambda a, b: a * b if statement.combination == "*" else a + b, cells)
                values.setdefault(found[0], []).append(combined)
    default = np.indices(statement.sizes)[0] + 0.5 if statement.has_default else np.zeros(statement.sizes)
    made = default.astype(float)
    for cell, each in values.items():
        made[cell] = AGGREGATIONS[statement.aggregation](each)
    twice = statement.aggregation == "=" and any(len(each) > 1 for each in values.values())
    return made, farthest, twice


def rejection(message: str, twice: bool) -> str:
    """What kind of statement was rejected, if rightly."""
    if "nothing bounds" in message:
        return "unbounded"  # and without valid points
    assert "`=` writes each cell once" in message
    assert twice
    return "twice"


def statements(first: int, count: int) -> list[Statement]:
    return [random_statement(random.Random(seed)) for seed in range(first, first + count)]


def checked(statement: Statement) -> str:
    """Compare what the interpreter gives with the definition; what kind of statement it was."""
    made, farthest, twice = expected(statement)

    @op
    def program(A, B):
        return run(statement, A, B)

    if farthest == FARTHEST:
        with pytest.raises(tc.ShapeError, match="nothing bounds the index"):
            program.interpret(A, B)
        return "unbounded"
    try:
        found = program.interpret(A, B)
    except tc.ShapeError as error:
        return rejection(str(error), twice)
    assert not twice, statement
    np.testing.assert_allclose(found, made, atol=1e-9, err_msg=str(statement))
    return "right"


def test_interpreted_statements() -> None:
    kinds = [checked(statement) for statement in statements(0, 40)]
    assert kinds.count("right") > 26
    assert "twice" in kinds


def test_compiled_statements() -> None:
    chosen = [each for each in statements(0, 25) if checked(each) == "right"]

    @op
    def program(A, B):
        return [run(statement, A, B) for statement in chosen]

    for found, statement in zip(program(A, B), chosen, strict=True):
        np.testing.assert_allclose(found, expected(statement)[0], atol=1e-9, err_msg=str(statement))
