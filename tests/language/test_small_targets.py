"""A tensor that its first statement has made too small for a later one is an error, never a silent loss of points."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import refusal

x = np.array([1.0, 2.0, 4.0, 8.0])
A = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 9.0]])
LOST = "but its first statement"


def check(f: Any, *arguments: Any, wanted: Any) -> None:
    found = f.interpret(*arguments)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for part, value in pairs:
        np.testing.assert_allclose(part, value)


def test_the_message_says_which_extent_who_decided_it_and_what_to_write() -> None:
    @op
    def f(x):
        x.bind_dims(N)
        y[2 * i] = x[i]
        y[2 * i + 1] += x[i]
        return y

    message = refusal(tc.ShapeError, f, x)
    assert (
        "`2 * i + 1` on axis 0 of y reaches position 7, but its first statement, `y[2 * i] = x[i]`, has given y the "
        "extent 7 there\n    y[2 * i + 1] += x[i]\n      ^^^^^^^^^\n"
    ) in message
    assert "before that statement, with all its cells, as in `y = output(2 * N)`, or leave points out" in message

    @op
    def declared(x):
        (N,) = x.shape
        y = output(2 * N)
        y[2 * i] = x[i]
        y[2 * i + 1] += x[i]
        return y

    check(declared, x, wanted=np.repeat(x, 2))
    assert f.interpret(x[:0]).shape == (0,)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {}


def refused(advice: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def kept(function: Callable[[], Any]) -> Callable[[], Any]:
        REFUSED[function.__name__] = function, advice
        return function

    return kept


@refused("y = output(2 * x.shape[0])")
def in_a_logic() -> Any:
    @op
    def f(x):
        y["i=>2*i"] += x
        y["i=>2*i+1"] += x
        return y

    return f


@refused("y = output(x.shape[0], 2)")
def at_a_fixed_position() -> Any:
    @op
    def f(x):
        y[i, 0] = x[i]
        y[i, 1] = 2 * x[i]
        return y

    return f


@refused("y = output(x.shape[0] + 1)")
def shifted() -> Any:
    @op
    def f(x):
        y[i] = x[i]
        y[i + 1] += x[i]
        return y

    return f


@refused("y = output(2 * x.shape[0] - 1)")
def in_a_convolution() -> Any:
    @op
    def f(x):
        y[i] = x[i]
        y[i + k] += x[i] * x[k]
        return y

    return f


@refused("y = output(2 * x.shape[0])")
def by_the_reset_form_after_a_reset() -> Any:
    @op
    def f(x):
        y[2 * i] = sum(x[i] * x[k])
        y[2 * i + 1] = sum(x[i] * x[k])
        return y

    return f


@refused("y = output(x.shape[0] + 2)")
def after_other_statements() -> Any:
    @op
    def f(x):
        y[i] = x[i]
        y[...] = 2 * y
        y[1:] += x[1:]
        y[i + 2] = x[i], x[i] > 1
        return y

    return f


@refused("y = output(x.shape[0])")
def of_one_cell() -> Any:
    @op
    def f(x):
        y[0] = x[0]
        y[i + 1] = y[i] + x[i + 1]
        return y

    return f


@refused("y = output(2, x.shape[0])")
def of_one_cell_on_two_axes() -> Any:
    @op
    def f(x):
        y[0, 0] += x[i]
        y[1, j] += x[j]
        return y

    return f


@refused("y = output(x.shape[0] + 1, x.shape[0])")
def in_one_column() -> Any:
    @op
    def f(x):
        y[i, j] = x[i] * x[j]
        y[i + 1, 0] += x[i]
        return y

    return f


@refused("y = output(2 * x.shape[0])")
def in_place() -> Any:
    @cd
    def f(x):
        y[2 * i] = x[i]
        y[2 * i + 1] += x[i]
        x[i] = y[2 * i + 1]

    return f


@pytest.mark.parametrize("name", REFUSED)
def test_no_point_is_lost_silently(name: str) -> None:
    function, advice = REFUSED[name]
    with pytest.raises(tc.ShapeError, match=re.escape(LOST)) as caught:
        function().interpret(x)
    assert f"as in `{advice}`, or" in str(caught.value)


def test_an_axis_beside_one_that_data_chooses_loses_nothing() -> None:
    @op
    def f(x, at):
        y[i, j] = x[i] * x[j]
        y[at[i], j + 1] += x[i] * x[j]
        return y

    advice = "as in `y = output(x.shape[0], x.shape[0] + 1)`, or"
    assert advice in refusal(tc.ShapeError, f, x, np.zeros(len(x), int))


def test_what_narrows_and_what_is_stated_leaves_points_out() -> None:
    @op
    def f(x, A):
        (N,) = x.shape
        interior[i] = x[i]
        interior[i] += x[i - 1]
        interior[i] += x[i + 1]
        own[i] = x[i]
        own[i + 1] += own[i]
        low[i] = x[i]
        low[i - 1] += x[i]
        mirrored[i] = x[i]
        mirrored[N - 1 - i] += x[i]
        stated[2 * i] = x[i]
        stated[2 * i + 1] += x[i], i < N
        filtered[2 * i] = x[i]
        filtered[2 * i + 1] += x[i], i + 1 < N
        small[j] = A[0, j], j < 2
        small[j] += x[j], j < N
        return interior, own, low, mirrored, stated, filtered, small

    shifted, before = np.append(x[1:], 0), np.insert(x[:-1], 0, 0)
    comb = np.repeat(x, 2)[:-1]
    wanted = (x + shifted + before, x + before, x + shifted, x + x[::-1], comb, comb, A[0, :2] + x[:2])
    check(f, x, A, wanted=wanted)


def test_declared_targets_arguments_and_whole_arrays_leave_points_out() -> None:
    @op
    def f(x, y):
        declared: real[4]
        declared[i] = x[i]
        declared[i + 1] += x[i]
        y[i + 1] += x[i]
        whole = x * 1
        whole[i + 1] += x[i]
        return declared, y, whole

    wanted = x + np.insert(x[:-1], 0, 0)
    check(f, x, x, wanted=(wanted, wanted, wanted))


def test_the_result_of_another_function_is_an_array_like_any_other() -> None:
    @op
    def inner(x):
        y[i] = x[i]
        return y

    @op
    def outer(x):
        y = inner(x)
        y[i + 1] += x[i]
        return y

    check(outer, x, wanted=x + np.insert(x[:-1], 0, 0))


def test_offsets_that_are_numbers_of_the_call() -> None:
    @op
    def f(x, *, n):
        y[i] = x[i]
        y[i + n] += x[i]
        return y

    np.testing.assert_array_equal(f.interpret(x, n=0), 2 * x)
    np.testing.assert_array_equal(f.interpret(x, n=-1), x + np.append(x[1:], 0))
    with pytest.raises(tc.ShapeError, match=re.escape("as in `y = output(n + x.shape[0])`, or leave")):
        f.interpret(x, n=2)


def test_where_it_depends_on_sizes_it_is_checked_at_the_call() -> None:
    @op
    def f(a, x):
        y[k] = a[k]
        y[i // 2] += x[i]
        return y

    check(f, x[:2], x, wanted=[4, 14])
    message = refusal(tc.ShapeError, f, x[:1], x)
    assert "`i // 2` on axis 0 of y reaches position 1, but its first statement, `y[k] = a[k]`, has given y" in message


def test_a_target_whose_stated_points_have_no_cells_is_to_be_declared() -> None:
    @op
    def f(x):
        (N,) = x.shape
        s[0] = x[0]
        s[i] = s[i - 1] + x[i], 1 <= i < N
        return s

    message = refusal(tc.ShapeError, f, x)
    assert "the statement can write no cell of `s`, whatever the sizes are" in message
    assert "`s` has the shape [1], which the first statement on it has given it" in message
    assert "as in `s = output(N)`" in message

    @op
    def nothing_to_do(x, y):
        s[i] = x[i]
        s[i] += x[i], i < 0
        y[i + 5] += x[i]
        t: real[1]
        t[0] = x[0]
        t[i + 1] = x[i]
        return s, y, t

    check(nothing_to_do, x, x, wanted=(x, x, [1]))
