"""Conditions and Iverson's brackets."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import DtypeError
from tcdsl.ir.expressions import Apply, Constant, Reduction, walk
from tests.frontend.statements.small_function import run, sketch

RANDOM = np.random.default_rng(6)
X = RANDOM.normal(size=6)
A = RANDOM.normal(size=(6, 6))
MASK = np.array([True, False, True, True, False, True])


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("O[i] += x[k], k <= i, i < 6", np.cumsum(X)),
        ("O[i] += x[k] * (k <= i), i < 6", np.cumsum(X)),
        ("O[i] -= (k <= i) * x[k], i < 6", -np.cumsum(X)),
        ("O[i] += -(x[k] * -1 * (k <= i)), i < 6", np.cumsum(X)),
        ("O[i] += (0 <= i - k < 2) * x[k], i < 6", X + np.r_[0, X[:-1]]),
        ("O[i] = x[i] * m[i]", X * MASK),
        ("O[i] += x[i] * m[i] * 2", 2 * X * MASK),
        ("O[()] += (x[i] > 0) * (i < 4)", (X[:4] > 0).sum()),
        ("O[()] += (i < 4) * (j <= i), j < 6, i < 6", 10),
        ("O[i] = (x[i] > 0) * (i < 4), i < 6", (X > 0) & (np.arange(6) < 4)),
        ("O[i] += sum(x[k] * (k <= i)), i < 6", np.cumsum(X)),
        ("O[i] = mean(x[k] * (k < 3)), i < 1", [X[:3].sum() / 6]),
        ("O[i] *= x[k] * (k <= i), i < 6", np.r_[np.zeros(5), X.prod()]),
        ("O[i] *= x[k], k <= i, i < 6", np.cumprod(X)),
        ("O[i] >>= x[k], k <= i, i < 6", np.maximum.accumulate(X)),
        ("O[()] += x[i], x[i] > 0, m[i]", X[(X > 0) & MASK].sum()),
        ("O[()] += x[i], (x[i] > 0) & m[i]", X[(X > 0) & MASK].sum()),
        ("O[()] += x[i], x[i] > 0 and m[i] or i == 1", X[((X > 0) & MASK) | (np.arange(6) == 1)].sum()),
        ("O[i] = x[i], m[i]", X * MASK),
        ("O[i] = 3 * (x[i] > 0) + m[i]", 3 * (X > 0) + MASK),
        ("O[i] = -int64(x[i] > 0)", -(X > 0).astype(int)),
        ("O[i] += x[i] if i > 2 else 0.0", np.r_[np.zeros(3), X[3:]]),
    ],
)
def test_conditions_and_brackets(source: str, wanted: np.ndarray) -> None:
    found = run(source, x=X, m=MASK)
    np.testing.assert_allclose(found, wanted)


def test_nothing_behind_a_false_bracket_is_evaluated() -> None:
    bad = np.array([np.nan, 2.0, np.inf])
    np.testing.assert_array_equal(run("O[i] = bad[i] * (i == 1) + 0 * i, i < 3", bad=bad), [0, 2, 0])
    # The bracket guards all factors, those before it too, however they are grouped.
    source = "O[i] = x[i - 1] * ((i > 0) * x[i]) * 2.0, i < 6"
    np.testing.assert_allclose(run(source, x=X), np.r_[0, 2 * X[:-1] * X[1:]])
    np.testing.assert_allclose(
        run("O[i] = (i > 0) * (x[i - 1] > 0) * x[i], i < 6", x=X), np.r_[0, (X[:-1] > 0) * X[1:]]
    )


def test_brackets_are_filters_in_sums_and_branches_elsewhere() -> None:
    found = sketch("O[i] += x[k] * (k <= i) * m[k], i < 6", x=X, m=MASK)
    assert len(found.conditions) == 1
    assert len(found.filters) == 2
    assert not any(isinstance(node, Apply) for node in walk(found.value))
    for source in ("O[i] *= x[i] * (i < 3)", "O[i] = x[i] * (i < 3)", "O[i] >>= x[i] * (i < 3)"):
        other = sketch(source, x=X)
        assert not other.filters
        assert isinstance(other.value, Apply)
        assert other.value.primitive == "where"
    nested = sketch("O[i] = 1 + sum(A[i, k] * (k <= i))", A=A)
    (reduction,) = (node for node in walk(nested.value) if isinstance(node, Reduction))
    assert len(reduction.filters) == 1
    kept = sketch("O[i] = 1 + mean(A[i, k] * (k <= i))", A=A)
    (reduction,) = (node for node in walk(kept.value) if isinstance(node, Reduction))
    assert not reduction.filters


def test_a_bracket_is_no_explicit_range() -> None:
    # As a condition `i < 3` is the range of i; as a bracket it only filters, and O keeps the extent of x.
    assert run("O[i] += x[i], i < 3", x=X).shape == (3,)
    assert run("O[i] += x[i] * (i < 3)", x=X).shape == (6,)


def test_a_count_has_affine_filters() -> None:
    found = sketch("O[()] += (i <= k) * (k < 4) * (x[i] > 0), k < 6", x=X)
    assert len(found.filters) == 2
    whole = sketch("O[()] += (i <= k) * (k < 4), i < 6, k < 6", x=X)
    assert whole.value == Constant(1, "int64")


def test_configuration_decides_while_staging() -> None:
    given = {"bias": None, "scale": False, "count": 3}
    source = "O[i] = (x[i] + bias[i] if bias is not None else x[i]) * (2 if count > 2 else missing)"
    np.testing.assert_allclose(run(source, x=X, known=given), 2 * X)
    found = run("O[i] = x[i] if scale and missing[i] > 0 else (scale or x[i] > 0)", x=X, known=given)
    np.testing.assert_array_equal(found, X > 0)
    np.testing.assert_array_equal(run("O[i] = x[i] > 0 and not scale", x=X, known=given), X > 0)
    np.testing.assert_array_equal(run("O[i] = x[i] > 0 and scale", x=X, known=given), np.inf < X)
    np.testing.assert_allclose(run("O[i] = x[i], count > 2", x=X, known=given), X)


def test_conditions_are_truth_values() -> None:
    with pytest.raises(DtypeError, match="a condition of type float64") as caught:
        run("O[i] = x[i], x[i]", x=X)
    assert "x[i] != 0" in str(caught.value)
    with pytest.raises(DtypeError, match="a condition of type float64"):
        run("O[()] = sum(x[i] for i in range(3) if x[i])", x=X)
