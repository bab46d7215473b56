"""Running totals and the like: cells that have the terms of the one before take each term once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pass_log import explain_passes
from tests.lowering.loop_interpreter import execute

rng = np.random.default_rng(0)


@op
def totals(x):
    t[i] += x[j], j <= i, i < x.shape[0]
    return t


@op
def earlier(x):
    t[i, b] -= x[j, b], j < i, i < x.shape[0]
    return t


@op
def later(x):
    t[b, i] += x[b, j], j >= i, i < x.shape[1]
    return t


@op
def doubled(x):
    t[i] += x[j], j <= 2 * i + 1, i < x.shape[0]
    return t


@op
def largest(x):
    t[i] >>= x[j], j <= i, i < x.shape[0]
    return t


@op
def products(x):
    t[i] *= x[j], j <= i, i < x.shape[0]
    return t


@op
def onto(x, y):
    t = copy(y)
    t[i] += x[j], j <= i
    return t


@op
def corners(x):
    t[i, j] += x[a, b], a <= i, b <= j, i < x.shape[0], j < x.shape[1]
    return t


@op
def weighted(x, z):
    t[i] += z[i] * x[j], j <= i
    return t


@op
def chosen(x, m):
    t[i] += x[j], j <= i, i < x.shape[0], m[j] > 1
    return t


@op
def averages(x):
    y[i] = sum(x[j] for j in range(i + 1)) / (i + 1), i < x.shape[0]
    return y


@op
def attention(q, k, v):
    y[i, d] += q[i, a] * k[j, a] * v[j, d], j <= i
    return y


def goes_on(explained: str) -> bool:
    """Whether the explanation of the passes says of some statement that its cells go on from each other."""
    return re.search(r"^    \+ .* by .*\| .* along \w+$", explained, re.MULTILINE) is not None


def numbers(*shape: int) -> np.ndarray:
    return rng.uniform(0.5, 1.5, shape)


X = numbers(7)
PROGRAMS: dict[str, tuple[Any, tuple[np.ndarray, ...], np.ndarray]] = {
    "totals": (totals, (X,), np.cumsum(X)),
    "earlier": (earlier, (np.c_[X, X],), -np.cumsum(np.r_[[[0, 0]], np.c_[X, X]], 0)[:-1]),
    "later": (later, (np.stack([X, 2 * X]),), np.cumsum(np.stack([X, 2 * X])[:, ::-1], 1)[:, ::-1]),
    "doubled": (doubled, (X,), np.cumsum(X)[np.minimum(2 * np.arange(7) + 1, 6)]),
    "largest": (largest, (X,), np.maximum.accumulate(X)),
    "products": (products, (X,), np.cumprod(X)),
    "onto": (onto, (X, X + 1), X + 1 + np.cumsum(X)),
    "corners": (corners, (np.outer(X, X[:4]),), np.cumsum(np.cumsum(np.outer(X, X[:4]), 0), 1)),
    "weighted": (weighted, (X, X + 1), (X + 1) * np.cumsum(X)),
    "chosen": (chosen, (X, X[::-1]), np.cumsum(X * (X[::-1] > 1))),
    "averages": (averages, (X,), np.cumsum(X) / np.arange(1, 8)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_term_is_taken_once(name: str) -> None:
    function, arrays, wanted = PROGRAMS[name]
    assert goes_on(function.explain("passes", *arrays))
    np.testing.assert_allclose(function(*arrays), wanted, rtol=1e-12)
    np.testing.assert_allclose(function.interpret(*arrays), wanted, rtol=1e-12)
    tc.check_grads(function, arrays, modes=("rev", "fwd"))
    with tc.config(optimize="-scans"):
        np.testing.assert_allclose(function(*arrays), wanted, rtol=1e-12)
        assert "from there: left out" in function.explain("passes", *arrays)


def zeros(*shape: int) -> np.ndarray:
    return np.broadcast_to(0.0, shape)


LINEAR: list[tuple[Any, Callable[[int], tuple[np.ndarray, ...]]]] = [
    (totals, lambda n: (zeros(n),)),
    (earlier, lambda n: (zeros(n, 3),)),
    (later, lambda n: (zeros(3, n),)),
    (doubled, lambda n: (zeros(n),)),
    (onto, lambda n: (zeros(n), zeros(n))),
    (corners, lambda n: (zeros(n, 5),)),
    (weighted, lambda n: (zeros(n), zeros(n))),
    (averages, lambda n: (zeros(n),)),
    (attention, lambda n: (zeros(n, 3), zeros(n, 3), zeros(n, 2))),
]


@pytest.mark.parametrize(("function", "arrays"), LINEAR)
def test_they_cost_what_their_terms_do_and_so_do_their_derivatives(
    function: Any, arrays: Callable[[int], tuple[np.ndarray, ...]]
) -> None:
    few, many = (function.cost(*arrays(n)) for n in (40, 80))
    assert many.within_bounds
    for one, two in ((few.primal, many.primal), (few.tangent, many.tangent), (few.adjoint, many.adjoint)):
        assert two.operations.plain <= 2.1 * one.operations.plain + 8
        assert two.points <= 2.1 * one.points + 8


def test_a_running_total_is_one_addition_a_cell() -> None:
    cost = totals.cost(zeros(1000))
    assert (cost.primal.operations.additions, cost.primal.operations.plain) == (999, 999)
    assert cost.primal.points == 2000
    assert cost.adjoint.operations.additions == 2 * 999


def test_windows_lose_terms_and_stay_what_they_are() -> None:
    @op
    def windows(x):
        t[i] += x[j], j <= i, j > i - 3, i < x.shape[0]
        return t

    @op
    def kernels(x):
        t[i] += exp(x[j] * x[i]), j <= i
        return t

    assert not goes_on(windows.explain("passes", X))
    assert not goes_on(kernels.explain("passes", X))
    np.testing.assert_allclose(windows(X), np.convolve(X, np.ones(3))[:7])
    np.testing.assert_allclose(kernels(X), np.tril(np.exp(np.outer(X, X))).sum(1))


@pytest.mark.parametrize(
    "condition", ["0 <= j <= i < N", "0 <= i <= j < N", "0 <= j and 3*j < 2*i and i < N and j < N"]
)
@pytest.mark.parametrize("accumulate", [n for n, row in ACCUMULATORS.items() if n != "assign" and not row.ordered])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
def test_every_accumulator_and_type(dtype: str, accumulate: str, condition: str) -> None:
    if (dtype == "bool") != (accumulate in ("or", "and")):
        return
    text = f"""program scan
