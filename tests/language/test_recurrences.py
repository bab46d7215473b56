"""A statement that reads what other points of itself write, where nothing has written before, is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, refusal

x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
A = np.arange(16.0).reshape(4, 4) + np.eye(4)
RECURS = "reads what other points of this statement write and nothing has written before"


def refused(f: Any, *arguments: Any, **configuration: Any) -> str:
    """The message of a recurrence, of the interpreter: it is found while staging or before anything runs."""
    with pytest.raises(tc.ShapeError, match=RECURS) as caught:
        f.interpret(*arguments, **configuration)
    return str(caught.value)


def check(f: Any, *arguments: Any, wanted: Any, **configuration: Any) -> None:
    """What the interpreter gives; compiled code is tested where it says so."""
    found = f.interpret(*arguments, **configuration)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for part, value in pairs:
        np.testing.assert_allclose(part, value)


def test_the_message_shows_the_loop_to_write() -> None:
    @op
    def filtered(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[t] = s[t - 1] * 2 + x[t], t >= 1
        return s

    message = refusal(tc.ShapeError, filtered, x)
    assert f"`s[t - 1]` {RECURS}\n    s[t] = s[t - 1] * 2 + x[t], t >= 1\n           ^^^^^^^^" in message
    assert (
        "write a loop:\n"
        "    for t in range(1, N):\n        s[t] = s[t - 1] * 2 + x[t], t >= 1\n"
        "or write its cells first, as in `s[...] = 0`" in message
    )


def test_the_loop_to_write_is_right() -> None:
    @op
    def filtered(x, *, n):
        s: real[n]
        s[0] = x[0]
        for t in range(1, n):
            s[t] = s[t - 1] * 2 + x[t], t >= 1
        return s

    check(filtered, x, n=5, wanted=[1, 4, 12, 32, 80])


def test_the_loop_runs_downwards_where_the_recurrence_does() -> None:
    @op
    def suffix_sums(x):
        s = output(x.shape[0])
        s[-1] = x[-1]
        s[i] = s[i + 1] + x[i]
        return s

    assert "    for i in range(x.shape[0] - 2, -1, -1):\n        s[i] = s[i + 1] + x[i]\n" in refused(suffix_sums, x)


def test_only_the_variable_of_the_recurrence_is_looped_over() -> None:
    @op
    def rows(A):
        N, M = A.shape
        s: real[N, M]
        s[0, j] = A[0, j]
        s[i, j] = s[i - 1, j] + A[i, j]
        return s

    assert "    for i in range(1, N):\n        s[i, j] = s[i - 1, j]" in refused(rows, A)

    @op
    def distances(A):
        N, M = A.shape
        d: real[N, M]
        d[0, j] = A[0, j]
        d[i, 0] = A[i, 0]
        d[i, j] = A[i, j] + min(d[i - 1, j], d[i, j - 1]), i > 0, j > 0
        return d

    assert (
        "write loops:\n    for i in range(1, N):\n        for j in range(1, M):\n            d[i, j] = A[i, j] + min("
    ) in refused(distances, A)

    @op
    def fill(A):
        N, M = A.shape
        s: real[N, M]
        s[0, j] = A[0, j]
        s[i, j] = s[i - 1, j - 1] + s[i + 1, j], 1 <= i < N
        return s

    assert "write a loop whose rounds follow each other, or write its cells first" in refused(fill, A)


def test_a_declaration_writes_nothing_and_a_store_over_all_cells_writes_them() -> None:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[...] = 0
        s[0] = x[0]
        s[t] = s[t - 1] * 2 + x[t]
        u: real[N]
        u[i] = x[i]
        u[i] = u[i - 1] + u[i]
        v = x + 0
        v[i] = v[i + 1]
        w: real[N]
        w[0] = x[0]
        w[i] = x[i], i >= 1, i % 2 < 2
        w[i] += w[i - 1], i > 0
        return s, u, v, w

    check(f, x, wanted=([1, 4, 4, 8, 16], [1, 3, 6, 12, 24], [2, 4, 8, 16, 16], [1, 3, 6, 12, 24]))


def test_what_an_earlier_statement_or_input_has_written_is_read_as_it_was() -> None:
    @op
    def f(x, y):
        (N,) = x.shape
        p: real[N + 2]
        p[i + 1] = x[i]
        p[i] = p[i] * 0.5 + 1
        jacobi: real[N]
        jacobi[i] = x[i]
        for _ in range(2):
            jacobi[i] = 0.5 * (jacobi[i - 1] + jacobi[i + 1])
        y[i] += y[i + 1]
        part: real[N]
        part[i] = x[i], i < 2
        part[i] = part[i - 2] + x[i], 2 <= i < 4
        return p, jacobi, y, part

    jacobi = x.copy()
    for _ in range(2):
        jacobi[1:-1] = 0.5 * (jacobi[:-2] + jacobi[2:])
    wanted = (np.append(np.append(1, x * 0.5 + 1), 1), jacobi, x + np.append(x[1:], 0), [1, 2, 5, 10, 0])
    assert_gives(f, x, x, wanted=wanted)


def test_each_point_may_read_the_cell_that_it_writes() -> None:
    @op
    def f(A):
        N, M = A.shape
        flat: real[N * M]
        flat[0] = 1.0
        flat[i * M + j] = flat[i * M + j] + A[i, j]
        s: real[N]
        s[0] = 3.0
        s[i] = s[i] * 2 + A[i, 0]
        s[N - 1 - i] += s[N - 1 - i]
        return flat, s

    s = 2 * (np.array([6.0, 0, 0, 0]) + A[:, 0])
    np.testing.assert_array_equal(f.interpret(A)[1], s)
    np.testing.assert_array_equal(f.interpret(A)[0], A.ravel() + (np.arange(16) == 0))


STATEMENTS: dict[str, Callable[[], Any]] = {}


def statement(function: Callable[[], Any]) -> Callable[[], Any]:
    STATEMENTS[function.__name__] = function
    return function


@statement
def accumulated() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[t] += s[t - 1] * x[t]
        return s

    return f


@statement
def in_a_reduction() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = x[i] - sum(s[k] for k in range(N) if k < i)
        return s

    return f


@statement
def in_a_reduction_of_a_reduction() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = max(x[j] * sum(s[k] for k in range(N) if k < j) + x[i] for j in range(N))
        return s

    return f


@statement
def in_the_reset_form() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = sum(s[i - 1] * x[k]), i >= 1
        return s

    return f


@statement
def in_a_branch() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = s[i - 1] + x[i] if i > 0 else x[i]
        return s

    return f


@statement
def behind_a_bracket() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = x[i] + s[i - 1] * (i > 1)
        return s

    return f


@statement
def in_a_local_definition() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        before = s[i - 1] * 2
        s[i] = before * before + x[i]
        return s

    return f


@statement
def in_a_helper() -> Any:
    def step(before, now):
        return before * 2 + now

    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = step(s[i - 1], x[i])
        return s

    return f


@statement
def in_a_condition() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = x[i], s[i - 1] > 0
        return s

    return f


@statement
def under_a_condition_on_data() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = s[i - 1] + x[i], x[i] > 0
        return s

    return f


@statement
def at_the_nearest_cell() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = s[clamp(i - 1)] + x[i]
        return s

    return f


@statement
def periodic() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = s[wrap(i + N - 1)] + x[i], i >= 1
        return s

    return f


@statement
def with_a_fill() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = get(s[i - 1], 0.0) + x[i]
        return s

    return f


@statement
def several_reads() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = 0.0
        s[1] = 1.0
        s[i] = s[i - 1] + s[i - 2] + x[i], i >= 2
        return s

    return f


@statement
def in_row_major_digits() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N * N]
        s[0] = x[0]
        s[i * N + p] = s[i * N + p - 1] + x[p], p < N, i < N
        return s

    return f


@statement
def on_an_unwritten_part_alone() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[2 * i] = x[2 * i]
        s[i] = s[i - 2] + x[i], i % 2 == 1
        return s

    return f


@statement
def of_a_fresh_target() -> Any:
    @op
    def f(x):
        s[2 * i] = x[i]
        s[i] += s[i + 1]
        return s

    return f


@statement
def of_a_target_written_by_slices() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[:1] = x[:1]
        s[i] = s[i - 1] + x[i], i >= 1
        return s

    return f


@statement
def of_a_target_written_under_a_condition_on_data() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[i] = x[i], x[i] > 2
        s[i] = s[i - 1] + x[i], i > 0
        return s

    return f


@statement
def of_a_target_written_by_a_scatter() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[int64(x[i]) % N] += x[i]
        s[i] = s[i - 1] + x[i], i > 0
        return s

    return f


@statement
def of_a_target_reset_where_data_says() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[int64(x[i]) % N] = sum(x[i] * x[k]), i > 0
        s[i] += s[i - 1]
        return s

    return f


@statement
def of_a_logic() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s["i;j=>j"] += s * x
        return s

    return f


@statement
def in_place() -> Any:
    @cd
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = s[i - 1] + x[i], i >= 1
        x[i] = s[i]

    return f


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_form_of_a_recurrence_is_silent(name: str) -> None:
    message = refused(STATEMENTS[name](), np.append(x, [32.0, 64.0]))
    assert "everything as it was before the statement" in message


def test_code_on_tensors_follows_the_same_rule() -> None:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[t] = s[t - 1] + x[t], t >= 1
        return s

    @cd
    def moving(x):
        m = m * 0.5 + x
        m[t] += m[t - 1]
        x[t] = m[t]

    with pytest.raises(tc.ShapeError, match=RECURS):
        f(tc.tensor(x))
    p = tc.tensor(x.copy())
    tc.compile(moving(p)).run()  # state is written before
    np.testing.assert_allclose(p.value, x + np.append(0, x[:-1]))


def test_rounds_of_a_loop_of_python_are_statements_one_after_the_other() -> None:
    @op
    def f(A, *, n):
        s: real[n, 4]
        s[0, j] = A[0, j]
        for i in range(1, n):
            s[i, j] = s[i - 1, j] * 2 + A[i, j]
        return s

    wanted = A.copy()
    for i in range(1, 4):
        wanted[i] += 2 * wanted[i - 1]
    np.testing.assert_allclose(f.interpret(A, n=4), wanted)


def test_data_dependent_reads_and_writes_are_exempt() -> None:
    @op
    def f(x, n):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[i] = s[n[i]] + x[i], i >= 1
        t: real[N]
        t[...] = 0.0
        t[n[i]] += x[i]
        t[i] = t[i + 1] + x[i]
        u: real[N]
        u[0] = x[0]
        u[n[i]] += u[i]
        return s, t, u

    n = np.array([0, 0, 1, 2, 3])
    check(f, x, n, wanted=([1, 3, 4, 8, 16], [5, 10, 20, 8, 0], [2, 0, 0, 0, 0]))
