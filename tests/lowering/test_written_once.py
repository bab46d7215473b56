"""Fresh memory is written once: the start value of cells that no point writes is stored beside the others."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute

RNG = np.random.default_rng(8)

# A statement, and how many cells of N times M are written more than once.
STATEMENTS = {
    "shifted": ("y[i + 1, j] = exp(x[i, j])  for [i, j]: 0 <= i < N - 1 and 0 <= j < M", 0),
    "shifted_twice": ("y[i + 1, j + 2] = x[i, j]  for [i, j]: 0 <= i < N - 1 and 0 <= j < M - 2", 0),
    "mirrored": ("y[N - 1 - i, j] = x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M", 0),
    "added_to_another": ("y[i + 1, j] -= x[i, j]  from x  for [i, j]: 0 <= i < N - 1 and 0 <= j < M", 0),
    "summed": ("y[i + 1, 0] += x[i, j]  for [i, j]: 0 <= i < N - 1 and 0 <= j < M", "N"),
    "every_second": ("y[2 * i, j] = x[i, j]  for [i, j]: 0 <= 2 * i < N and 0 <= j < M", 0),
    "every_second_from_one": ("y[i, 2 * j + 1] = x[i, j]  for [i, j]: 0 <= i < N and 0 <= j and 2 * j + 1 < M", 0),
    "pairs": ("y[i, 2 * j + k] = x[i, j]  for [i, j, k]: 0 <= i < N and 0 <= j and 2 * j + 1 < M and 0 <= k < 2", 0),
    "pairs_from_one": (
        "y[i, 2 * j + k] = x[i, j]  for [i, j, k]: 0 <= i < N and 0 <= j and 2 * j + 2 < M and 1 <= k <= 2",
        0,
    ),
    "largest_of_shifted": ("y[i, j + 3] >>= x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M - 3", 0),
    "columns_summed_into_steps": (
        "y[0, 2 * j + 1] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j and 2 * j + 1 < M",
        "NM",
    ),
    # Few cells beside all: these keep a nest of their own.
    "diagonal": ("y[i, i] = x[i, 0]  for [i]: 0 <= i < N and i < M and M > 0", "N"),
    "one_row": ("y[0, j] = x[0, j]  for [j]: N > 0 and 0 <= j < M", "M"),
}


def test_sums_of_columns_into_a_row_with_steps() -> None:
    text = """program p
input x: float64[N, M]
tensor y: float64[3 * M + 1]
y[3 * j + 1] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
return y
"""
    made = lower(parse_program(text))
    for n, m in ((200, 7), (3, 5), (1, 1), (0, 2), (2, 0)):
        x = RNG.normal(size=(n, m))
        expected = np.zeros(3 * m + 1)
        expected[1::3] = x.sum(axis=0)
        np.testing.assert_allclose(execute(made, [x]).outputs[0], expected, atol=1e-12)


@pytest.mark.parametrize("name", STATEMENTS)
def test_how_often_memory_is_written(name: str) -> None:
    statement, twice = STATEMENTS[name]
    text = f"program p\ninput x: float64[N, M]\ntensor y: float64[N, M]\n{statement}\nreturn y\n"
    program = parse_program(text)
    made = lower(program)
    for n, m in ((12, 17), (17, 12), (5, 4), (2, 3), (1, 1), (0, 3), (3, 0)):
        x = RNG.normal(size=(n, m))
        done = execute(made, [x])
        np.testing.assert_array_equal(done.outputs[0], interpret(program, [x]).outputs[0])
        assert done.writes["y"] <= n * m + {"N": n, "M": m, "NM": n * m, 0: 0}[twice]
