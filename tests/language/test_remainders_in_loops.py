"""Quotients and remainders of numbers of rounds and of sizes as indices, as Python computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl.errors import ShapeError
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(7)


def of_sizes(body: str) -> tuple[Any, Any]:
    """The body of a function of `w`, `x` and `k`, of M, M and K cells: as a program, and as Python runs it."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    names: dict[str, Any] = {}
    exec(f"def by_hand(w, x, k):\n    M, K = len(w), len(k)\n{lines}", names)
    return program(body, "w: 'real[M]', x: 'real[M]', k: 'real[K]'"), names["by_hand"]


REMAINDERS = ["t % M", "(M - 1 - t) % M", "(M - t) % M", "(t - 1) % M", "(t - K) % M", "(2 * t - 7) % M"]


QUOTIENTS = ["t // K", "(M - 1 - t) // K", "(M - 1) // K"]


@pytest.mark.parametrize("rounds", ["range(M)", "reversed(range(M))"])
@pytest.mark.parametrize("index", REMAINDERS + QUOTIENTS)
def test_remainders_and_quotients_of_numbers_of_rounds_are_indices(index: str, rounds: str) -> None:
    f, by_hand = of_sizes(
        f"s = 0.0\nfor t in {rounds}:\n    s = s * 0.5 + w[{index}]\n    x[{index}] += w[t] * (t + 1)\nreturn s, x"
    )
    for length, width in ((5, 2), (3, 3), (4, 1), (1, 2), (0, 2)):
        w, k = GENERATOR.random(length), np.zeros(width)
        check(f, (w, np.zeros(length), k), by_hand(w, np.zeros(length), k))


@pytest.mark.parametrize("index", ["(K - M) % M", "(M - 7) % M", "(M - 1) // K"])
def test_remainders_and_quotients_of_sizes_are_indices(index: str) -> None:
    f, by_hand = of_sizes(f"return w[{index}]")
    for length, width in ((5, 2), (3, 3), (1, 2)):
        arguments = (GENERATOR.random(length), np.zeros(length), np.zeros(width))
        check(f, arguments, by_hand(*arguments))


def test_a_remainder_that_is_out_of_range_is_told_as_it_is_written() -> None:
    f = program("s = 0.0\nfor t in range(M):\n    s = s + w[(t - 5) % K]\nreturn s", "w: 'real[M]', k: 'real[K]'")
    assert f(np.ones(3), np.ones(2)) == 3
    with pytest.raises(ShapeError, match=r"the index \(t - 5\) % K is out of range of axis 0") as refused:
        f(np.ones(3), np.ones(4))
    assert "minus" not in str(refused.value)
    f, _ = of_sizes("for t in range(M):\n    x[(t - 1) // K] += w[t]\nreturn x")
    with pytest.raises(ShapeError, match=r"the index \(t - 1\) // K is out of range of axis 0 of x, which"):
        f(np.ones(3), np.ones(3), np.ones(2))


@pytest.mark.parametrize(
    "body",
    [
        "x[t % M] += w[t % M]",
        "k[0] += w[t % M]",
        "k[0] += w[(t - 1) % M] + w[t // M]",
        "k[0] += k[5]",
        "j = 0\nwhile j < k[0]:\n    j = j + 1\nk[t % 2] += w[t % M]",
        "for p in range(0, M, 2):\n    k[0] += w[p % M]",
        "for p in range(M):\n    k[t % 2] += w[p % M] + k[5]",
        "for p in range(M):\n    for q in range(M):\n        k[0] += w[(t - q) % M]",
    ],
)
def test_a_body_asks_nothing_of_sizes_where_no_round_runs(body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    f, by_hand = of_sizes(f"for t in range(M):\n{lines}\nreturn k, x")
    k = np.array([1.0, 2.0])
    check(f, (np.zeros(0), np.zeros(0), k), (k, np.zeros(0)))
    if "k[5]" in body:
        with pytest.raises(ShapeError, match="the index 5 is out of range"):
            f(np.ones(2), np.ones(2), k)
        k = np.arange(6.0)
    w = GENERATOR.random(3)
    check(f, (w, np.zeros(3), k), by_hand(w, np.zeros(3), k.copy()))
