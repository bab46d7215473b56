"""Sums of several products, factors that take work, and gates around sums: what tiles are given, what comes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute

RNG = np.random.default_rng(4)
TEXT = """program p
input a: float32[M, K]
input b: float32[K_1, N]
input c: float32[M_1, K_2]
assert K == K_1
assert K == K_2
assert M == M_1
input g: float32[M_2, N_1]
assert M == M_2
assert N == N_1
tensor y: float32[M, N]
y[i, j] {}  for [i, j, k]: 0 <= i < M and 0 <= j < N and 0 <= k < K
return y
"""
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
CASES: dict[str, tuple[str, int, Callable[..., np.ndarray]]] = {
    "two products": ("+= a[i, k] * b[k, j] + c[i, k] * b[k, j]", 2, lambda a, b, c, g: a @ b + c @ b),
    "difference": ("-= a[i, k] * b[k, j] - c[i, k] * b[k, j]", 2, lambda a, b, c, g: c @ b - a @ b),
    "factor": ("+= relu(a[i, k]) * b[k, j]", 1, lambda a, b, c, g: np.maximum(a, 0) @ b),
    "factors": (
        "+= exp(a[i, k] - c[i, k]) * (b[k, j] if b[k, j] > 0.0 else 0.0)",
        1,
        lambda a, b, c, g: np.exp(a - c) @ np.maximum(b, 0),
    ),
    "gate": ("+= a[i, k] * b[k, j] if g[i, j] > 0.0 else 0.0", 1, lambda a, b, c, g: np.where(g > 0, a @ b, 0)),
    "gate of factors": (
        "-= relu_gate(g[i, j], relu(a[i, k]) * b[k, j] + c[i, k] * b[k, j])",
        2,
        lambda a, b, c, g: -np.where(g > 0, np.maximum(a, 0) @ b + c @ b, 0),
    ),
}
APART = {
    "of all variables": "+= relu(a[i, k] + b[k, j]) * b[k, j]",
    "gate of terms": "+= a[i, k] * b[k, j] if a[i, k] > 0.0 else 0.0",
    "five products": "+= " + " + ".join(["a[i, k] * b[k, j]", *["c[i, k] * b[k, j]"] * 4]),
    "no tiles": "+= relu(a[i, k])",
}


def arrays(m: int, k: int, n: int) -> list[np.ndarray]:
    return [RNG.normal(size=shape).astype("float32") for shape in ((m, k), (k, n), (m, k), (m, n))]


@pytest.mark.parametrize("name", CASES)
def test_what_comes_out(name: str) -> None:
    value, tiles, wanted = CASES[name]
    program = parse_program(TEXT.format(value))
    kernel, plain = lower(program), lower(program, optimize="-products")
    assert sum(nest.name.startswith("pack") for nest in kernel.nests) == tiles
    assert not any(nest.name.startswith("pack") for nest in plain.nests)
    for shape in ((1, 1, 1), (7, 5, 3), (4, 0, 2), (0, 3, 2), (6, 9, 65)):
        given = arrays(*shape)
        for each in (kernel, plain):
            np.testing.assert_allclose(execute(each, given).outputs[0], wanted(*given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", APART)
def test_what_stays_one_statement(name: str) -> None:
    program = parse_program(TEXT.format(APART[name]))
    assert lower(program).nests == lower(program, optimize="-products").nests


def test_infinite_terms_behind_a_gate() -> None:
    @tc.op
    def gated(a, b, g):
        y[i, j] += where(g[i, j] > 0, a[i, k] * b[k, j], 0.0)
        return y

    a, b, g = (array for k, array in enumerate(arrays(9, 70, 40)) if k != 2)
    a[3, 5], b[7, 2], a[4, 6], b[6, 1] = np.inf, np.nan, np.inf, 0.0
    with np.errstate(invalid="ignore"):
        wanted = np.where(g > 0, a.astype("float64") @ b, 0.0)
    for optimize in (True, "-products"):
        with tc.config(optimize=optimize):
            np.testing.assert_allclose(gated(a, b, g), wanted, rtol=1e-4, atol=1e-4)


def test_the_gradient_of_a_product_with_itself() -> None:
    @tc.op
    def squared(a):
        y[i, j] += a[i, k] * a[k, j]
        return y

    @tc.op
    def rectified(a, b):
        return relu(a) @ b

    a, b = RNG.normal(size=(13, 13)), RNG.normal(size=(13, 9))
    shown = tc.grad(lambda a, w: (squared(a) * w).sum()).explain("schedule", a, a)
    assert str(shown).count("over j: sums stay in registers") == 2
    assert str(shown).count("without panels: sums stay in registers") == 1
    tc.check_grads(squared, (a,))
    tc.check_grads(rectified, (a, b))
