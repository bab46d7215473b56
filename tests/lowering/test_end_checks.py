"""Positions are checked at both ends of a loop, or ahead of it; what is out of range is found where it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import TcdslError

rng = np.random.default_rng(0)


@op
def windows(x, first, w):
    y[i] += x[first[i] + k] * w[k]
    return y


@op
def of_ranges(x, ends, w):
    y = np.zeros(len(ends) - 1)
    for i in range(len(ends) - 1):
        s = w[0]
        for k in range(ends[i], ends[i + 1]):
            s += x[k] * x[k]
        y[i] = s
    return y


@op
def backwards(x, first, w):
    y = np.zeros(len(first))
    for i in range(len(first)):
        p = first[i]
        for k in range(len(w)):
            y[i] = 0.5 * y[i] + x[p - k] * x[p]
    return y


@op
def in_rows(x, first, w):
    # Rows as in a transform, whose length is data.
    y = np.zeros(len(x))
    m = len(w)
    for i in range(len(first)):
        j = first[i] // 3
        while m > 0:
            for k in range(m):
                y[k + j * m] += x[k + 2 * j * m - m * j]
            m = m // 2
        m = len(w)
    return y


@op
def in_steps(x, first, w):
    # Every so many cells, as in a sieve, forwards and backwards.
    y, n = np.zeros(len(first)), len(x)
    for i in range(len(first)):
        step = first[i] - 3
        s = w[0]
        for k in range(len(w)):
            s = 0.5 * s + x[step * k] * x[n - 1 - step * k]
        y[i] = s
    return y


def arrays(cells: int, window: int) -> list[np.ndarray]:
    return [rng.uniform(0.5, 1.5, 12), rng.integers(3, 9, cells), rng.uniform(0.5, 1.5, window)]


@pytest.mark.parametrize("function", [windows, of_ranges, backwards, in_rows, in_steps])
def test_positions_are_checked_at_the_ends(function: Any) -> None:
    for cells, window in ((4, 3), (1, 1), (2, 0), (0, 3)):
        given = arrays(cells + (function is of_ranges), max(window, int(function in (of_ranges, in_steps))))
        np.testing.assert_allclose(function(*given), function.interpret(*given), rtol=1e-12)
    given = arrays(4, 3)
    text = str(function.explain("loops", *given))
    with tc.config(optimize="-end_checks"):
        plain = str(function.explain("loops", *given))
    # Beside the loop as it was there is one without checks.
    assert text.count("else:") > plain.count("else:")
    assert text.count("    check ") == plain.count("    check ")


@pytest.mark.parametrize("function", [windows, of_ranges, backwards, in_rows, in_steps])
@pytest.mark.parametrize(
    "first",
    [
        [3, 99, -7, 4],
        [3, -2, 99, 4],
        [-(2**63), 2**63 - 1, 3, 3],
        [3, 4, 11, 13],
        [2**62, 2**62 + 3, 3, 4],
    ],
)
def test_the_first_fault_is_told(function: Any, first: list[int]) -> None:
    x, _, w = arrays(4, 3)
    given = x, np.array(first), w
    faults = []
    for optimize in (True, "-end_checks"):
        with tc.config(optimize=optimize), pytest.raises(TcdslError) as caught:
            function(*given)
        faults.append(str(caught.value))
    with pytest.raises(TcdslError) as caught:
        function.interpret(*given)
    assert faults == [str(caught.value)] * 2


@op
def twice(x, first):
    y = 0.0
    for k in range(len(first)):
        y += x[2 * first[k]]
    return y


def test_what_data_say_of_each_step_goes_by_no_steps() -> None:
    x = rng.uniform(0.5, 1.5, 12)
    assert twice(x, np.array([1, 5, 0])) == x[2] + x[10] + x[0]
    for wrong in (6, 2**62, 2**63 - 6):
        with pytest.raises(IndexError, match=f"index {2 * wrong} is out of range"):
            twice(x, np.array([1, wrong, 0]))


@op
def segments(x, p, m):
    y: real[m]
    y[p[i]] += x[i]
    return y


def test_sums_where_sorted_data_say_go_on_in_parts() -> None:
    rng = np.random.default_rng(1)
    for n, m in ((0, 3), (1, 3), (63, 2), (70, 2), (5000, 7), (9001, 200)):
        x = rng.integers(0, 100, n).astype(float)
        for p in (rng.integers(0, m, n), np.sort(rng.integers(0, m, n)), np.sort(rng.integers(0, m, n).astype("i4"))):
            np.testing.assert_array_equal(segments(x, p, m), np.bincount(p, x, m))
    text = segments.explain("loops", x, p, m)
    assert "quarter" in text
    with tc.config(optimize="-checks_ahead"):
        assert "quarter" not in segments.explain("loops", x, p, m)
    for place, wrong in ((4321, -1), (4500, m), (8999, 2**62)):
        p = np.sort(rng.integers(0, m, n))
        p[place], p[place + 1] = wrong, m + 5
        with pytest.raises(IndexError, match=rf"(?s)index {wrong} is out of range.*i = {place}"):
            segments(x, p, m)
