"""Whole-array arithmetic in decorated functions follows NumPy: operators, broadcasting, views, reductions, matmul."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((3, 4))
ROW = RNG.standard_normal((1, 4))
COLUMN = RNG.standard_normal((3, 1))
VECTOR = RNG.standard_normal(4)
COUNTS = np.arange(12).reshape(3, 4)


@op
def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, x**2, -x, abs(x), 2 - x, 1 / y, x % 0.75, x // 0.5


@op
def comparisons(x, y):
    return x < y, x <= y, x > 0, x >= y, x == y, x != y, ~(x < y), (x < 0) & (y < 0), (x < 0) | (y < 0)


@op
def primitives(x):
    return np.exp(x), math.sin(x), relu(x), where(x > 0, x, 0.0), max(x, 0.5), np.minimum(x, 0.1), float32(x)


@op
def outer(x, row, column, vector):
    return x + row, x * column, row + column, x - vector, vector * column, row[0] + column


@op
def integers(n):
    return n // 3, n % 3, n & 5, n | 8, n ^ 2, n << 1, n >> 1, ~n, n / 4, n * True, n**2


@op
def views(x):
    return (
        x[0], x[-1], x[1:], x[:, 1:-1], x[::2], x[::-1], x[:, ::-2], x[None, :, 0], x[..., 1], x[1, 2], x.T, x[5:],
        x[:, None, :], x[-2:, :100],
    )  # fmt: skip


@op
def reductions(x):
    return (
        x.sum(),
        x.sum(axis=0),
        x.mean(axis=-1),
        np.max(x, axis=1),
        x.min(),
        x.prod(axis=1),
        sum(x),
        max(x),
        x.mean(axis=(0, 1), keepdims=True),
    )


@op
def products(x, y, vector):
    return x @ y.T, x @ vector, vector @ y.T, vector @ vector


@op
def batched(a, b):
    return a @ b


@op
def gathered(x, rows):
    return x[rows], x[:, rows], x[rows, 0]


def arithmetic_reference(x: Any, y: Any) -> Any:
    return x + y, x - y, x * y, x / y, x**2, -x, abs(x), 2 - x, 1 / y, x % 0.75, x // 0.5


CASES: list[tuple[Any, Callable[..., Any], tuple[Any, ...]]] = [
    (arithmetic, arithmetic_reference, (X, Y)),
    (
        comparisons,
        lambda x, y: (x < y, x <= y, x > 0, x >= y, x == y, x != y, ~(x < y), (x < 0) & (y < 0), (x < 0) | (y < 0)),
        (X, Y),
    ),
    (
        primitives,
        lambda x: (
            np.exp(x), np.sin(x), np.maximum(x, 0), np.where(x > 0, x, 0.0), np.maximum(x, 0.5), np.minimum(x, 0.1),
            x.astype("float32"),
        ),
        (X,),
    ),
    (
        outer,
        lambda x, r, c, v: (x + r, x * c, r + c, x - v, v * c, r[0] + c),
        (X, ROW, COLUMN, VECTOR),
    ),
    (
        integers,
        lambda n: (n // 3, n % 3, n & 5, n | 8, n ^ 2, n << 1, n >> 1, ~n, n / 4, n * True, n**2),
        (COUNTS,),
    ),
    (
        views,
        lambda x: (
            x[0], x[-1], x[1:], x[:, 1:-1], x[::2], x[::-1], x[:, ::-2], x[None, :, 0], x[..., 1], x[1, 2], x.T, x[5:],
            x[:, None, :], x[-2:, :100],
        ),
        (X,),
    ),
    (
        reductions,
        lambda x: (
            x.sum(), x.sum(axis=0), x.mean(axis=-1), x.max(axis=1), x.min(), x.prod(axis=1), x.sum(), x.max(),
            x.mean(axis=(0, 1), keepdims=True),
        ),
        (X,),
    ),
    (products, lambda x, y, v: (x @ y.T, x @ v, v @ y.T, v @ v), (X, Y, VECTOR)),
    (batched, np.matmul, (RNG.standard_normal((2, 1, 3, 4)), RNG.standard_normal((5, 4, 2)))),
    (gathered, lambda x, r: (x[r], x[:, r], x[r, 0]), (X, np.array([[2, 0], [1, 1]]))),
]  # fmt: skip


@pytest.mark.parametrize(("function", "reference", "arguments"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_equals_numpy(function: Any, reference: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    expected = reference(*arguments)
    found = function.interpret(*arguments)
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    assert len(found) == len(expected)
    for k, (value, wanted) in enumerate(zip(found, expected, strict=True)):
        assert np.shape(value) == np.shape(wanted), k
        assert np.asarray(value).dtype == np.asarray(wanted).dtype, k
        np.testing.assert_allclose(value, wanted, rtol=1e-6, err_msg=str(k))


def test_broadcasting_an_axis_of_extent_one_is_a_guard() -> None:
    @op
    def add(a, b):
        return a + b

    for left, right in [((3, 4), (1, 4)), ((5, 4), (1, 4)), ((3, 4), (3, 4)), ((1, 1), (1, 1)), ((1, 4), (3, 4))]:
        a, b = np.ones(left), np.ones(right)
        assert add.interpret(a, b).shape == np.broadcast_shapes(left, right)
    # (3,4)+(1,4) and (5,4)+(1,4) share one program; (1,1)+(1,1) is the one of equal extents.
    assert add.cache_info().programs == 3


def test_arrays_that_do_not_broadcast() -> None:
    @op
    def add(a, b):
        return a + b

    with pytest.raises(tc.ShapeError, match=r"do not broadcast: extents a_0 = 3 and b_0 = 4"):
        add.interpret(np.ones(3), np.ones(4))


def test_a_number_of_an_assignment_is_one_statement() -> None:
    @op
    def step(p, g, *, rate):
        update = p - rate * (g + 0.5)
        return update  # noqa: RET504  # the binding names the statement

    text = step.explain("ir", np.ones(3), np.ones(3), rate=0.1)
    assert text.count("update[i] =") == 1
    assert text.count(" for [") == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: x[0, 0, 0], "3 indices on an array of rank 2"),
        (lambda x: x["a"], "a str as an index"),
        (lambda x: x[::0], "a slice with step 0"),
        (lambda x: x + {1.0}, "a set does not take part"),
        (
            lambda x: np.spacing(x),  # noqa: PLW0108
            "np.spacing is not a primitive",
        ),
        (lambda x: x.sum(axis=2), "axis 2 of an array of rank 2"),
        (lambda x: x.sum(axis=(0, -2)), "axis 0 is given twice"),
        (lambda x: x.max(axis="rows"), "axis 'rows' of an array of rank 2"),
        (lambda x: x.mean(axis=1.0), "axis 1.0 of an array of rank 2"),
        (lambda x: x.sum().sum(axis=0), "axis 0 of an array of rank 0"),
        (lambda x: x @ 2.0, "`@` takes arrays of rank 1 or more"),
        (lambda x: 1 if x[0, 0] > 0 else 2, "not known while the function is staged"),
        (lambda x: list(range(x.shape[0])), "not known while the function is staged"),
        (
            lambda x: [row for row in x],  # noqa: C416
            "in a loop",
        ),
        (lambda x: float(x[0, 0]), "as a float"),
    ],
)
def test_faults_of_whole_arrays(body: Callable[[Any], Any], message: str) -> None:
    @op
    def faulty(x):
        return body(x)

    with pytest.raises(tc.TcdslError, match=message):
        faulty.interpret(X)


def test_positions_are_checked_at_the_call() -> None:
    @op
    def third(x):
        return x[2]

    assert third.interpret(np.arange(3.0)) == 2.0
    with pytest.raises(tc.ShapeError, match="the index 2 is out of range of axis 0 of x, which has the extent x_0 = 2"):
        third.interpret(np.arange(2.0))