input x: {dtype}[N]
input y: {dtype}[N]
tensor s: {dtype}[N]
tensor t: {dtype}[N]
s[i] {ACCUMULATORS[accumulate].symbol} VALUE  for [i, j]: {condition}
t[i] {ACCUMULATORS[accumulate].symbol} VALUE  for [i, j]: {condition}  from y
return s, t
"""
    program = parse_program(text.replace("VALUE", "float32(x[j])" if dtype == "float16" else "x[j]"))
    assert goes_on(explain_passes(program))
    for n in (0, 1, 2, 9):
        arrays = [rng.integers(0, 3, n).astype(dtype) for _ in "xy"]
        found, wanted = execute(lower(program), arrays), interpret(program, arrays)
        for mine, its in zip(found.outputs, wanted.outputs, strict=True):
            np.testing.assert_array_equal(mine, its)


def test_infinities_and_nan_stay_in_what_follows_them() -> None:
    x = np.ones(2000)
    x[700], x[1300], x[1500] = np.inf, -np.inf, np.nan
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(totals(x), np.cumsum(x))
    np.testing.assert_array_equal(totals(x)[:700], np.arange(1, 701))


def test_errors_grow_with_blocks_and_not_with_terms() -> None:
    x = rng.uniform(0, 1, 1_000_000).astype("float32")
    exact = np.cumsum(x.astype(float))
    error = np.abs(totals(x) - exact).max() / exact[-1]
    assert error < 3e-6
    assert error < np.abs(np.cumsum(x) - exact).max() / exact[-1]


def test_in_place_and_in_loops_that_run() -> None:
    @cd
    def running(x):
        x[i] += x[j], j < i

    @op
    def repeated(x, n):
        for _ in range(n):
            x = totals(x)
        return x

    array = X.copy()
    running(array)
    np.testing.assert_allclose(array, np.cumsum(X))
    np.testing.assert_allclose(repeated(X, 3), np.cumsum(np.cumsum(np.cumsum(X))))
    tc.check_grads(repeated, (X, 3))


def test_tensors() -> None:
    np.testing.assert_allclose(np.asarray(totals(tc.tensor(X))), np.cumsum(X))
