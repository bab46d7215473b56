"""Which nests LLVM's first level is enough for, and for which loops short code is."""

from __future__ import annotations

import pytest

from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.emission.plain_nests import is_plain
from tests.targets.nest_text import nest_kernel

TILES = """
for i in range(0, N, 2):
    acc = float32(0.0)
    acc2 = float32(0.0)
    for k in range(K):
        acc += A[i, k] * x[k]
        acc2 += A[i + 1, k] * x[k]
    y[i] = acc
    y[i + 1] = acc2
"""
RECURRENCE = """
for i in range(1, N):
    y[i] = A[0] * y[i - 1] + x[i]
"""
NEIGHBOURS = """
for i in range(N):
    for j in range(M):
        y[i, j] = x[i, j] + x[i, j + 1]
"""
STORES = """
y[0] = a
y[1] = b
"""
CHOICE = """
for i in range(N):
    if a > 0:
        y[i] = a
"""


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        pytest.param(TILES, True, id="rows of tiles"),
        pytest.param(RECURRENCE, False, id="cells of the round before"),
        pytest.param(NEIGHBOURS, False, id="cells that are read again"),
        pytest.param(STORES, False, id="stores side by side"),
        pytest.param(CHOICE, False, id="branches"),
    ],
)
def test_plain_nests(body: str, plain: bool) -> None:
    kernel = nest_kernel(body, {"A": "float32[N, K]", "x": "float32[N, K]", "y": "float32[N, K]"})
    assert is_plain(kernel.nests[0].body) == plain


@pytest.mark.parametrize(("rounds", "hints"), [("range(N)", 0), ("seldom(range(N))", 1)])
def test_seldom_loops_are_short(rounds: str, hints: int) -> None:
    text = f"for i in {rounds}:\n    y[i] = y[i] + x[i]"
    kernel = nest_kernel(text, {"x": "float32[N]", "y": "float32[N]"})
    ((symbol, found),) = emitted_nests(kernel, (True,), {0: "move"})
    assert symbol == "move"
    assert found.count("!llvm.loop ") == found.count("llvm.loop.vectorize.width") == hints
