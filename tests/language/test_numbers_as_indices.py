"""Numbers of the call in indices of whole arrays, and as parts of products and quotients: one program for many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.running_programs import check, program

X = np.arange(1.0, 41.0)


def python(text: str, **names: Any) -> Any:
    """What Python gives for ``text``."""
    exec(f"found = {text}", names)
    return names["found"]


def programs(function: Any) -> int:
    """How many programs it was staged as."""
    found: int = function.cache_info().programs
    return found


@pytest.mark.parametrize("index", ["n - 1 - t", "(n - t) // 2", "n * t % 7", "(t + n) % n"])
@pytest.mark.parametrize("spelling", ["s = s + x[{}]", "q: real[1]\n    q[0] = x[{}]\n    s = s + q[0]"])
def test_rounds_read_where_numbers_say(index: str, spelling: str) -> None:
    f = program(f"s = 0.0\nfor t in range(n):\n    {spelling.format(index)}\nreturn s", "x, n")
    for n in (3, 30, 1, 0):
        expected = sum(X[python(index, t=t, n=n)] for t in range(n))
        assert np.isclose(f(X, n), expected)
    assert programs(f) == 1


@pytest.mark.parametrize("index", ["n", "n - m", "n * m - 1", "n // 3", "n % 5 - m", "2 * n - m"])
def test_numbers_alone_count_from_the_end_where_they_are_negative(index: str) -> None:
    whole = program(f"return x[{index}]", "x, n, m")
    cells = program(f"y: real[1]\ny[0] = x[{index}]\nreturn y", "x, n, m")
    for n, m in ((5, 2), (2, 5), (-3, 2), (2, -3), (0, 0), (-4, -3), (18, 2)):
        expected = X[python(index, n=n, m=m)]
        assert whole(X, n, m) == expected
        assert cells(X, n, m)[0] == expected
    assert programs(whole) <= 6


@pytest.mark.parametrize("ends", ["n:", ":n", "n - m:", "m:n", "-n:", "n // 2 : n"])
def test_ends_of_slices_are_numbers_of_the_call(ends: str) -> None:
    f = program(f"return x[{ends}] * 2.0", "x, n, m")
    for n, m in ((20, 18), (25, 17), (18, 30), (3, 1), (-5, 2), (50, 20)):
        np.testing.assert_array_equal(f(X, n, m), 2.0 * python(f"X[{ends}]", X=X, n=n, m=m))


def test_slices_in_rounds_that_a_number_counts() -> None:
    f = program("s = 0.0\nfor t in range(n):\n    s = s + x[n - 1 - t : n].sum()\nreturn s", "x, n")
    for n in (30, 20, 3):
        assert np.isclose(f(X, n), sum(X[n - 1 - t : n].sum() for t in range(n)))
    assert programs(f) == 2


def test_what_a_condition_says_of_numbers_is_known_of_indices() -> None:
    f = program("s = 0.0\nif k > 0 and n >= k:\n    s = s + x[n // k] + x[n - k]\nreturn s", "x, n, k")
    check(f, (X, 5, 2), X[2] + X[3])
    check(f, (X, 0, 0), 0.0)
    check(f, (X, 1, 2), 0.0)


@pytest.mark.parametrize("cell", ["x[n // k]", "x[t // k]", "x[t % k]", "x[i // k]", "x[i % k] * (i < N // k)"])
@pytest.mark.parametrize("count", ["n", "N"])
def test_numbers_that_are_0_divide_only_where_a_round_runs(cell: str, count: str) -> None:
    f = program(f"y: real[N]\nfor t in range({count}):\n    y[i] = {cell}\nreturn y", "x: 'real[N]', n, k")
    np.testing.assert_array_equal(f(X if count == "n" else X[:0], 0, 0), np.zeros(40 if count == "n" else 0))
    with pytest.raises(tc.ShapeError, match=r"by 0|divides by zero"):
        f(X, 3, 0)
    assert f(X, 3, 1).shape == (40,)


def test_data_at_numbers_are_data() -> None:
    f = program("for t in range(n):\n    x[places[n % 7]] += 1.0\nreturn x[places[n % 7 - 1]]", "x, places, n")
    places = np.array([0, 2, 2, 1, 0, 0, 1])
    assert f(np.zeros(3), places, 4) == 0.0
    assert f(np.zeros(3), places, 9) == 9.0
