"""Annotations that are Python's own mean nothing to tcdsl: functions may be annotated as mypy and pyright ask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def test_functions_defined_inside_keep_their_annotations() -> None:
    @op
    def f(x: real[N]):
        def scaled(value, factor: list[int]):
            kept: list[int] = factor
            return value * kept[0]

        y[i] = x[i]
        return scaled(y, [4])

    assert_gives(f, np.ones(2), wanted=[4.0, 4.0])
