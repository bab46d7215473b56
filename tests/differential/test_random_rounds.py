"""Random loops and branches around tensor statements: the rules of the language, round by round, say what comes out.

``TCDSL_TEST_PROGRAMS=1000 pytest tests/differential/test_random_rounds.py -m long`` tries that many more.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify
from tests.differential.loading import loaded
from tests.long_variants import seeds
from tests.oracle.functions import expected

BY_HAND = int(os.environ.get("TCDSL_TEST_PROGRAMS", "300"))

# {t} is the number of a round, or another integer from 0 on; {w} a name of its own, since no round hands on a local
# definition.
STATEMENTS = (
    "y[i] += A[i, {t} % M] * x[i]",
    "y[i] = 0.5 * y[i] + x[{t} % N]",
    "y[{t} % N] *= 0.5",
    "y[i] = 0.5 * y[N - 1 - i], i <= {t}",
    "y[i] >>= Z[i, j]",
    "y[i] = max(Z[i, j] for j in range(M))",
    "y[p[i]] += 0.25 * x[i]",
    "y[i] = x[p[i]] - y[p[{t} % N]]",
    "Z[{t} % N, j] = y[{t} % N] + A[{t} % N, j]",
    "Z[i, {t} % M] = y[i] - x[i]",
    "Z[i, j] -= 0.1 * A[i, k] * A[j, k], j <= i, k < {t}, j < M",
    "Z[i, j] = A[i, j] if i + j > {t} else 0.5 * Z[i, j]",
    "v[i] = y[i] * x[i]; y[i] = v[i + 1] - v[i], i < N - 1",
    "{w} = 0.5 * y[i]; Z[i, j] = {w} * A[i, j]",
    "q: real[N]; q[i] += Z[i, j]; y[i] -= 0.1 * q[i]",
)
BLOCKS = (
    "for {t} in range(N):",
    "for {t} in range(n):",
    "for {t} in range(1, N + 1, 2):",
    "for {t} in range(n, -1, -1):",
    "if {t} % 2 == 0:",
    "if n > 1 and {t} < N - 1:",
    "while {t} < n:",
)


def random_rounds(seed: int) -> str:
    """A function of ``x[N]``, ``A[N, M]``, indices ``p[N]`` and a size ``n``, the extent of ``c``."""
    pick = random.Random(seed)
    lines = ["N, M = A.shape", "n, = c.shape", "y: real[N]", "Z: real[N, M]", "y[i] = x[i]", "Z[i, j] = A[i, j]"]

    def statements(indent: str, numbers: list[str]) -> None:
        text = pick.choice(STATEMENTS).format(t=pick.choice([*numbers, "n"]), w=f"w{len(lines)}")
        lines.extend(indent + each for each in text.split("; "))

    def block(indent: str, depth: int, numbers: list[str]) -> None:
        head, number = pick.choice(BLOCKS), f"t{len(lines)}"
        inside = [*numbers, number]
        if head.startswith("while"):
            lines.append(f"{indent}{number} = 0")
        elif head.startswith("if"):
            inside, number = numbers, pick.choice([*numbers, "n"])
        lines.append(indent + head.format(t=number))
        for _ in range(pick.randint(1, 2)):
            if depth and pick.random() < 0.5:
                block(indent + "    ", depth - 1, inside)
            else:
                statements(indent + "    ", inside)
        if head.startswith("while"):
            lines.append(f"{indent}    {number} = {number} + 1")

    block("", 2, [])
    statements("", [])
    block("", 1, [])
    return "def f(x, A, p, c):\n" + "".join(f"    {line}\n" for line in (*lines, "return y, Z"))


def follows_the_rules(seed: int) -> None:
    source = random_rounds(seed)
    generator = np.random.default_rng(seed)
    extents = generator.integers(1, 5, 3)
    x, A = generator.standard_normal(extents[0]), generator.standard_normal(extents[:2])
    arrays = {"x": x, "A": A, "p": generator.integers(0, len(x), len(x)), "c": np.zeros(extents[2] - 1)}
    wanted = expected(source, arrays)
    function = loaded(source)
    if wanted.fault is not None:
        for run in (function.interpret, function):
            with pytest.raises(tc.TcdslError):
                run(*arrays.values())
        return
    assert not wanted.unspecified
    program = function.program(*arrays.values())
    verify(program)
    assert parse_program(format_program(program)) == program
    for found in (function.interpret(*arrays.values()), function(*arrays.values())):
        for one, other in zip(found, wanted.arrays, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=source)


@pytest.mark.parametrize("seed", seeds(6, 10))
def test_loops_around_statements_follow_the_rules(seed: int) -> None:
    follows_the_rules(seed)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(10))
def test_many_loops_around_statements_follow_the_rules(batch: int) -> None:
    for seed in range(10 + batch, 10 + BY_HAND, 10):
        follows_the_rules(seed)
