"""Annotations that are Python's own mean nothing to tcdsl: functions may be annotated as mypy and pyright ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed


def test_annotations_of_other_types_are_ordinary_python() -> None:
    @op
    def f(x: NDArray[np.float64], w: np.ndarray[Any, Any], *, shifts: tuple[int, ...] = (0, 1)) -> NDArray[np.float64]:
        parts: list[int] = []
        parts.extend(int(shift) for shift in shifts)
        y[i] = x[i] * w[i] * len(parts)
        return y

    assert_gives(f, np.arange(3.0), np.ones(3), wanted=[0.0, 2.0, 4.0])


def test_sentences_and_strings_of_other_types_are_ordinary_python() -> None:
    @op
    def f(x: "a signal, real or not [any length]", n: "list[int]"):  # noqa: UP037
        y[i] = x[i] * n
        return y

    assert_gives(f, np.arange(3.0), 2.0, wanted=[0.0, 2.0, 4.0])


def test_an_annotated_assignment_is_an_assignment() -> None:
    @op
    def labelled(x):
        twice: NDArray[np.float64] = x * 2
        count: int
        count = 3
        z[i]: float = twice[i] * count
        return z, twice

    @cd
    def stored(p, g):
        p: NDArray[np.float64] = p - g
        if p.shape:
            q: float = 2.0
            p *= q

    x = np.arange(3.0)
    assert_gives(labelled, x, wanted=(6 * x, 2 * x))
    assert "twice[" in labelled.explain("ir", x)
    (p,) = changed(stored, x, np.ones(3))
    np.testing.assert_array_equal(p, [-2.0, 0.0, 2.0])


def test_annotations_that_cannot_be_read_are_refused_at_every_call() -> None:
    @op
    def opened(A: "real[N, "):
        return A

    @op
    def of_python(A: int[N]):
        total: float[N]
        total[i] = A[i]
        return total

    @op
    def single(A: real[N], p: "int64[]"):
        return A[p]

    for _ in range(2):
        with pytest.raises(tc.TcdslError, match="the annotation 'real\\[N, ' cannot be read"):
            opened(np.ones((2, 2)))
        with pytest.raises(tc.TcdslError) as refusal:
            of_python(np.ones(2, int))
        assert "`int` is no element type" in str(refusal.value)
        assert "write `int64[N]`" in str(refusal.value)
        assert "write `real[N]`" in str(refusal.value)
    assert single(np.arange(3.0), np.array(2)) == 2


def test_functions_defined_inside_keep_their_annotations() -> None:
    @op
    def f(x: real[N]):
        def scaled(value, factor: list[int]):
            kept: list[int] = factor
            return value * kept[0]

        y[i] = x[i]
        return scaled(y, [4])

    assert_gives(f, np.ones(2), wanted=[4.0, 4.0])
