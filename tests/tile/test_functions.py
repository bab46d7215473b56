"""Functions and operators of whole tensors, on arrays under `op`, on tensors outside, and on plain values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, tile
from tcdsl.tile import *

X = np.array([[0.3, -0.6, 0.9], [0.15, 0.75, -0.45]])
Y = np.array([[0.8], [0.4]])
Z = np.array([5, -3, 2])
W = np.array([1, 2, 3])
P = np.array([[1, 0], [1, 1]])

ELEMENTWISE: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (tile.abs, np.abs),
    (lambda X: tile.round(X) + ceil(X) + floor(X), lambda X: np.rint(X) + np.ceil(X) + np.floor(X)),
    (lambda X: sin(X) + cos(X) * tan(X), lambda X: np.sin(X) + np.cos(X) * np.tan(X)),
    (lambda X: sinh(X) + cosh(X) * tanh(X), lambda X: np.sinh(X) + np.cosh(X) * np.tanh(X)),
    (lambda X: asin(X) + acos(X) * atan(X), lambda X: np.arcsin(X) + np.arccos(X) * np.arctan(X)),
    (lambda X: asinh(X) + acosh(X + 2) * atanh(X), lambda X: np.arcsinh(X) + np.arccosh(X + 2) * np.arctanh(X)),
    (lambda X: erf(X) + exp(X) * log(X + 1), lambda X: np.vectorize(math.erf)(X) + np.exp(X) * np.log(X + 1)),
    (lambda X: tile.max(X, 0.2) + tile.min(0.5, X), lambda X: np.maximum(X, 0.2) + np.minimum(0.5, X)),
    (lambda X: tile.pow(X + 1, 2.5) + sqrt(X + 1), lambda X: (X + 1) ** 2.5 + np.sqrt(X + 1)),
    (lambda X: sigmoid(X) / 2, lambda X: 0.5 / (1 + np.exp(-X))),
)


@op
def all_elementwise(X):
    return [function(X) for function, _ in ELEMENTWISE]


def test_elementwise_functions() -> None:
    for found, (_, reference) in zip(all_elementwise(X), ELEMENTWISE, strict=True):
        np.testing.assert_allclose(found, reference(X), atol=1e-12)
    for function, reference in (ELEMENTWISE[0], *ELEMENTWISE[7:]):
        np.testing.assert_allclose(np.asarray(function(tile.Tensor(X))), reference(X), atol=1e-12)
    tc.check_grads(all_elementwise, (X,))


OPERATORS: tuple[Callable[..., Any], ...] = (
    lambda X, Y, Z, W: X + Y - X * Y / 2,
    lambda X, Y, Z, W: (X == Y) + (X != Y) * 2,
    lambda X, Y, Z, W: (X < Y) * 1 + (X <= Y) * 2 + (X > Y) * 4 + (X >= Y) * 8,
    lambda X, Y, Z, W: Z % W,
    lambda X, Y, Z, W: (Z & W) + (Z | W) * 100,
    lambda X, Y, Z, W: (Z ^ W) + ~Z * 100,
    lambda X, Y, Z, W: (Z << W) + (Z >> 1) * 100,
    lambda X, Y, Z, W: -X + Z // W,
)


@op
def all_operators(X, Y, Z, W):
    return [operator(X, Y, Z, W) for operator in OPERATORS]


def test_operators_broadcast() -> None:
    expected = [operator(X, Y, Z, W) for operator in OPERATORS]
    lazy = [operator(*map(tile.Tensor, (X, Y, Z, W))) for operator in OPERATORS]
    for found, other, numpy in zip(all_operators(X, Y, Z, W), lazy, expected, strict=True):
        np.testing.assert_allclose(found, numpy, atol=1e-12)
        np.testing.assert_allclose(np.asarray(other), numpy, atol=1e-12)


def rearranged(X, Y, P):
    N, K = TensorDims(2)
    X.bind_dims(N, K)
    return (
        select(X < 0.0, 0.0, X),
        select(Y > 0.5, X, -X),
        cast(X * 4, DType.INT32),
        cast(X, "float32"),
        cast(N, DType.FLOAT64) * X,
        shape(X),
        index((N, K), 0) * 10 + index((N, K), 1),
        index(X, 1),
        gather(X, P),
        gather(X, P, axis=1),
        gather(X, P, axis=-1),
        scatter(X, P, gather(X, P)),
        reshape(X, (K, N)),
        reshape(X, (1, N * K)),
        reshape(reshape(X, [N * K]), (N, K, 1)),
        reshape(X[0, 1], (1, 1)),
        argsort(X),
        argsort(X, axis=0, direction=SortDirection.DESC),
        argsort(tile.round(X)),
        X.use(TensorLens("AB", "BA")),
        tile.max(N, K) + tile.min(N, 1) * X,
    )


def expected_rearranged() -> list[Any]:
    scattered = X.copy()
    np.add.at(scattered, P, X[P])
    return [
        np.maximum(X, 0),
        np.where(Y > 0.5, X, -X),
        (X * 4).astype("int32"),
        X.astype("float32"),
        2 * X,
        [2, 3],
        [[0, 1, 2], [10, 11, 12]],
        [[0, 1, 2], [0, 1, 2]],
        X[P],
        X[:, P],
        X[:, P],
        scattered,
        X.reshape(3, 2),
        X.reshape(1, 6),
        X.reshape(2, 3, 1),
        X[:1, 1:2],
        np.argsort(X),
        np.argsort(-X, 0),
        np.argsort(np.rint(X), kind="stable"),
        X.T,
        3 + X,
    ]


DECORATED = op(rearranged)


def test_functions_of_whole_tensors() -> None:
    lazy = rearranged(*map(tile.Tensor, (X, Y, P)))
    for k, (found, other, numpy) in enumerate(zip(DECORATED(X, Y, P), lazy, expected_rearranged(), strict=True)):
        np.testing.assert_allclose(found, numpy, atol=1e-12, err_msg=str(k))
        np.testing.assert_allclose(np.asarray(other), numpy, atol=1e-12, err_msg=str(k))
        assert found.dtype == np.asarray(other).dtype


def test_gradients_of_functions_of_whole_tensors() -> None:
    differentiable = [0, 1, 4, 8, 9, 11, 12, 13, 14, 15, 19, 20]

    def chosen(X: Any, Y: Any) -> list[Any]:
        made = DECORATED(X, Y, P)
        return [made[k] for k in differentiable]

    tc.check_grads(chosen, (X, Y))


def test_types_of_results() -> None:
    made = DECORATED(X.astype("float32"), Y.astype("float32"), P)
    assert [str(each.dtype) for each in made[:8]] == [
        *("float32", "float32", "int32", "float32", "float64", "int64", "int64", "int64"),
    ]


def test_nan_sorts_last() -> None:
    given = np.array([2.0, np.nan, 1.0, np.nan, 1.0])
    assert np.asarray(argsort(tile.Tensor(given))).tolist() == [2, 4, 0, 1, 3]
    assert np.asarray(argsort(tile.Tensor(given), direction=SortDirection.DESC)).tolist() == [0, 2, 4, 1, 3]


def test_positions_out_of_range_are_errors() -> None:
    with pytest.raises(tc.DataIndexError):
        np.asarray(gather(tile.Tensor(X), np.array([2])))
    with pytest.raises(tc.DataIndexError):
        np.asarray(scatter(tile.Tensor(X), np.array([2]), np.ones((1, 3))))


def test_python_values_stay_what_they_are() -> None:
    assert tile.max(3, 4) == 4
    assert tile.min([2, 1]) == 1
    assert tile.max([], default=7) == 7
    assert tile.abs(-3) == 3
    assert tile.round(2.567, 2) == 2.57
    assert tile.pow(2, 3) == 8
    assert exp(0.0) == 1.0
    np.testing.assert_allclose(tile.max(X, Y), np.maximum(X, Y))
    np.testing.assert_allclose(select(X < 0, 0, X), np.maximum(X, 0))
    np.testing.assert_allclose(gather(X, np.array([1])), X[1:])
    np.testing.assert_allclose(scatter(X, np.array([1, 1]), X), X + [[0], [1]] * X.sum(0))
    np.testing.assert_allclose(reshape(X, (3, 2)), X.reshape(3, 2))
    assert argsort(Z, direction=SortDirection.DESC).tolist() == [0, 2, 1]
    assert shape(X).tolist() == [2, 3]
    assert cast(2.7, DType.INT8) == 2


def test_the_module_offers_the_names_of_tile() -> None:
    assert {"abs", "max", "min", "pow", "round", "Tensor", "TensorDims", "TensorLens", "cond"} <= set(tile.__all__)
    assert all(hasattr(tile, name) for name in tile.__all__)
