"""Calls of ``tc.jvp`` and ``tc.hvp`` that are like earlier ones, and those that are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import DataIndexError, DtypeError, ShapeError
from tcdsl.runtime.transforms.derivations import DerivativeStaging

FACTOR = 2.0


@op
def energy(x, w):
    e[()] += FACTOR * x[i] * x[i] * w[i]
    return e


@op
def chosen(x, at):
    y[i] = x[at[i]] * x[at[i]]
    return y


def numbers(*shape: int) -> np.ndarray:
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


def test_other_shapes_types_and_surroundings_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for factor in (2.0, 3.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        for size in (3, 0, 1, 5, 3):
            for dtype in (np.float64, np.float32):
                x, w, dx, dw = (numbers(size).astype(dtype) + k for k in range(4))
                value, slope = tc.jvp(energy, (x, w), (dx, dw))
                assert value == factor * (x * x * w).sum()
                assert slope == pytest.approx(factor * (2 * x * w * dx + x * x * dw).sum(), rel=1e-6)
                products = tc.hvp(energy, (x, w), (dx, dw))
                wanted = factor * (2 * w * dx + 2 * x * dw), factor * 2 * x * dx
                for found, right in zip(products, wanted, strict=True):
                    np.testing.assert_allclose(found, right, rtol=1e-6)
                    assert found.dtype == dtype


def test_what_does_not_fit_is_refused_after_calls_that_did() -> None:
    x = numbers(4)
    for _ in range(3):
        tc.jvp(energy, (x, x), (x, x))
        tc.hvp(energy, (x, x), (x, x))
    for derivative in (tc.jvp, tc.hvp):
        with pytest.raises(ShapeError, match="shape"):
            derivative(energy, (x, x), (x, x[:3]))
        with pytest.raises(ShapeError):
            derivative(energy, (x, x[:3]), (x, x[:3]))
        with pytest.raises(DtypeError):
            derivative(energy, (x, x), (x, x.astype(complex)))
    assert tc.jvp(energy, (x, x), (x, None))[1] == tc.jvp(energy, (x, x), (x, 0 * x))[1]
    np.testing.assert_array_equal(
        tc.jvp(energy, (x, x), (x.astype(np.float32), x))[1], tc.jvp(energy, (x, x), (x, x))[1]
    )
    strided = np.repeat(x, 2)[::2]
    assert tc.jvp(energy, (strided, x), (x, strided)) == tc.jvp(energy, (x, x), (x, x))


def test_faults_of_the_data_are_those_of_the_function() -> None:
    def at(places: Any) -> Any:
        return tc.jvp(lambda x: chosen(x, places), (numbers(4),), (numbers(4),))

    np.testing.assert_array_equal(at(np.array([1, 3]))[1], [8, 32])
    with pytest.raises(DataIndexError, match="index 4 is out of range"):
        at(np.array([1, 4]))


def test_a_repeated_call_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers(4)
    first = tc.jvp(energy, (x, x), (x, x)), tc.hvp(energy, (x, x), (x, x))
    monkeypatch.setattr(DerivativeStaging, "entry", None)
    again = tc.jvp(energy, (x, x), (x, x)), tc.hvp(energy, (x, x), (x, x))
    np.testing.assert_array_equal(
        np.hstack([np.ravel(part) for each in again for part in each]),
        np.hstack([np.ravel(part) for each in first for part in each]),
    )
