"""Running totals and the like: cells that have the terms of the one before take each term once."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op, output
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pass_log import PassLog
from tests.long_variants import every, in_turn
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


@pytest.mark.parametrize("shape", [(1100, 3), (4, 1200), (0, 2), (3, 0)])
def test_rows_across_a_scan_go_on_together(shape: tuple[int, int]) -> None:
    x = rng.uniform(-1, 1, shape)
    x[1:2, :1], x[2:3, 1:2], x[:1, :1] = np.nan, np.inf, -0.0
    before = np.vstack([np.zeros((1, shape[1])), x])[: shape[0]]
    np.testing.assert_allclose(earlier(x), -np.cumsum(before, 0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(corners(x), np.cumsum(np.cumsum(x, 0), 1), rtol=1e-9, atol=1e-12)
    assert "local row_part" in str(earlier.explain("loops", x))
    # What is added up along one axis lies as the terms do.
    assert str(corners.explain("loops", x)).count("local row_part") == 1


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


@op
def largest_onto(x, y):
    t = copy(y)
    t[i] >>= x[j], j <= i
    return t


@op
def products_onto(x, y):
    t = copy(y)
    t[i] *= x[j], j <= i
    return t


@op
def smallest_later(x):
    t[b, i] <<= x[b, j], j >= i, i < x.shape[1]
    return t


@op
def products_after(x):
    t[i, b] *= x[j, b], j > i, i < x.shape[0]
    return t


@op
def largest_doubled(x):
    t[i] >>= x[j], j <= 2 * i + 1, i < x.shape[0]
    return t


@op
def corner_products(x):
    t[i, j] *= x[a, b], a <= i, b >= j, i < x.shape[0], j < x.shape[1]
    return t


@op
def corner_maxima(x):
    t[i, j] >>= x[a, b], a <= i, b >= j, i < x.shape[0], j < x.shape[1]
    return t


@op
def corner_truths(x):
    t[i, j] &= x[a, b] > 0, a >= i, b <= j, i < x.shape[0], j < x.shape[1]
    return t


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (5, 9), (9, 300)])
def test_maxima_and_truths_over_corners_are_linear_in_both_axes(shape: tuple[int, int]) -> None:
    x = rng.uniform(-0.1, 9, shape)
    x[1:2, 2:3], x[2:3, 1:2] = np.nan, np.inf
    maxima = np.maximum.accumulate(np.maximum.accumulate(x, 0)[:, ::-1], 1)[:, ::-1]
    np.testing.assert_array_equal(corner_maxima(x), maxima)
    truths = np.logical_and.accumulate(np.logical_and.accumulate((x > 0)[::-1], 0)[::-1], 1)
    np.testing.assert_array_equal(corner_truths(x), truths)
    for function in (corner_maxima, corner_truths):
        assert "t_sum" in str(function.explain("loops", x))
    if min(shape):
        _, pullback = tc.vjp(corner_maxima, x[:1, :1])
        np.testing.assert_array_equal(pullback(np.ones((1, 1)))[0], [[1.0]])


@op
def largest_squares(x):
    t[i] >>= x[j] * x[j] + exp(x[j]), j <= i, i < x.shape[0]
    return t


@op
def largest_chosen(x, m):
    t[i] >>= x[j], j <= i, i < x.shape[0], m[j] > 1
    return t


@op
def largest_of_eight(x):
    t[i] >>= x[j], i // 8 * 8 <= j, j <= i, i < x.shape[0]
    return t


@op
def products_within_three(x):
    t[i] *= x[j], i // 3 == j // 3, i < x.shape[0]
    return t


def terms(*shape: int) -> np.ndarray:
    # With ties, and with no zero, one, and two behind each other.
    found = rng.integers(1, 4, shape).astype(float)
    found.reshape(-1)[[3, -2]] = 0
    return found


RUNNING: dict[str, tuple[Any, Callable[[int], tuple[np.ndarray, ...]]]] = {
    "largest": (largest, lambda n: (terms(n),)),
    "products": (products, lambda n: (terms(n),)),
    "largest_onto": (largest_onto, lambda n: (terms(n), terms(n))),
    "products_onto": (products_onto, lambda n: (terms(n), terms(n))),
    "smallest_later": (smallest_later, lambda n: (terms(3, n),)),
    "products_after": (products_after, lambda n: (terms(n, 2),)),
    "largest_doubled": (largest_doubled, lambda n: (terms(n),)),
    "corner_products": (corner_products, lambda n: (terms(n, 3),)),
    "largest_squares": (largest_squares, lambda n: (terms(n),)),
    "largest_chosen": (largest_chosen, lambda n: (terms(n), numbers(n))),
    "largest_of_eight": (largest_of_eight, lambda n: (terms(n),)),
    "products_within_three": (products_within_three, lambda n: (terms(n),)),
}


@pytest.mark.parametrize(("function", "arrays"), LINEAR)
def test_they_cost_what_their_terms_do_and_so_do_their_derivatives(
    function: Any, arrays: Callable[[int], tuple[np.ndarray, ...]]
) -> None:
    few, many = (function.cost(*arrays(n)) for n in (40, 80))
    assert many.within_bounds
    for one, two in ((few.primal, many.primal), (few.tangent, many.tangent), (few.adjoint, many.adjoint)):
        assert two.operations.plain <= 2.1 * one.operations.plain + 8
        assert two.points <= 2.1 * one.points + 8


@pytest.mark.parametrize(("name", "equal"), in_turn(RUNNING, [False, True]))
def test_derivatives_of_running_maxima_and_products_take_each_term_once(
    name: str, equal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arrays = RUNNING[name]
    monkeypatch.setattr(sys.modules[__name__], "rng", np.random.default_rng(9))  # whatever other tests have drawn
    costs = []
    for n in (40, 80, 160):
        given = arrays(n)
        costs.append(function.cost(*(np.ones_like(each) for each in given) if equal else given))
    for one, two in pairwise(costs):
        for few, many in ((one.primal, two.primal), (one.tangent, two.tangent), (one.adjoint, two.adjoint)):
            assert many.operations.plain <= 2.3 * few.operations.plain + 8
            assert many.points <= 2.1 * few.points + 8


def shares(function: Any, arrays: Sequence[np.ndarray], weights: np.ndarray) -> list[np.ndarray]:
    """The derivatives, cell by cell: of a cell of its terms, which are found by what changes it.

    What is best is shared equally, of a product each factor gets the others' product.
    """
    found = [np.zeros_like(each) for each in arrays]
    name, whole = function.__name__, function(*arrays)
    multiplies, high = "products" in name, whole.max() + 100
    for cell in np.ndindex(whole.shape):
        places = []
        for k, array in enumerate(arrays):
            for place in np.ndindex(array.shape):
                changed = [each.copy() for each in arrays]
                changed[k][place] = np.nan if multiplies else -high if "smallest" in name else high
                with np.errstate(invalid="ignore"):
                    if function(*changed)[cell] != whole[cell]:
                        places.append((k, place))
        values = [arrays[k][place] for k, place in places]
        for own, (k, place) in enumerate(places):
            if multiplies:
                found[k][place] += weights[cell] * np.prod(values[:own] + values[own + 1 :])
            elif values[own] == whole[cell]:
                found[k][place] += weights[cell] / values.count(whole[cell])
    return found


@pytest.mark.parametrize(
    "name", every(2, (name for name in RUNNING if name not in ("largest_squares", "largest_chosen")))
)
def test_zeros_and_ties_share_as_in_other_reductions(name: str) -> None:
    function, arrays = RUNNING[name]
    given = arrays(6)
    weights = rng.uniform(1, 2, function(*given).shape)
    _, pullback = tc.vjp(function, *given)
    gradients = pullback(weights)
    for mine, its in zip(gradients, shares(function, given, weights), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-12)
    directions = tuple(rng.uniform(1, 2, each.shape) for each in given)
    _, tangent = tc.jvp(function, given, directions)
    pulled = sum((one * other).sum() for one, other in zip(gradients, directions, strict=True))
    np.testing.assert_allclose((tangent * weights).sum(), pulled)


@pytest.mark.long
@pytest.mark.parametrize("name", RUNNING)
def test_second_derivatives_of_running_maxima_and_products(name: str) -> None:
    function, arrays = RUNNING[name]
    apart = tuple(each + numbers(*each.shape) for each in arrays(6))
    tc.check_grads(function, apart, modes=("rev", "fwd"), order=2)
    if "products" in name:
        # Products are smooth where factors are zero.
        tc.check_grads(function, arrays(6), modes=("rev", "fwd"), order=2)


def test_infinities_and_nan_end_no_derivative_before_them() -> None:
    x = np.array([1.0, 2.0, np.nan, 3.0, np.inf, np.inf])
    for array, wanted in ((x, [1, 1, 0, 0, 0, 0]), (x[3:], [1, 1.5, 0.5])):
        _, pullback = tc.vjp(largest, array)
        np.testing.assert_array_equal(*pullback(np.ones_like(array)), wanted)


@op
def windows_by_data(x, first):
    t[i] += x[j], j <= i, j >= first[i]
    return t


@op
def windows_from_the_end(x, last):
    t[b, i] >>= x[b, j], j >= i, last[b, i] >= j
    return t


@pytest.mark.parametrize("n", [0, 1, 6, 600])
def test_where_data_say_where_terms_begin_they_join_while_that_stays(n: int) -> None:
    x = rng.uniform(1, 2, n)
    for first in (np.arange(n) // 5 * 5, rng.integers(-2, n + 3, n), np.zeros(n, int)):
        wanted = [x[max(0, low) : k + 1].sum() for k, low in enumerate(first)]
        np.testing.assert_allclose(windows_by_data(x, first), wanted, rtol=1e-12)
        both, last = np.stack([x, 2 * x]), np.stack([first, n - 1 - first])
        wanted = [
            [max(row[k : max(0, high + 1)], default=-np.inf) for k, high in enumerate(ends)]
            for row, ends in zip(both, last, strict=True)
        ]
        np.testing.assert_array_equal(windows_from_the_end(both, last), np.reshape(wanted, both.shape))
    assert goes_on(windows_by_data.explain("passes", x, np.arange(n)))
    if n == 6:
        np.testing.assert_allclose(windows_by_data.interpret(x, np.zeros(n, int)), np.cumsum(x))
        tc.check_grads(windows_by_data, (x, np.arange(n) // 2 * 2), modes=("rev", "fwd"))


@op
def smallest_by_data(x, last):
    t[b, i] <<= x[b, j], j >= i, last[b, i] > j, i < x.shape[1]
    return t


@op
def products_by_data(x, first):
    t = copy(x)
    t[i] *= x[j], j < i, j >= first[i - 1]
    return t


@op
def sums_by_data(x, first):
    t[i] -= x[j] * first[i], j <= i + 2, j >= first[i], x[j] > 0.7, i < x.shape[0]
    return t


@pytest.mark.parametrize("function", [smallest_by_data, products_by_data, sums_by_data])
def test_derivatives_where_data_say_where_terms_begin(function: Any) -> None:
    def given(x: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (np.stack([x, 2 * x]), np.stack([ends + 3, ends + 5])) if function is smallest_by_data else (x, ends)

    for n in (1, 7):
        for ends in (np.arange(n) // 3 * 3, rng.integers(-2, n + 3, n)):
            tc.check_grads(function, given(terms(8)[-n:] + numbers(n), ends), modes=("rev", "fwd"), order=2)
    few, many = (function.cost(*given(numbers(n), np.arange(n) // 5 * 5)) for n in (50, 100))
    assert many.adjoint.operations.plain <= 2.2 * few.adjoint.operations.plain + 8


def test_nothing_is_taken_away_from_derivatives_by_segments() -> None:
    _, pullback = tc.vjp(windows_by_data, np.ones(6), np.array([0, 0, 2, 2, 1, 5]))
    found = pullback(np.array([1, np.nan, 1, 1, np.inf, 3]))[0]
    np.testing.assert_array_equal(found, [np.nan, np.nan, np.inf, np.inf, np.inf, 3])


def test_windows_by_data_cost_what_they_take_anew() -> None:
    x, block = np.ones(100), np.arange(100) // 10 * 10
    assert windows_by_data.cost(x, block).primal.operations.additions == 90
    assert (
        windows_by_data.cost(x, np.arange(100) // 2).primal.operations.additions
        == sum(k // 2 for k in range(0, 100, 2)) + 50
    )


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
    assert goes_on(PassLog.of(program).text())
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


@op
def into_part(x):
    t = output(x.shape[0] + 4, 2 * x.shape[1] + 3)
    t[b, 2 * i] >>= x[b, j], j <= i
    return t


@op
def of_every_second(x):
    t[i] *= x[2 * j], i < x.shape[0] // 2, j <= i
    return t


@op
def segments(x, first):
    t[i] += x[j], first[i] <= j, j <= i, i < x.shape[0]
    return t


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_cells_in_steps_and_in_part_of_their_target_go_on_too(n: int) -> None:
    x, both = rng.uniform(-1, 1, n), rng.uniform(-1, 1, (2, n))
    x[n // 2 :], both[:, n // 3] = np.inf, np.nan
    first = np.maximum(np.arange(n - 1) // 3 * 3, 1)
    for function, arrays in ((into_part, (both,)), (of_every_second, (x,)), (segments, (x, first))):
        np.testing.assert_array_equal(function(*arrays), function.interpret(*arrays))
        assert goes_on(function.explain("passes", *arrays))
        finite = tuple(np.nan_to_num(each, nan=0.5, posinf=0.25) for each in arrays)
        tc.check_grads(function, finite, modes=("rev", "fwd"))
    with tc.config(optimize="-scans"):
        np.testing.assert_array_equal(into_part(both), into_part.interpret(both))
