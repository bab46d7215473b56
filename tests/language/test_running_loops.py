"""Loops that run: `for` over sizes, numbers, data and tensors; expectations by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import ShapeError
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(7)
X, A = GENERATOR.random(6), GENERATOR.random((5, 5))
ROWS = GENERATOR.random((4, 3))


@op
def heat(u, steps):
    for t in range(steps):
        u[i] += 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
    return u


@pytest.mark.parametrize("steps", [0, 1, 5, 20, 30])
def test_a_loop_runs_as_often_as_a_number_says(steps: int) -> None:
    u = X.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])
    check(heat, (X, steps), u)


def test_a_negative_number_of_rounds_is_none() -> None:
    check(heat, (X, -3), X)


@cd
def cholesky(A: real[N, N]):
    for k in range(N):
        A[k, k] = sqrt(A[k, k])
        A[i, k] /= A[k, k], i > k
        A[i, j] -= A[i, k] * A[j, k], i > k, k < j, j <= i


def test_code_changes_its_argument_round_by_round() -> None:
    matrix = A @ A.T + np.eye(5)
    [found] = cholesky.interpret(matrix)
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(matrix), rtol=1e-12)


@op
def fibonacci(n):
    a, b = 0, 1
    for t in range(n):
        a, b = b, a + b
    return a


@op
def total(x):
    s = 0
    for t in range(x.shape[0]):
        s = s + x[t]
    return s


@op
def doubled(x):
    n = 0
    for t in tc.loop(7):
        n = n + 2
    return n * x


def test_numbers_are_carried_in_the_type_of_their_updates() -> None:
    check(fibonacci, (10,), 55)
    check(total, (X.astype("f"),), X.astype("f").sum())
    assert total.interpret(X.astype("f")).dtype == np.float32
    assert total.interpret(np.arange(5)).dtype == np.int64
    check(doubled, (X.astype("f"),), 14 * X.astype("f"))
    assert doubled.interpret(X.astype("f")).dtype == np.float32


@op
def nested(A: real[N, M]):
    s = 0.0
    for i in range(N):
        for j in range(i, M):
            s = s + A[i, j] * (i + 2 * j)
    return s


@op
def weighted(x):
    s = 0.0
    for t in range(2, x.shape[0], 2):
        s = s + t * x[t]
    return s


@op
def backwards(x: real[N]):
    s = 0.0
    for t in range(N - 1, -1, -1):
        s = 0.5 * s + x[t]
    return s


@op
def decayed(x: real[N]):
    s = 0.0
    for t in reversed(range(1, N, 2)):
        s = 0.5 * s + t * x[t]
    return s


@op
def polynomial(x, n):
    s = 0 * x
    for k in reversed(tc.loop(n)):
        s = s * x + k
    return s


@op
def unrolled_backwards(x, *, parts=(2, 3)):
    for k in reversed(range(len(parts))):
        x = parts[k] * x + k
    return x


@op
def times_first(x, n):
    s = x
    for t in range(n):
        s = s * x[t]
    return s


def test_ranges() -> None:
    check(nested, (A,), sum(A[i, j] * (i + 2 * j) for i in range(5) for j in range(i, 5)))
    check(weighted, (X,), sum(t * X[t] for t in range(2, 6, 2)))
    s = 0.0
    for value in X[::-1]:
        s = 0.5 * s + value
    check(backwards, (X,), s)
    for size in (0, 1, 2, 5, 6):
        s = 0.0
        for t in reversed(range(1, size, 2)):
            s = 0.5 * s + t * X[t]
        check(decayed, (X[:size],), s)
    check(polynomial, (X, 4), ((3 * X + 2) * X + 1) * X)
    check(polynomial, (X, np.array(4)), ((3 * X + 2) * X + 1) * X)
    check(unrolled_backwards, (X,), 2 * (3 * X + 1))
    check(times_first, (X, np.array(3)), X * X[0] * X[1] * X[2])  # data says how often
    check(times_first, (X, 2), X * X[0] * X[1])


@op
def over_rows(x):
    s = 0 * x[0]
    for a in x:
        s = 0.5 * s + a
    return s


@op
def numbered(x):
    s = 0 * x[0]
    for t, a in enumerate(x):
        s = s + t * a
    return s


@op
def together(x, y):
    s = 0 * x[0]
    for a, b in zip(x, y, strict=True):
        s = s + a * b
    return s


@op
def from_the_end(x):
    s = 0 * x[0]
    for a in reversed(x):
        s = 0.5 * s + a
    return s


@op
def beside_a_list(x):
    s = 0 * x[0]
    for weight, a in zip([1, 2, 3, 4], x, strict=True):
        s = s + weight * a
    return s


@op
def composed(x: real[N], y):
    s = 0.0
    for t, (p, q) in enumerate(zip(x, y, strict=True)):
        s = s + t * p * q
    for p, q in zip(x, reversed(y), strict=True):
        s = 0.5 * s + p * q
    for t, p in zip(range(N), x, strict=True):
        s = s + t * p
    for k, t in enumerate(range(1, N), 2):
        s = s + x[t] * k
    return s


@op
def weights(x, *, c=(1, 2, 3, 4, 5, 6)):
    s = 0.0
    for k, (w, a) in enumerate(zip(c, x, strict=True)):
        s = s + k * w * a
    for k, w in enumerate(c):
        s = s + k * w
    return s


@op
def large_cells(x: real[N]):
    s = 0.0
    for t in range(N):
        s = s + x[t] if x[t] > 0.5 else s
    z = x[i] if x[i] > 0.5 else 0.0
    w[i] = 2 * z
    return s, w


def test_what_loops_go_over_composes() -> None:
    x, y = X, X[::-1] ** 2
    s = float((np.arange(6) * x * y).sum())
    for p, q in zip(x, y[::-1], strict=True):
        s = 0.5 * s + p * q
    s += (np.arange(6) * x).sum() + sum(k * x[t] for k, t in enumerate(range(1, 6), 2))
    check(composed, (x, y), s)
    c = np.arange(1, 7)
    check(weights, (x,), (np.arange(6) * c * x).sum() + (np.arange(6) * c).sum())


def test_choices_of_whole_values_are_branches() -> None:
    check(large_cells, (X,), (X[X > 0.5].sum(), 2 * np.where(X > 0.5, X, 0)))


def halved(rows: Any) -> Any:
    s = 0.0
    for a in rows:
        s = 0.5 * s + a
    return s


def test_loops_over_tensors() -> None:
    check(over_rows, (ROWS,), halved(ROWS))
    check(numbered, (ROWS,), sum(t * a for t, a in enumerate(ROWS)))
    check(together, (ROWS, 2 * ROWS), 2 * (ROWS**2).sum(0))
    check(from_the_end, (ROWS,), halved(ROWS[::-1]))
    check(beside_a_list, (ROWS,), np.arange(1, 5) @ ROWS)
    with pytest.raises(ShapeError, match="a loop goes over a list of 4 and a tensor of another length"):
        beside_a_list.interpret(ROWS[:3])


@cd
def descend(w, g, n):
    for t in range(n):
        w -= 0.1 * g


@cd
def tail(w, n):
    z = w[1:]
    for t in range(n):
        z *= 2


def test_memory_is_carried_under_every_name() -> None:
    check(descend, (X, X, 5), (0.5 * X,))
    check(tail, (X, 3), (np.r_[X[0], 8 * X[1:]],))


@op
def place_of(A: real[H, W], value):
    for r in range(H):
        for c in range(W):
            if A[r, c] == value:
                return {"place": (r, c)}
            if A[r, c] < 0:
                break
    return {"place": (-1, -1)}


def test_loops_in_loops_return_several_values() -> None:
    matrix = np.arange(12.0).reshape(3, 4)
    assert place_of.interpret(matrix, 6.0) == {"place": (1, 2)}
    matrix[1, 1] = -1
    assert place_of.interpret(matrix, 6.0) == {"place": (-1, -1)}


TABLE = np.array([2.0, 3.0, 5.0])


@op
def weighted_by_a_table(x: real[N]):
    s = 0.0
    for t in range(N):
        s = s + x[t] * TABLE[t % 3]
    return s


@op
def to_a_power_of_a_table(x, n):
    k = 0 * n
    while k < n:
        x = x * TABLE[k]
        k = k + 1
    return x


def test_arrays_around_the_function_are_indexed_by_the_number_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (TABLE, TABLE + 1):
        monkeypatch.setitem(globals(), "TABLE", table)
        check(weighted_by_a_table, (X,), (X * table[np.arange(6) % 3]).sum())
        check(to_a_power_of_a_table, (X, 2), X * table[0] * table[1])


@pytest.mark.parametrize("table", ["np.array([2.0, 3.0, 5.0])", "tc.tensor([2.0, 3.0, 5.0])"])
def test_arrays_made_in_the_function_are_indexed_by_the_number_of_the_round(table: str) -> None:
    body = f"w = {table}\nfor t in range(3):\n    x[t] = w[t] * x[t]\nreturn x"
    np.testing.assert_allclose(program(f"import numpy as np\n{body}", "x")(X[:3]), X[:3] * [2.0, 3.0, 5.0])


CELLS = ["s = 0.5 * s + get(x[t - 1], 2.0)", "s = 0.5 * s\n    s += x[wrap(t - 1)]", "s = 0.5 * s + x[clamp(t - 1)]"]


@pytest.mark.parametrize("cell", CELLS)
def test_scalars_of_rounds_read_at_boundaries(cell: str) -> None:
    f = program(f"s = 0.0\nfor t in range(N):\n    {cell}\n    if get(x[t + 1], 1.0) > 2:\n        s = -1.0\nreturn s")
    first = 2.0 if "get" in cell else X[-1] if "wrap" in cell else X[0]
    s = 0.0
    for value in (first, *X[:-1]):
        s = 0.5 * s + value
    check(f, (X, 1), s)


@pytest.mark.parametrize("bounds", ["N", "2, N", "N - 1, -1, -1"])
def test_a_loop_that_only_goes_on_is_no_loop(bounds: str) -> None:
    check(program(f"for u in range({bounds}):\n    continue\nreturn x", "x: 'real[N]'"), (X,), X)


def test_a_loop_without_effect_is_no_loop() -> None:
    f = program("for t in range(n):\n    h = x[t]\nreturn x")
    check(f, (X, 3), X)


def test_a_loop_runs_where_extents_are_equal_in_the_call() -> None:
    @op
    def alternating(u, v, n):
        for _t in range(n):
            u, v = u[0] + v, u
        return u

    def by_hand(u: Any, v: Any, n: int) -> Any:
        for _ in range(n):
            u, v = u[0] + v, u
        return u

    x = np.arange(4.0)
    for v in (x[::-1], np.ones(3), x):
        for n in (20, 21):
            np.testing.assert_array_equal(alternating(x, v, n), by_hand(x, v, n))
    # One program runs; where the arrays differ in length there is one for each number of rounds.
    assert alternating.cache_info().programs == 3


def test_a_generator_has_a_name_of_its_own_after_a_loop_of_that_letter() -> None:
    f = program(
        "y: real[N]\nfor s in range(N):\n    y[s] = 2 * x[s]\n"
        "c = output(1)\nc[0] = sum(y[s] for s in range(N))\nreturn c"
    )
    np.testing.assert_allclose(f(X, 1), [2 * X.sum()])


def test_a_range_of_numpy_counts_rounds_as_pythons() -> None:
    @op
    def f(x: real[N], n: int64):
        s = 0.0
        for t in np.arange(1, N, 2):
            s = 2 * s + x[t]
        for t in np.arange(n):
            s = 3 * s + t
        return s

    x = np.arange(1.0, 7.0)
    np.testing.assert_allclose(f(x, np.int64(3)), 27 * (4 * 2.0 + 2 * 4.0 + 6.0) + 5)
    np.testing.assert_allclose(f.interpret(x, np.int64(3)), 27 * (4 * 2.0 + 2 * 4.0 + 6.0) + 5)


@pytest.mark.long
def test_functions_that_call_themselves_without_an_end_are_told_to_loop() -> None:
    @op
    def doubled(x):
        if x > 10:
            return x
        return doubled(2 * x)

    with pytest.raises(tc.DslSyntaxError, match=r"`doubled` calls itself without an end(.|\n)*write a `while`"):
        doubled(np.array(1.0))


PAIRS = ["x, x[1:]", "x, y", "y, x", "reversed(x), y", "x[::2], range(n)", "range(n, 0, -1), x", "y, x, reversed(y)"]


@pytest.mark.parametrize("pairs", PAIRS)
def test_what_is_zipped_ends_with_the_shortest(pairs: str) -> None:
    body = f"s = 0.5\nfor parts in zip({pairs}):\n    s = s * parts[0] + parts[-1]\nreturn s"
    f = program(body, "x, y, n")
    for x, y in ((X, X[:2]), (X[:1], X), (X[:0], X)):
        namespace: dict[str, Any] = {"x": x, "y": y, "n": 3}
        exec(body.removesuffix("\nreturn s"), namespace)
        check(f, (x, y, 3), namespace["s"])
    tc.check_grads(lambda x, y: f(x, y, 3), (X, X[:2]))


def test_a_list_may_be_shorter_than_what_it_is_zipped_with() -> None:
    f = program("s = 0.0\nfor w, a in zip([1.0, 2.0], x):\n    s = s * w + a\nreturn s", "x")
    check(f, (X,), X[0] * 2 + X[1])
    check(f, (X[:2],), X[0] * 2 + X[1])
