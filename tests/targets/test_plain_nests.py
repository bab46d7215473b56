"""Which nests LLVM's first level is enough for, and for which loops short code is."""

from __future__ import annotations

import ast

import pytest

from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.emission.plain_nests import is_plain

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
    y[i] = a * y[i - 1] + x[i]
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
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    (function,) = ast.parse(f"def nest(begin, end, frame):\n{lines}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert is_plain(function) == plain


MODULE = """
@nest(fastmath=())
def move(begin, end, frame):
    N = size(frame, 0)
    x = buffer(frame, 1, 'float32[::1]')
    for i in ROUNDS:
        x[i] = x[i] + float32(1.0)
"""


@pytest.mark.parametrize(("rounds", "hints"), [("range(N)", 0), ("seldom(range(N))", 1)])
def test_seldom_loops_are_short(rounds: str, hints: int) -> None:
    ((symbol, text),) = emitted_nests(MODULE.replace("ROUNDS", rounds))
    assert symbol == "move"
    assert text.count("!llvm.loop ") == text.count("llvm.loop.vectorize.width") == hints
