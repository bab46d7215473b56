"""Statements of equal layers: their ranges are inferred once, and those that differ in anything else by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import ShapeError
from tcdsl.ranges import equal_sketches


@op
def standardized(x: Any) -> Any:
    centred[n, d] = x[n, d] - mean(x[n, c])
    y[n, d] = centred[n, d] / sqrt(mean(square(centred[n, c])) + 1e-5)
    return y


@op
def layer(x: Any, *, label: str, units: int) -> Any:
    return "w"[units] @ standardized(x) + "b"[units]


@op
def shifted(x: Any, *, by: float) -> Any:
    y[i] = x[i] + by
    return y


@op
def summed_below(x: Any) -> Any:
    y[i] = sum(x[i, j] for j in range(x.shape[1]) if j <= i)
    return y


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets whose ranges are inferred."""
    targets: list[str] = []
    original = equal_sketches.resolve

    def counted(sketch: Any, scope: Any) -> Any:
        targets.append(sketch.target.tensor)
        return original(sketch, scope)

    monkeypatch.setattr(equal_sketches, "resolve", counted)
    monkeypatch.setattr(equal_sketches, "_KNOWN", type(equal_sketches._KNOWN)(512))
    return targets


def test_ranges_of_equal_layers_are_inferred_once(resolved: list[str]) -> None:
    counts = []
    for depth in (4, 9):
        resolved.clear()
        equal_sketches._KNOWN.clear()
        x = tc.tensor(np.linspace(-1, 2, 35).reshape(5, 7), batch=1, label="x")
        for number in range(depth):
            x = layer(units=7, label=f"L{number}")(x)
        np.asarray(x.value)
        counts.append(len(resolved))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(
    "array",
    [
        np.linspace(0, 1, 12).reshape(3, 4),
        np.linspace(0, 1, 12).reshape(4, 3),
        np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3),
        np.zeros((0, 3)),
        np.ones((1, 1)),
    ],
)
def test_other_types_and_shapes_have_ranges_of_their_own(array: np.ndarray) -> None:
    # One after the other, so that what is known of the first ones is there.
    found = standardized(tc.tensor(array, label="x"))
    expected = array - array.mean(1, keepdims=True) if array.size else array
    deviation = np.sqrt((expected**2).mean(1, keepdims=True) + 1e-5) if array.size else 1
    assert found.value.dtype == array.dtype
    np.testing.assert_allclose(found.value, expected / deviation, rtol=1e-5, atol=1e-6)


def test_constants_that_python_takes_for_equal_are_told_apart() -> None:
    x = tc.tensor(np.array([-0.0, 1.0]), label="x")
    signs = [np.signbit(np.asarray(shifted(x, by=by).value))[0] for by in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


def test_conditions_on_extents_are_those_of_each_tensor() -> None:
    for rows, columns in ((3, 5), (5, 3), (4, 4), (1, 0)):
        array = np.arange(rows * columns, dtype=float).reshape(rows, columns)
        found = summed_below(tc.tensor(array, label="x"))
        np.testing.assert_array_equal(found.value, np.tril(array).sum(1))


def test_faults_are_told_each_time() -> None:
    @op
    def added(x: Any, y: Any) -> Any:
        z[i] = x[i] + y[i]
        return z

    three, four = tc.tensor(np.ones(3), label="three"), tc.tensor(np.ones(4), label="four")
    np.testing.assert_array_equal(added(three, three).value, 2 * np.ones(3))
    for one, other in ((three, four), (four, three), (three, four)):
        with pytest.raises(ShapeError, match=f"{one.label}.*{other.label}|{other.label}.*{one.label}"):
            added(one, other)
    np.testing.assert_array_equal(added(four, four).value, 2 * np.ones(4))
