"""Recurrences through slices, views and products of matrices: none is silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import refusal
from tests.language.test_recurrences import A, check, x

PARTS: dict[str, Callable[[], Any]] = {}


def part(function: Callable[[], Any]) -> Callable[[], Any]:
    PARTS[function.__name__] = function
    return function


@part
def shifted_by_slices() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s = output(N)
        s[0] = x[0]
        s[1:] = s[:-1] * 2 + x[1:]
        return s

    return f


@part
def added_by_slices() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[1:] += s[:-1]
        return s

    return f


@part
def in_reverse_order() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[:1] = x[:1]
        s[:] = s[::-1] + x
        return s

    return f


@part
def through_a_product_of_matrices() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        h: real[N, N]
        h[0] = x
        h[1:] = tanh(h[:-1] @ h[:, :])
        return h

    return f


@part
def of_a_local_of_code() -> Any:
    @cd
    def f(x):
        (N,) = x.shape
        s = output(N)
        s[0] = x[0]
        s[1:] += s[:-1]
        x[i] = s[i]

    return f


@part
def into_a_view() -> Any:
    @cd
    def f(x):
        (N,) = x.shape
        s = output(N)
        s[0] = x[0]
        w = s[1:]
        w += s[:-1]
        x[i] = s[i]

    return f


@part
def by_an_index_list_on_a_view() -> Any:
    @cd
    def f(x):
        (N,) = x.shape
        s = output(N)
        s[0] = x[0]
        w = s[1:]
        w[i] = w[i - 1] + x[i + 1]
        x[i] = s[i]

    return f


@pytest.mark.parametrize("name", PARTS)
def test_no_recurrence_through_parts_is_silent(name: str) -> None:
    with pytest.raises(tc.ShapeError, match="that its other cells write and nothing has written before"):
        PARTS[name]().interpret(x)


def test_the_message_about_a_part_shows_the_read_and_the_loop_to_write() -> None:
    @op
    def f(x):
        N, M = x.shape
        s = output(N, M)
        s[-1] = x[-1]
        s[:-1] = s[1:] * 2 + x[:-1]
        return s

    message = refusal(tc.ShapeError, f, A)
    assert "the statement reads cells of `s` that its other cells write and nothing has written before" in message
    assert "    s[:-1] = s[1:] * 2 + x[:-1]\n             ^^^^^\n" in message
    assert "    for i in range(N - 2, -1, -1):\n        s[i, :] = ...\nor write its cells first" in message

    @op
    def looped(x, *, n):
        M = x.shape[1]
        s = output(n, M)
        s[-1] = x[-1]
        for i in range(n - 2, -1, -1):
            s[i, :] = s[i + 1, :] * 2 + x[i, :]
        return s

    wanted = A.copy()
    for i in (2, 1, 0):
        wanted[i] += 2 * wanted[i + 1]
    check(looped, A, n=4, wanted=wanted)


def test_parts_whose_cells_are_written_are_read_as_they_were() -> None:
    @op
    def f(x):
        (N,) = x.shape
        s = output(N)
        s[...] = 0.0
        s[0] = x[0]
        s[1:] = s[:-1] * 2 + x[1:]
        t = x * 1
        t[1:] += t[:-1]
        half: real[N]
        half[0:2] = x[0:2]
        half[2:4] = half[0:2] + x[2:4]
        comb = output(N)
        comb[::2] = x[::2]
        comb[1::2] = comb[:-1:2]
        return s, t, half, comb

    check(f, x[:4], wanted=([1, 4, 4, 8], [1, 3, 6, 12], [1, 2, 5, 10], [1, 1, 4, 4]))

    @cd
    def in_place(x):
        x[1:] = x[:-1] + x[1:]
        w = x[1:]
        w[i] += w[i - 1]

    np.testing.assert_array_equal(in_place.interpret(x)[0], [1, 3, 9, 18, 36])


def test_a_sum_over_what_data_choose_writes_its_cells() -> None:
    @op
    def f(x, A):
        positive[j] += A[i, j], A[i, j] > 2
        positive[j] = positive[j] - positive[j - 1]
        large[i] += x[i] * (x[i] > 2)
        large[i] = large[i] - large[i - 1]
        return positive, large

    sums = np.where(A > 2, A, 0).sum(0)
    check(f, x, A, wanted=([sums[0], *np.diff(sums)], [0, 0, 4, 4, 8]))
