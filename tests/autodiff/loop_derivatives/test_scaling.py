"""Gradients of rounds that touch few cells take time and memory for these: no round copies, clears or keeps all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, output
from tcdsl.autodiff import adjoint, gradient, tangent
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.lowering.loop_passes.liveness import peak_bytes
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.lower import lower
from tests.autodiff.program_gradients import check_interpreted_gradient
from tests.long_variants import every


@op
def product(x: real[N], y):
    for t in range(N):
        y = y * x[t]
    return y


@op
def substitution(L: real[N, N], b: real[N]):
    for i in range(N):
        b[i] = (b[i] - sum(L[i, j] * b[j] for j in range(i))) / L[i, i]
    return (b * b).sum()


@op
def elimination(L: real[N, N], b: real[N]):
    for k in range(N):
        b[k] = b[k] / L[k, k]
        b[i] -= L[i, k] * b[k], i > k
    return (b * b).sum()


@op
def cholesky(A: real[N, N]):
    L[i, j] = A[i, j] + (N if i == j else 0)
    for k in range(N):
        L[k, k] = sqrt(L[k, k])
        L[i, k] /= L[k, k], i > k
        L[i, j] -= L[i, k] * L[j, k], i > k, k < j, j <= i
    return sum(log(L[i, i]))


@op
def history(x: real[N], s):
    h: real[N + 1]
    h[0] = s
    for t in range(N):
        h[t + 1] = tanh(h[t] + x[t])
    return (h * h).sum()


@op
def rows(x: real[N, 2], W: real[2, 2]):
    ys: real[N, 2]
    h = x[0]
    for t in range(N):
        h = tanh(h @ W + x[t])
        ys[t, ...] = h
    return (ys * ys).sum()


@op
def rows_in_place(u: real[N, 2], w: real[2, 2]):
    for t in range(1, N):
        u[t, j] = u[t, j] * sum(u[t - 1, k] * w[k, j])
    return (u * u).sum()


@op
def at_data(x: real[N], k: int64[N]):
    c: real[N]
    c[i] = 0.1 * x[i]
    for t in range(N):
        c[k[t]] += x[t] * c[k[t]] + x[t]
    return (c * c).sum()


@op
def rows_at_data(E: real[N, 2], k: int64[N], m: int64[N]):
    for t in range(N):
        s = sum(E[k[t], j] * E[m[t], j])
        E[k[t], j] += 0.1 * s * E[m[t], j]
    return (E * E).sum()


@op
def edges(d: real[N], a: int64[N], b: int64[N], w: real[N]):
    for t in range(N):
        d[a[t]] = sin(d[a[t]] * d[b[t]] + w[t])
    return (d * d).sum()


@op
def walk(x: real[N], y):
    k = 0
    for t in range(N):
        y = y * x[k]
        x[k] = sin(y + t)
        k = (k + 3) % N
    return y


@op
def in_place(u: real[N], x: real[N]):
    for t in range(1, N):
        u[t] = u[t] * u[t - 1] * x[t]
    return (u * u).sum()


@op
def branches(u: real[N], x: real[N]):
    for t in range(N):
        if u[t] > 0.5:
            u[t] = u[t] * x[t]
            if t > 0:
                u[t] += u[t - 1] * u[t]
    return (u * u).sum()


@op
def filtered(x: real[N], b):
    y: real[N]
    for t in range(N):
        y[t] = b * x[t]
        if t >= 1:
            y[t] -= y[t - 1] * b
    return (y * y).sum()


@op
def nested(A: real[N, N], u: real[N]):
    for t in range(N):
        for s in range(N):
            u[t] = u[t] * A[t, s] + u[s]
    return (u * u).sum()


@op
def chosen_rows(A: real[N, N], k: int64[N], y):
    for t in range(N):
        for s in range(N):
            y = sin(y * A[k[t], s])
        A[k[t], 0] = y
    return y


@op
def products_at_data(c: real[N], p: int64[N, 3], x: real[N]):
    for t in range(N):
        c[p[t, i]] *= x[t]
    return (c * c).sum()


@op
def sums_at_data(c: real[N], p: int64[N, 3], x: real[N]):
    for t in range(N):
        c[p[t, i]] += x[t] * c[p[t, i]]
    return (c * c).sum()


@op
def stores_at_data(c: real[N], p: int64[N, 3], x: real[N]):
    for t in range(N):
        assign(c[p[t, i]], "=:", sin(c[p[t, i]] * x[t]), unique=True)
    return (c * c).sum()


@op
def reads_at_data(c: real[N], p: int64[N, 3], x: real[N]):
    s = 0.0
    for t in range(N):
        s = s + sum(sin(c[p[t, i]]))
        c[t] = s * x[t]
    return s


@op
def largest_at_data(c: real[N], p: int64[N, 3], x: real[N]):
    for t in range(N):
        c[p[t, i]] >>= x[t] * x[p[t, i]]
    return (c * c).sum()


@op
def product_into_a_cell(c: real[N], x: real[N, 2]):
    for t in range(N):
        c[t] *= x[t, j]
    return (c * c).sum()


@op
def largest_into_a_row(c: real[N, 2], x: real[N, 2]):
    for t in range(1, N):
        c[t, i] >>= x[t, j] * c[t - 1, i]
    return (c * c).sum()


def vector(n: int) -> np.ndarray:
    return np.random.default_rng(n).uniform(0.3, 1.1, n)


def pairs(n: int) -> np.ndarray:
    return np.random.default_rng(n).uniform(-1, 1, (n, 2))


def matrix(n: int) -> np.ndarray:
    a = np.random.default_rng(n).uniform(-1, 1, (n, n))
    return (a @ a.T) / n + np.eye(n)


def with_a_zero(n: int) -> np.ndarray:
    return np.where(np.arange(n) == 1, 0, vector(n))


def places(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n, n)


def three_places(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, n, (n, 3))


def three_others(n: int) -> np.ndarray:
    return np.stack([np.random.default_rng(k).permutation(n)[:3] for k in range(n)])


W = np.array([[0.5, -0.4], [0.3, 0.8]])

# The function, its arguments for N, and the power of N that it takes time for.
CASES: dict[str, tuple[Any, Callable[[int], tuple[Any, ...]], int]] = {
    "product": (product, lambda n: (vector(n), np.array(0.7)), 1),
    "substitution": (substitution, lambda n: (matrix(n), vector(n)), 2),
    "elimination": (elimination, lambda n: (matrix(n), vector(n)), 2),
    "cholesky": (cholesky, lambda n: (matrix(n),), 3),
    "history": (history, lambda n: (vector(n), np.array(0.7)), 1),
    "rows": (rows, lambda n: (pairs(n), W), 1),
    "rows in place": (rows_in_place, lambda n: (pairs(n), W), 1),
    "at data": (at_data, lambda n: (vector(n), places(n)), 1),
    "rows at data": (rows_at_data, lambda n: (pairs(n), places(n), places(n, 1)), 1),
    "edges": (edges, lambda n: (vector(n), places(n), places(n, 1), vector(n)), 1),
    "walk": (walk, lambda n: (vector(n), np.array(0.7)), 1),
    "in place": (in_place, lambda n: (vector(n), vector(n)), 1),
    "branches": (branches, lambda n: (vector(n), vector(n)), 1),
    "filtered": (filtered, lambda n: (vector(n), np.array(0.7)), 1),
    "nested": (nested, lambda n: (matrix(n) / n, vector(n)), 2),
    "products at data": (products_at_data, lambda n: (vector(n), three_places(n), with_a_zero(n)), 1),
    "sums at data": (sums_at_data, lambda n: (vector(n), three_places(n), with_a_zero(n)), 1),
    "stores at data": (stores_at_data, lambda n: (vector(n), three_others(n), vector(n)), 1),
    "reads at data": (reads_at_data, lambda n: (vector(n), three_places(n), vector(n)), 1),
    "largest at data": (largest_at_data, lambda n: (vector(n), three_places(n), vector(n)), 1),
    "product into a cell": (product_into_a_cell, lambda n: (with_a_zero(n), pairs(n)), 1),
    "largest into a row": (largest_into_a_row, lambda n: (pairs(n), pairs(n) + 1), 1),
    "chosen rows": (chosen_rows, lambda n: (matrix(n), places(n), np.array(0.7)), 2),
}


@pytest.mark.parametrize("name", every(2, CASES))
def test_gradients_take_no_more_than_rounds_touch(name: str) -> None:
    function, arguments, power = CASES[name]
    small, large = arguments(20), arguments(40)
    by = tuple(k for k, each in enumerate(small) if each.dtype.kind == "f")
    grows_with(tc.grad(function, argnums=by).program(*small), small, large, power)


# Of those whose second derivatives are made otherwise, one each.
@pytest.mark.parametrize("name", ["branches", "chosen rows", "products at data", "sums at data", "largest into a row"])
def test_second_derivatives_neither(name: str) -> None:
    function, arguments, power = CASES[name]
    small, large = arguments(20), arguments(40)
    program = function.program(*small)
    by = [tensor.name for tensor, each in zip(program.inputs, small, strict=True) if each.dtype.kind == "f"]
    slope = gradient(program, by, keep_outputs=False)
    moved = [[each for each in given if each.dtype.kind == "f"] for given in (small, large)]
    for twice in (adjoint(slope, by, keep_outputs=False), tangent(slope, by, keep_outputs=False)):
        grows_with(twice, (*small, *moved[0]), (*large, *moved[1]), power)


def grows_with(program: Program, small: Any, large: Any, power: int) -> None:
    """Twice as large arguments take twice the points to that power, and twice the memory for each axis."""
    kernel = lower(program)
    points, peaks = [], []
    for given in (small, large):
        sizes = bind_sizes(kernel.program, [each.shape for each in given])
        points.append(executed_points(kernel, sizes))
        peaks.append(peak_bytes(kernel, sizes).peak)
    assert points[1] < 2.3**power * points[0]
    assert peaks[1] < 2.3 ** max(each.ndim for each in small) * peaks[0]


@pytest.mark.parametrize("name", CASES)
def test_they_are_right(name: str) -> None:
    function, arguments, _ = CASES[name]
    check_interpreted_gradient(function, arguments(4))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if k % 4 else ()) for k, name in enumerate(CASES)]
)
def test_they_are_right_in_machine_code(name: str) -> None:
    function, arguments, _ = CASES[name]
    given = arguments(4)
    by = [k for k, each in enumerate(given) if each.dtype.kind == "f"]

    def loss(*chosen: Any) -> Any:
        moved = dict(zip(by, chosen, strict=True))
        return function(*(moved.get(k, each) for k, each in enumerate(given)))

    tc.check_grads(loss, tuple(given[k] for k in by))


@op
def rows_by_cells(row: int64[M], col, x: real[N]):
    y = output(M - 1)
    for i in range(M - 1):
        for k in range(row[i], row[i + 1]):
            y[i] += x[col[k]]
    return sum(y[j] * y[j])


def test_rows_of_ranges_of_data_keep_no_whole_array() -> None:
    peaks = []
    for rows in (200, 400):
        row, col, x = np.arange(rows + 1) * 2, np.arange(2 * rows) % rows, np.ones(rows)
        text = str(tc.grad(rows_by_cells, argnums=2).explain("loops", row, col, x))
        peaks.append(int(text.rstrip().rpartition("peak ")[2]))
    assert peaks[1] < 2.1 * peaks[0]
