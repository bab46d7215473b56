"""Trees of branches whose reads are all that bounds a variable, on declared and existing targets.

The rules, the interpreter and the compiled code must agree.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tests.differential.agreement import agree, attempt, matches_outcome
from tests.differential.loading import loaded
from tests.long_variants import seeds
from tests.oracle.functions import expected
from tests.oracle.generation import Case

Pick = Callable[[int, int], int]

_READS = ("A[j]", "B[j + 1]", "A[j - 1]", "B[j + 2]", "B[4 - j]", "A[2*j]", "B[j // 2]", "C[i, j + 1]", "A[j - 6]")
_TESTS = ("D[i] > 0", "D[i] < 0", "D[i] > 0 and j < 3", "j > 2 or D[i] > 1", "not (D[i] == 0)", "j >= i", "E[i] > 2")
_STATEMENTS = (
    "T[i] = sum({})",
    "T = output(3)\n    T[i] = D[i] * max({})",
    "T = output(3)\n    T[i] += {}, D[i] != 1",
    "T = output(1)\n    T[0] += {}",
    "T = output(1)\n    T[0] = max({}), D[i] > 0",
)


def tree(pick: Pick, depth: int) -> str:
    if depth == 0 or pick(0, 3) == 0:
        return "1.0" if pick(0, 19) == 0 else _READS[pick(0, len(_READS) - 1)]
    test = _TESTS[pick(0, len(_TESTS) - 1)]
    return f"({tree(pick, depth - 1)} if {test} else {tree(pick, depth - 1)})"


def extent(pick: Pick) -> int:
    return 0 if pick(0, 9) == 0 else pick(1, 6)


def case(seed: int) -> Case:
    pick = random.Random(seed).randint
    value = tree(pick, 3)
    if pick(0, 3) == 0:
        value = f"{value} * {tree(pick, 2)}"
    statement = _STATEMENTS[pick(0, len(_STATEMENTS) - 1)].format(value)
    existing = statement.startswith("T[i]")
    parameters = "T, A, B, C, D, E" if existing else "A, B, C, D, E"
    values = np.random.default_rng(seed)
    extents = {"A": (pick(3, 6),), "B": (extent(pick),), "C": (3, extent(pick)), "D": (3,), "E": (3,)}
    arrays = {name: values.integers(-2, 4, shape).astype(float) for name, shape in extents.items()}
    if existing:
        arrays = {"T": np.zeros(3), **arrays}
    return Case(f"def f({parameters}):\n    {statement}\n    return T\n", arrays)


@pytest.mark.parametrize("batch", seeds(2, 30))
def test_the_interpreter_follows_the_rules(batch: int) -> None:
    for seed in range(40 * batch, 40 * batch + 40):
        drawn = case(seed)
        found = attempt(lambda drawn=drawn: loaded(drawn.source).interpret(*drawn.arrays.values()))
        matches_outcome(drawn, expected(drawn.source, drawn.arrays), found)


def test_most_programs_are_right() -> None:
    outcomes = [expected(drawn.source, drawn.arrays) for drawn in map(case, range(100))]
    assert sum(bool(outcome.arrays) and not outcome.doubtful for outcome in outcomes) > 50


@pytest.mark.parametrize("seed", range(0, 160, 32))
def test_compiled_code_agrees_with_the_interpreter(seed: int) -> None:
    drawn = case(seed)
    function = loaded(drawn.source)
    wanted = attempt(lambda: function.interpret(*drawn.arrays.values()))
    found = attempt(lambda: function(*drawn.arrays.values()))
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        assert type(found) is type(wanted)
        return
    agree(drawn, wanted, found, 50, "compiled against interpreted")
