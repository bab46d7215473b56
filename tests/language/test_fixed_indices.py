"""Indices without variables: out of range they are errors that say index, extent, place and what to write."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DataIndexError
from tests.language.outcomes import refusal

x = np.arange(10.0)
w = np.ones(3)


@op
def beyond(x):
    y[i] = x[i] + x[50]
    return y


@op
def at(x, n):
    y[i] = x[i] * x[n]
    return y


@op
def row(A, n):
    r[i] = A[n, i]
    return r


@cd
def put(y, n):
    y[n] = 5.0


@op
def put_in_new(x, n):
    y[i] = x[i]
    y[n] += sum(x[k])
    return y


@op
def product(x):
    t[()] += x[i] * x[12]
    return t


@op
def inside_a_reduction(x, w):
    y[i] = x[i] + sum(x[-11] * w[k])
    return y


@op
def in_a_condition(x):
    y[i] = x[i], x[50] > 0
    return y


@op
def chosen_by_data(x, b):
    y[i] = x[50] if b[i] > 3 else x[i]
    return y


def refused(f, *arguments) -> str:
    """The message of the interpreter, which a call gives as well."""
    with pytest.raises(tc.ShapeError) as found:
        f.interpret(*arguments)
    with pytest.raises(tc.ShapeError) as called:
        f(*arguments)
    assert str(called.value) == str(found.value)
    return str(found.value)


def test_the_message_says_index_extent_place_and_what_to_write() -> None:
    message = refused(beyond, x)
    assert "the index 50 is out of range of axis 0 of x, which has the extent 10\n    y[i] = x[i] + x[50]" in message
    assert "                  ^^^^^\nan index without variables skips nothing: write `get(x[50], 0.0)`" in message
    assert "`50 < x.shape[0]`" in message
    assert "write `get(A[n, i], 0.0)` to read 0 there" in refused(row, np.ones((3, 4)), 3)
    assert "the statement out, `n < y.shape[0]`, or make y larger" in refused(put_in_new, x, 10)


@pytest.mark.parametrize(
    ("f", "arguments", "fact"),
    [
        (at, (x, 10), "the index 10 is out of range of axis 0 of x, which has the extent 10"),
        (at, (x, -11), "the index -11 is out of range of axis 0 of x, which has the extent 10"),
        (row, (np.ones((3, 4)), 3), "the index 3 is out of range of axis 0 of A, which has the extent 3"),
        (put_in_new, (x, 10), "the index 10 is out of range of axis 0 of y, which has the extent 10"),
        (put_in_new, (x, -11), "the index -11 is out of range of axis 0 of y, which has the extent 10"),
        (product, (x,), "the index 12 is out of range of axis 0 of x, which has the extent 10"),
        (inside_a_reduction, (x, w), "the index -11 is out of range of axis 0 of x, which has the extent 10"),
        (in_a_condition, (x,), "the index 50 is out of range of axis 0 of x, which has the extent 10"),
        (chosen_by_data, (x, x), "the index 50 is out of range of axis 0 of x, which has the extent 10"),
    ],
)
def test_it_is_an_error_wherever_it_stands(f, arguments, fact: str) -> None:
    assert fact in refused(f, *arguments)


def test_code_derivatives_checks_and_graphs_say_the_same() -> None:
    y = x.copy()
    for n in (10, -11):
        with pytest.raises(tc.ShapeError, match=f"the index {n} is out of range of axis 0 of y"):
            put(y, n)
    np.testing.assert_array_equal(y, x)
    put(y, -10)
    assert y[0] == 5
    for derivative in (tc.grad(product), lambda x: tc.jvp(product, (x,), (x,)), lambda x: tc.vjp(product, x)):
        with pytest.raises(tc.ShapeError, match="the index 12 is out of range of axis 0 of x"):
            derivative(x)
    with tc.config(check="bounds"), pytest.raises(tc.ShapeError, match="the index 12 is out of range"):
        product(x)
    with pytest.raises(tc.ShapeError, match="the index 50 is out of range of axis 0"):
        beyond(tc.tensor(x))


def test_in_range_nothing_changes() -> None:
    np.testing.assert_array_equal(at(x, 9), x * 9)
    np.testing.assert_array_equal(at(x, -10), x * 0)
    np.testing.assert_array_equal(beyond(np.arange(51.0)), np.arange(51.0) + 50)
    np.testing.assert_array_equal(tc.grad(product)(np.arange(13.0)), [*[12.0] * 12, 66 + 24])


def test_conditions_brackets_and_branches_on_sizes_leave_statements_out() -> None:
    @op
    def condition(x):
        y[i] = x[50] * x[i], x.shape[0] > 50
        return y

    @op
    def bracket(x):
        (N,) = x.shape
        y[i] = x[i] * ((N > 50) * x[50])
        return y

    @op
    def branch(x, n):
        y[i] = x[n] if n < x.shape[0] else -1.0 * x[i]
        return y

    @op
    def branch_of_points(x, b):
        y[i] = x[50] if i > 30 and b[i] > 0 else x[i]
        return y

    @op
    def filled(x, n):
        y[i] = get(x[n], 7.0) + x[clamp(n)] * x[i]
        return y

    longer = np.arange(51.0)
    for f in (condition, bracket):
        np.testing.assert_array_equal(f.interpret(x), 0 * x)
        np.testing.assert_array_equal(f.interpret(longer), 50 * longer)
    np.testing.assert_array_equal(branch.interpret(x, 10), -x)
    np.testing.assert_array_equal(branch.interpret(x, 9), 9 + 0 * x)
    np.testing.assert_array_equal(branch_of_points.interpret(x, x), x)
    with pytest.raises(tc.ShapeError, match="the index 50 is out of range of axis 0 of x, which has the extent 40"):
        branch_of_points.interpret(np.ones(40), np.ones(40))
    np.testing.assert_array_equal(filled.interpret(x, 20), 7 + 9 * x)


def test_statements_without_points_read_and_write_nothing() -> None:
    @op
    def corner(x):
        y[i, j] = x[i] * x[j]
        y[20, i] = 7.0
        return y

    none = np.ones(0)
    assert beyond(none).shape == (0,)
    assert corner.interpret(none).shape == (0, 0)
    assert "the index 20 is out of range of axis 0 of y, which has the extent 10" in refused(corner, x)
    np.testing.assert_array_equal(inside_a_reduction.interpret(x, none), x)
    assert row.interpret(np.ones((3, 0)), 5).shape == (0,)


def test_a_statement_without_variables_has_a_point() -> None:
    @op
    def first(x):
        y[()] = x[0]
        return y

    assert "the index 0 is out of range of axis 0 of x, which has the extent 0" in refused(first, np.ones(0))


def test_many_arrays_read_at_fixed_places_are_no_harder_than_one() -> None:
    @op
    def f(x0, x1, x2, x3, x4, x5, x6, x7, w0, w1, w2, w3, w4, w5, w6, w7):
        y0[i] = x0[i] * w0[3] + w0[5]
        y1[i] = x1[i] * w1[3] + w1[5]
        y2[i] = x2[i] * w2[3] + w2[5]
        y3[i] = x3[i] * w3[3] + w3[5]
        y4[i] = x4[i] * w4[3] + w4[5]
        y5[i] = x5[i] * w5[3] + w5[5]
        y6[i] = x6[i] * w6[3] + w6[5]
        y7[i] = x7[i] * w7[3] + w7[5]
        return y0, y1, y2, y3, y4, y5, y6, y7

    arrays = [np.arange(4.0) + k for k in range(8)]
    weights = [np.arange(6.0) + k for k in range(8)]
    for k, found in enumerate(f.interpret(*arrays, *weights)):
        np.testing.assert_array_equal(found, arrays[k] * weights[k][3] + weights[k][5])
    with pytest.raises(tc.ShapeError, match="the index 5 is out of range of axis 0 of w7, which has the extent 5"):
        f.interpret(*arrays, *weights[:7], np.ones(5))


def test_a_size_that_is_bound_to_the_letter_says_where() -> None:
    @op
    def f(x):
        n, t = x.shape
        y[n, t] = x[n, t] * 2
        return y

    @op
    def annotated(x: real[n, m]):
        y[m] += x[n, m]
        return y

    @cd
    def code(y, x):
        y.bind_dims(k)
        y[k] += x[0, j]

    x = np.ones((2, 3))
    line = f.__wrapped__.__code__.co_firstlineno + 2
    message = refusal(tc.ShapeError, f, x)
    assert f"which has the extent n: `n` was bound by `n, t = x.shape` in line {line}" in message
    assert f"which has the extent t: `t` was bound by `n, t = x.shape` in line {line}" in message
    assert "use another letter for an index variable; an index without variables skips nothing" in message
    assert "`m` was bound by `x: real[n, m]` in line" in refusal(tc.ShapeError, annotated, x)
    assert "`k` was bound by `y.bind_dims(k)` in line" in refusal(tc.ShapeError, code, np.ones(3), x)


def test_numbers_that_are_meant_as_an_index_are_not_said_to_be_bound() -> None:
    @op
    def parameter(x, n):
        y[j] = x[n, j]
        return y

    @op
    def round_number(x):
        y = 0.0
        for k in range(x.shape[0] + 1):
            y[()] += x[k, j]
        return y

    x = np.ones((2, 3))
    for message in (refusal(tc.ShapeError, parameter, x, 20), refusal(tc.TcdslError, round_number, x)):
        assert "out of range" in message
        assert "was bound" not in message


def test_a_declared_target_that_was_written_before_loses_nothing() -> None:
    @op
    def f(x):
        y = output(1)
        y[i // 2] += x[i]
        y[1] += x[0]
        return y

    @op
    def conditioned(x):
        y = output(1)
        y[0] = x[0]
        y[1] += x[i], i < 2
        return y

    for function in (f, conditioned):
        message = refusal(tc.ShapeError, function, np.ones(2))
        assert "the index 1 is out of range of axis 0 of y, which has the extent 1" in message


def test_offsets_of_rounds_under_conditions_on_data_are_checked_where_they_hold() -> None:
    def hits(x, m):  # type: ignore[no-untyped-def]
        n = len(x)
        y = np.zeros(n)
        k = 0
        for i in range(n):
            k = k + 1 if x[i] > 0 else 0
            if k >= m:
                y[i - m + 1] = x[i]
        return y

    def ahead(x):  # type: ignore[no-untyped-def]
        y = np.zeros(len(x))
        for i in range(len(x)):
            if x[i] > 0:
                y[i + 1] = x[i]
        return y

    for x in (np.zeros(0), np.ones(1), np.array([1.0, 2, 0, 3, 4, 5, 6]), np.ones(6)):
        for m in (1, 2, 3):
            assert np.array_equal(op(hits)(x, m), hits(x, m))
    assert np.array_equal(op(ahead)(np.array([1.0, 0, 2, 0])), [0, 1, 0, 2])
    with pytest.raises(DataIndexError, match="4 is out of range"):
        op(ahead)(np.array([0.0, 0, 0, 1]))


def test_conditions_on_sizes_beside_those_on_data_keep_offsets_of_rounds_unchecked() -> None:
    def behind(x):  # type: ignore[no-untyped-def]
        y = np.zeros(len(x))
        for i in range(len(x)):
            if i > 0 and x[i] > 0:
                y[i - 1] = x[i]
        return y

    def other(x, y):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            if x[i] > 0:
                y[i] = x[i]
        return y

    x = np.array([3.0, 0, 2, 1])
    assert "check" not in str(op(behind).explain("loops", x))
    assert np.array_equal(op(behind)(x), behind(x))
    assert "check" not in str(op(other).explain("loops", x, x))
