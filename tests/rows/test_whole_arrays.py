"""Whole-array arithmetic, products, views, reductions and statements on arrays with batch, output and input axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.rows.ranks import RowRanks
from tests.rows.staged import rowed, run

rng = np.random.default_rng(0)
X = rng.uniform(size=(2, 3))  # one batch axis, one output axis
W = rng.uniform(size=(4, 3))  # one output axis, one input axis
B = rng.uniform(size=4)


class TestArithmetic:
    def test_rows_are_aligned_each_for_itself(self) -> None:
        (found,) = run(lambda x, w: x + w, rowed(X, batch=1), rowed(W.T, input=1))
        np.testing.assert_allclose(found.array, X[:, :, None] + W.T)
        assert found.rows == RowRanks(batch=1, output=1, input=1)

    def test_a_plain_array_has_output_axes(self) -> None:
        (found,) = run(lambda x, b: x * b, rowed(X, batch=1), rng.uniform(size=3))
        assert found.rows == RowRanks(batch=1, output=1)
        m = rng.uniform(size=(2, 3))
        (found,) = run(lambda x, m: x - m, rowed(X, batch=1), m)
        np.testing.assert_allclose(found.array, X[:, None] - m)
        assert found.rows == RowRanks(batch=1, output=2)

    def test_numbers_have_no_axes(self) -> None:
        found = run(lambda w: (2 * w + np.float32(1), -w, w > 0.5, w.shape[1] * w), rowed(W, input=1))
        assert {each.rows for each in found} == {RowRanks(output=1, input=1)}
        np.testing.assert_allclose(found[0].array, 2 * W + 1)

    def test_extents_of_one_stretch(self) -> None:
        (found,) = run(lambda a, b: a * b, rowed(X[:1], batch=1), rowed(X[:, :1], batch=1))
        np.testing.assert_allclose(found.array, X[:1] * X[:, :1])

    def test_broadcasting_needs_equal_extents_in_each_row(self) -> None:
        with pytest.raises(tc.ShapeError, match="do not broadcast: extents a_1 = 3 and b_0 = 4"):
            run(lambda a, b: a + b, rowed(X, batch=1), B)

    def test_functions_and_casts_keep_rows(self) -> None:
        @op
        def f(x):
            return relu(x), float32(x), np.where(x > 0.5, x, 0.0), max(x, 0.3)

        found = run(f, rowed(X, batch=1))
        assert {each.rows for each in found} == {RowRanks(batch=1, output=1)}


class TestStores:
    def test_in_place(self) -> None:
        @cd
        def step(x, w):
            x -= 0.5 * x
            w[...] = 2 * w
            x *= w[:, 0]

        x, w = rowed(X.copy(), batch=1), rowed(rng.uniform(size=(3, 3)), input=1)
        expected = 0.5 * X * 2 * w.array[:, 0]
        run(step, x, w, memory=True)
        np.testing.assert_allclose(x.array, expected)

    def test_a_target_keeps_its_rows(self) -> None:
        @cd
        def step(x, w):
            x += w

        with pytest.raises(tc.ShapeError) as caught:
            run(step, rowed(X, batch=1), rowed(W, input=1), memory=True)
        assert (
            "a value with 0 batch, 1 input and 1 output axes cannot be stored in `x`, "
            "which has 1 batch, 0 input and 1 output axes" in str(caught.value)
        )

    def test_a_plain_value_goes_into_the_output_axes(self) -> None:
        @cd
        def step(x, b):
            x += b

        x = rowed(X.copy(), batch=1)
        run(step, x, B[:3], memory=True)
        np.testing.assert_allclose(x.array, X + B[:3])


class TestProducts:
    def test_input_axes_meet_output_axes(self) -> None:
        (found,) = run(lambda w, x: w @ x, rowed(W, input=1), rowed(X, batch=1))
        np.testing.assert_allclose(found.array, X @ W.T)
        assert found.rows == RowRanks(batch=1, output=1)

    def test_of_maps_compose(self) -> None:
        v = rng.uniform(size=(3, 5))
        (found,) = run(lambda w, v: w @ v, rowed(W, input=1), rowed(v, input=1))
        np.testing.assert_allclose(found.array, W @ v)
        assert found.rows == RowRanks(output=1, input=1)

    def test_with_several_axes_in_each_row(self) -> None:
        a, b = rng.uniform(size=(7, 2, 3, 4)), rng.uniform(size=(7, 3, 4, 5, 6))
        (found,) = run(lambda a, b: a @ b, rowed(a, batch=1, input=2), rowed(b, batch=1, input=2))
        np.testing.assert_allclose(found.array, np.einsum("boij,bijxy->boxy", a, b))
        assert found.rows == RowRanks(batch=1, output=1, input=2)

    def test_batch_rows_broadcast(self) -> None:
        a, b = rng.uniform(size=(1, 2, 3)), rng.uniform(size=(5, 6, 3))
        (found,) = run(lambda a, b: a @ b, rowed(a, batch=1, input=1), rowed(b, batch=2))
        np.testing.assert_allclose(found.array, b @ a[0].T)
        assert found.rows == RowRanks(batch=2, output=1)

    def test_axes_that_meet_do_not_stretch(self) -> None:
        with pytest.raises(tc.ShapeError, match="runs over axis 1 of a, which has the extent 3, and over axis 0 of b"):
            run(lambda a, b: a @ b, rowed(W, input=1), np.ones(1))

    def test_ranks_of_the_rows_that_meet_agree(self) -> None:
        with pytest.raises(tc.ShapeError, match="of which there are 1, and the output axes of the right one, of which"):
            run(lambda a, b: a @ b, rowed(W, input=1), np.ones((3, 3)))

    def test_without_input_axes_on_the_left_it_is_the_matrix_product(self) -> None:
        (found,) = run(lambda x, w: x @ w, rowed(X, batch=1), W.T)
        np.testing.assert_allclose(found.array, X @ W.T)
        assert found.rows == RowRanks(batch=1, output=1)

    def test_of_pending_arithmetic(self) -> None:
        (found,) = run(lambda w, x: (2 * w) @ (x + 1), rowed(W, input=1), rowed(X, batch=1))
        np.testing.assert_allclose(found.array, (X + 1) @ W.T * 2)

    def test_gradient(self) -> None:
        @op
        def layer(w, x, b):
            return relu(w @ x + b)

        def arranged(w: Any, x: Any, b: Any) -> Any:
            w.rows, x.rows = RowRanks(output=1, input=1), RowRanks(batch=1, output=1)
            return layer(w, x, b)

        @op
        def f(w, x, b):
            return arranged(w, x, b)

        np.testing.assert_allclose(f(W, X, B), np.maximum(X @ W.T + B, 0))
        tc.check_grads(f, (W, X, B))


class TestTransposes:
    def test_swap_input_and_output_axes(self) -> None:
        a = rng.uniform(size=(5, 2, 3, 4))
        (found,) = run(lambda a: a.T, rowed(a, batch=1, input=2))
        np.testing.assert_allclose(found.array, a.transpose(0, 2, 3, 1))
        assert found.rows == RowRanks(batch=1, output=2, input=1)

    def test_of_a_plain_array_reverse_the_axes(self) -> None:
        (found,) = run(lambda a: a.T, rng.uniform(size=(2, 3, 4)))
        assert found.array.shape == (4, 3, 2)
        assert found.rows.plain


class TestViewsAndReductions:
    @pytest.mark.parametrize(
        ("view", "rows"),
        [
            (lambda a: a[0], RowRanks(0, 2, 1)),
            (lambda a: a[:, 0], RowRanks(1, 1, 1)),
            (lambda a: a[..., 0], RowRanks(1, 2, 0)),
            (lambda a: a[:, 1:, ::-1], RowRanks(1, 2, 1)),
            (lambda a: a[None], RowRanks(2, 2, 1)),
            (lambda a: a[:, None], RowRanks(2, 2, 1)),
            (lambda a: a[..., None], RowRanks(1, 2, 2)),
            (lambda a: a[np.array([1, 0, 1])], RowRanks(1, 2, 1)),
            (lambda a: a.sum(0), RowRanks(0, 2, 1)),
            (lambda a: a.mean((1, 3)), RowRanks(1, 1, 0)),
            (lambda a: a.max(1, keepdims=True), RowRanks(1, 2, 1)),
        ],
    )
    def test_keep_the_rows_of_the_axes_that_stay(self, view: Callable[..., Any], rows: RowRanks) -> None:
        a = rng.uniform(size=(2, 3, 4, 5))
        (found,) = run(view, rowed(a, batch=1, input=1))
        np.testing.assert_allclose(found.array, view(a))
        assert found.rows == rows

    @pytest.mark.parametrize(
        ("gather", "rows"),
        [
            (lambda a, n: a[n], RowRanks(1, 2, 1)),  # a batch of lists of numbers, each of which chooses a matrix
            (lambda a, n: a[:, n], RowRanks(output=4)),  # a batch axis amid output axes: plain
            (lambda a, n: a[0, :, n], RowRanks(1, 2, 0)),  # as in NumPy, the gathered axes lead
        ],
    )
    def test_a_batch_of_indices_gathers_a_batch(self, gather: Callable[..., Any], rows: RowRanks) -> None:
        a, n = rng.uniform(size=(3, 3, 5)), np.array([[0, 2], [1, 1], [2, 0], [0, 0]])
        (found,) = run(gather, rowed(a, input=1), rowed(n, batch=1))
        np.testing.assert_allclose(found.array, gather(a, n))
        assert found.rows == rows


class TestStatements:
    def test_see_all_axes_in_the_order_of_storage(self) -> None:
        @op
        def f(x, w):
            y[n, o] += x[n, i] * w[o, i]
            return y

        (found,) = run(f, rowed(X, batch=1), rowed(W, input=1))
        np.testing.assert_allclose(found.array, X @ W.T)
        assert found.rows == RowRanks(batch=1, output=1)

    def test_leading_batch_variables_and_trailing_input_variables_keep_their_rows(self) -> None:
        @op
        def f(x, w):
            a[n, o, i] = x[n, i] * w[o, i]
            b[i, o] = w[o, i]
            c[n, o, i] = sum(x[n, k] * x[n, k]) + w[o, i]
            d[o, n] = x[n, o]
            e[n, k + 1] = x[n, k]
            return a, b, c, d, e

        found = run(f, rowed(X, batch=1), rowed(W, input=1))
        assert [each.rows for each in found] == [
            RowRanks(1, 1, 1),
            RowRanks(output=2),
            RowRanks(1, 1, 1),
            RowRanks(output=2),
            RowRanks(1, 1, 0),
        ]

    def test_a_target_that_exists_keeps_its_rows(self) -> None:
        @op
        def f(x):
            y = x + 0.0
            y[n, k] += x[n, k]
            y[n, 0] = 0.0
            return y

        (found,) = run(f, rowed(X, batch=1))
        assert found.rows == RowRanks(batch=1, output=1)


class TestDerivatives:
    @pytest.mark.parametrize("argnums", [(0, 1), (1, 0), (0,)])
    def test_gradients_have_the_rows_of_their_arguments(self, argnums: tuple[int, ...]) -> None:
        def loss(w: Any, x: Any, b: Any) -> Any:
            y = w @ x + b
            return (y * y).sum()

        def step(w: Any, x: Any, b: Any) -> Any:
            value, gradients = tc.value_and_grad(loss, argnums)(w, x, b)
            given = (w, x)
            return (value, *(given[k] - 0.1 * found for k, found in zip(argnums, gradients, strict=True)))

        def with_aux(w: Any, x: Any, b: Any) -> Any:
            gradients, aux = tc.grad(lambda *each: (loss(*each), each[1]), argnums, has_aux=True)(w, x, b)
            return (*gradients, aux)

        given = rowed(W, input=1), rowed(X, batch=1), B
        found = run(step, *given)
        y = X @ W.T + B
        expected = [W - 0.2 * y.T @ X, X - 0.2 * y @ W]
        for k, each in zip(argnums, found[1:], strict=True):
            np.testing.assert_allclose(each.array, expected[k])
            assert each.rows == given[k].rows  # type: ignore[attr-defined]
        assert [each.rows for each in run(with_aux, *given)[:-1]] == [given[k].rows for k in argnums]  # type: ignore[attr-defined]

    def test_tangents_and_adjoints_too(self) -> None:
        def linear(w: Any, x: Any) -> Any:
            return w @ x

        def forward(w: Any, x: Any) -> Any:
            y, tangent = tc.jvp(linear, (w, x), (w, x))
            z, pushed = tc.linearize(linear, w, x)
            return y, tangent, z, pushed(w, x)

        def backward(w: Any, x: Any) -> Any:
            y, pullback = tc.vjp(linear, w, x)
            return (y, *pullback(y))

        given = rowed(W, input=1), rowed(X, batch=1)
        for each in run(forward, *given):
            assert each.rows == RowRanks(batch=1, output=1)
        found = run(backward, *given)
        assert [each.rows for each in found] == [RowRanks(batch=1, output=1), given[0].rows, given[1].rows]
        np.testing.assert_allclose(found[1].array, (X @ W.T).T @ X)

    def test_products_with_the_hessian_too(self) -> None:
        def loss(w: Any, x: Any) -> Any:
            y = w @ x
            return (y * y * y).sum()

        def products(w: Any, x: Any) -> Any:
            return tc.hvp(loss, (w, x), (w, x))

        given = rowed(W, input=1), rowed(X, batch=1)
        assert [each.rows for each in run(products, *given)] == [given[0].rows, given[1].rows]
