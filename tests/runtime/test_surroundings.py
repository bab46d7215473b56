"""What counts as a change of a function's surroundings, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

scale = 2.0
r = 10.0


@op
def shifted_by_globals(A: Any) -> Any:
    B[i] = scale * A[i] + r
    return B


@op
def windowed(x: Any) -> Any:
    y[i] += x[i + k], k < 1
    return y


def test_index_letters_of_the_module_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    windowed(np.ones(3))
    staged = windowed.cache_info().misses
    for number, name in enumerate(["i", "k", "y", "i"]):
        monkeypatch.setitem(globals(), name, number)
        np.testing.assert_array_equal(windowed(np.arange(3.0)), np.arange(3.0))
    assert windowed.cache_info().misses == staged


def test_a_letter_that_is_no_index_of_the_statement_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_array_equal(shifted_by_globals(np.ones(2)), [12.0, 12.0])
    monkeypatch.setitem(globals(), "r", 20.0)
    monkeypatch.setitem(globals(), "scale", 3.0)
    np.testing.assert_array_equal(shifted_by_globals(np.ones(2)), [23.0, 23.0])


def test_arrays_in_a_list_are_inputs_until_replaced() -> None:
    weights = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]

    @op
    def weighted(x: Any) -> Any:
        z[i] = x[i] * 1.0
        for weight in weights:
            z[i] *= weight[i]
        return z

    np.testing.assert_array_equal(weighted(np.ones(2)), [3.0, 8.0])
    staged = weighted.cache_info().misses
    weights[0][:] = 10.0
    np.testing.assert_array_equal(weighted(np.ones(2)), [30.0, 40.0])
    assert weighted.cache_info().misses == staged
    weights[1] = np.array([1.0, 1.0])
    np.testing.assert_array_equal(weighted(np.ones(2)), [10.0, 10.0])
    weights.append(np.array([2.0, 2.0]))
    np.testing.assert_array_equal(weighted(np.ones(2)), [20.0, 20.0])


def test_a_changed_dictionary_stages_again() -> None:
    settings = {"scale": 2.0}

    @op
    def scaled(x: Any) -> Any:
        z[i] = settings["scale"] * x[i]
        return z

    np.testing.assert_array_equal(scaled(np.ones(2)), [2.0, 2.0])
    settings["scale"] = 5.0
    np.testing.assert_array_equal(scaled(np.ones(2)), [5.0, 5.0])


def test_gradients_of_a_lambda_over_a_list_of_arrays() -> None:
    arrays = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]

    @op
    def inner_product(a: Any, b: Any) -> Any:
        t[()] += a[i] * b[i]
        return t

    gradient = tc.grad(lambda x: inner_product(x, arrays[1]))
    np.testing.assert_array_equal(gradient(arrays[0]), arrays[1])
    np.testing.assert_array_equal(gradient(arrays[0]), arrays[1])
