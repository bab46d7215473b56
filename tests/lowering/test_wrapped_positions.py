"""Remainders of positions that wrap around once at most: choices, and no divisions."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.language.running_programs import program

# What stands in brackets in a round of number i of N, and whether a division is left.
POSITIONS = {
    "(i + 1) % N": False,
    "(i - 1) % N": False,
    "(i + N - 1) % N": False,
    "(N - i) % N": False,
    "(i - k) % N": False,
    "(i + k) % N": False,
    "(2 * i) % N": False,
    "(i + 2) % N": True,
    "(i + p[i]) % N": True,
    "(2 * i + k) % N": True,
    "(i - 2 * k) % N": True,
    "(i + k) % M": True,
}


@pytest.mark.parametrize("position", POSITIONS)
def test_positions_on_a_ring(position: str) -> None:
    body = f"""
y = 0.0 * x
for t in range(3):
    for i in range(N):
        s = 0.5 * y[i]
        for k in range(N):
            s = s + x[{position}] * (k + 1)
        y[i] = s
    y[0] = y[N - 1]
return y"""
    ring = program(body.strip(), "x: 'real[N]', p: 'int64[M]'")
    for n in (1, 2, 7):
        x, p = np.arange(1.0, n + 1), np.arange(n) * 5 - 9
        np.testing.assert_allclose(ring(x, p), ring.interpret(x, p))
    loops = str(ring.explain("loops", x, p))
    assert ("%" in re.sub(r"(?m)^ *#.*$", "", loops)) == POSITIONS[position]
