"""Programs with loops and branches as one finds them in books, beside the same in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import ShapeError

GENERATOR = np.random.default_rng(11)


def check(function: Any, arguments: tuple[Any, ...], expected: Any) -> None:
    """Compiled and interpreted it gives what is expected."""
    for run in (function, function.interpret):
        found = run(*(each.copy() if isinstance(each, np.ndarray) else each for each in arguments))
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else ((found, expected),)
        for one, wanted in pairs:
            assert np.shape(one) == np.shape(wanted)
            np.testing.assert_allclose(one, wanted, rtol=1e-9)


@op
def sines(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = sin(x)
    return x


@op
def sum_of_sines(x: Any, n: Any, m: Any) -> Any:
    s = 0 * x
    for t in range(m):
        s = s + sines(t * x, n)
    return s


@op
def triangle(n: Any, m: Any) -> Any:
    total = 0
    for a in range(n):
        for b in range(a, m):
            total = total - m
            if (a + b) % 2 == 0:
                total = total + a * b
    return total


@pytest.mark.parametrize(("n", "m"), [(2, 3), (0, 3), (2, 0), (5, 2), (-1, 4)])
def test_a_number_that_only_inner_loops_ask_for(n: int, m: int) -> None:
    x, s = GENERATOR.random(3), np.zeros(3)
    for t in range(m):
        y = t * x
        for _ in range(n):
            y = np.sin(y)
        s += y
    check(sum_of_sines, (x, n, m), s)
    total = sum(a * b * ((a + b) % 2 == 0) - m for a in range(n) for b in range(a, m))
    check(triangle, (n, m), total)


@op
def first_large(x: Any) -> Any:
    found = False
    place = -1
    for t in range(x.shape[0]):
        if not found and x[t] > 0.5:
            found = True
            place = t
    return found, place


@op
def between(x: Any, low: Any) -> Any:
    count = 0
    for t in range(x.shape[0]):
        if low < x[t] <= 0.75 and (x[t] < 0.5 or not x[t] > 0.6) and 0 < t < 5:
            count = count + 1
    return count


def test_conditions_on_cells_of_a_round() -> None:
    for x in (np.array([0.1, 0.7, 0.9]), np.array([0.1]), np.zeros(0)):
        large = np.flatnonzero(x > 0.5)
        check(first_large, (x,), (large.size > 0, large[0] if large.size else -1))
    x = GENERATOR.random(40)
    wanted = (x > 0.25) & (x <= 0.75) & ((x < 0.5) | (x <= 0.6))
    check(between, (x, 0.25), wanted[1:5].sum())


@op
def filtered(x: Any, b: Any, a1: Any, a2: Any) -> Any:
    y = output(x.shape[0])
    for n in range(x.shape[0]):
        y[n] = b * x[n]
        if n >= 1:
            y[n] -= a1 * y[n - 1]
        if n >= 2:
            y[n] -= a2 * y[n - 2]
    return y


@op
def third(x: Any) -> Any:
    y = -x[0]
    if x.shape[0] > 2:
        y = x[2]
    return y


@op
def laplacian(u: Any) -> Any:
    N = u.shape[0]
    d = output(N)
    for t in range(N):
        if 0 < t < N - 1:
            d[t] = u[t - 1] - 2 * u[t] + u[t + 1]
        elif t == 0:
            d[t] = u[N - 1]
        else:
            d[t] = u[t - 1] * u[0]
    return d


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_an_arm_asks_of_sizes_what_holds_where_it_is_taken(size: int) -> None:
    x = GENERATOR.random(size)
    y = np.zeros(size)
    for n in range(size):
        y[n] = 0.5 * x[n] - (0.3 * y[n - 1] if n >= 1 else 0) - (0.2 * y[n - 2] if n >= 2 else 0)
    check(filtered, (x, 0.5, 0.3, 0.2), y)
    check(third, (x,), x[2] if size > 2 else -x[0])
    inner = x[:-2] - 2 * x[1:-1] + x[2:]
    check(laplacian, (x,), np.array([x[-1], *inner, x[-2] * x[0]][: max(size, 1)]) if size > 1 else x)
    tc.check_grads(lambda x: (filtered(x, 0.5, 0.3, 0.2) ** 2).sum() + third(x), (x,))
    tc.check_grads(lambda x: (laplacian(x) ** 2).sum(), (x,))


@op
def beside_large_cells(x: Any, k: Any) -> Any:
    s = 0.0
    for t in range(x.shape[0]):
        if (t > 0 and x[t - 1] > 0.5) or t == x.shape[0] - 1 or x[t + 1] > 0.5:
            s = s + x[t]
        assert t == 0 or x[t - 1] >= 0
    while k < x.shape[0] and x[k] < 0.9:
        k = k + 1
    return s, k if k < x.shape[0] and x[k] > 0.95 else -1


def beside_large_cells_of_python(x: Any, k: int) -> Any:
    s, size = 0.0, len(x)
    for t in range(size):
        if (t > 0 and x[t - 1] > 0.5) or t == size - 1 or x[t + 1] > 0.5:
            s += x[t]
    while k < size and x[k] < 0.9:
        k += 1
    return s, k if k < size and x[k] > 0.95 else -1


@pytest.mark.parametrize("size", [0, 1, 2, 9])
def test_a_condition_reads_no_further_than_it_has_to(size: int) -> None:
    for x in (GENERATOR.random(size), np.full(size, 0.97)):
        for k in (0, 3, 12):
            check(beside_large_cells, (x, k), beside_large_cells_of_python(x, k))


@op
def beyond(x: Any) -> Any:
    s = 0.0
    for t in range(x.shape[0]):
        if t >= 1:
            s = s + x[t - 2]
    return s


def test_an_arm_whose_condition_is_too_weak() -> None:
    assert beyond(np.ones(1)) == 0
    with pytest.raises(ShapeError, match="out of range of axis 0"):
        beyond(np.ones(2))


@op
def outer_product(x: Any) -> Any:
    N = x.shape[0]
    table = output(N, N)
    for t in range(N):
        for s in range(N):
            if x[t] > 0:
                table[t, s] = x[t] * x[s]
    return table


@op
def products(x: real[N]) -> Any:
    found: real[N]
    largest = output(N)
    for t in range(N):
        for s in range(N):
            found[t] *= x[s] + t
            if s > 0:
                largest[t] >>= x[s] - 5
    return found, largest


@op
def large_ones(x: Any) -> Any:
    kept = output(x.shape[0])
    small = 0.0
    for t in range(x.shape[0]):
        if x[t] <= 0:
            small = small + x[t]
        else:
            kept[t] = x[t]
    return kept, small


def test_a_target_that_inner_loops_are_the_first_to_write() -> None:
    x = np.array([0.5, -1.5, 2.0])
    check(outer_product, (x,), np.outer(x * (x > 0), x))
    check(large_ones, (x,), (np.maximum(x, 0), -1.5))
    rounds = np.arange(3.0)[:, None]
    check(products, (x,), ((x + rounds).prod(axis=1), np.full(3, -3.0)))


@op
def dot(x: Any, y: Any) -> Any:
    s = 0.0
    for a, b in zip(x, y, strict=True):
        s = s + a * b
    return s


def test_what_a_loop_asks_of_shapes_is_said_once() -> None:
    with pytest.raises(ShapeError) as raised:
        dot(np.ones(3), np.ones(4))
    assert "different lengths" in str(raised.value)
    assert "faults" not in str(raised.value)


@op
def of_chosen_loops(x: real[N], *, n, every=None, runs=True):
    rounds = tc.loop(n, checkpoint_every=every) if every else tc.loop(n)
    s = 0.0
    for t in rounds if runs else range(n):
        s = s * 0.5 + x[t]
    for k, v in reversed(list(enumerate(x))):
        s = s * 0.5 + v * k
    for k in list(range(N)):
        s = s + x[k] * k
    for k, v in reversed(list(enumerate([1.0, 2.0]))):
        s = s * 0.5 + v * k
    return s


def test_what_a_loop_goes_over_may_have_a_name_or_be_a_list() -> None:
    x = np.arange(1.0, 5.0)
    expected = 0.0
    for t in range(4):
        expected = expected * 0.5 + x[t]
    for k, v in reversed(list(enumerate(x))):
        expected = expected * 0.5 + v * k
    expected += float(x @ np.arange(4))
    for k, v in reversed(list(enumerate([1.0, 2.0]))):
        expected = expected * 0.5 + v * k
    for every, runs in ((None, True), (2, True), (None, False)):
        assert of_chosen_loops(x, n=4, every=every, runs=runs) == pytest.approx(expected)
    texts = [of_chosen_loops.explain("ir", x, n=n) for n in (4, 400)]
    assert len({text.count("\n") for text in texts}) == 1  # it is not unrolled
