"""isl stopped anywhere: who asks for too much gets an answer, or is told so."""

from __future__ import annotations

from typing import Any

import islpy as isl
import numpy as np
import pytest

from tcdsl import op
from tcdsl.errors import TcdslError
from tcdsl.ir import domain
from tcdsl.polyhedra import affine, limits

X = np.arange(60.0)


def windows() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        y: real[N]
        y[i] += x[i + k - 1] / 3, k < 3
        y[(i + 2) % N] = x[i]
        t[()] += y[i] * x[50] * x[j], j <= i
        return t

    return f


def forget_sets() -> None:
    for kept in (domain._SETS, affine._FUNCTIONS, affine._CONDITIONS):
        kept.clear()


def test_wherever_isl_stops_there_is_an_answer_or_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    told, right = [], (np.roll(X, 2) * X[50] * np.cumsum(X)).sum()
    few = [*range(1, 300, 6), *range(300, 2000, 50)]
    for most in (*few, 100_000):
        forget_sets()
        monkeypatch.setattr(limits, "_MOST_OPERATIONS", most)
        try:
            np.testing.assert_allclose(windows().interpret(X), right)
        except TcdslError as error:
            told.append(str(error))
    assert len(told) > 20
    assert all("this statement is too complicated to find its ranges" in each for each in told)


def test_texts_are_whole_where_isl_is_to_stop() -> None:
    points = isl.Set("[n] -> { [i, j] : 0 <= i < n and i < j < 2 n }")
    context = isl.DEFAULT_CONTEXT
    context.set_max_operations(1)
    try:
        assert domain.text_of(points) == "[n] -> { [i, j] : 0 <= i < n and i < j < 2n }"
        assert context.get_max_operations() == 1
    finally:
        context.set_max_operations(0)
