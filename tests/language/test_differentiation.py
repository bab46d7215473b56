"""`grad`, `value_and_grad`, `vjp` and `check_grads`: JAX's signatures, and the rules that are a matter of choice."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

X = np.array([0.5, -1.0, 2.0])
W = np.array([1.0, 10.0, 100.0])


@op
def weighted(x, w):
    t[()] += x[i] * x[i] * w[i]
    return t


@op
def squares(x):
    y[i] = x[i] * x[i]
    return y


@op
def scaled(x, *, factor=1.0, twice: bool = False):
    t[()] += x[i] * factor * (2 if twice else 1)
    return t


@op
def looked_up(table, ids, mask):
    y[i] = table[ids[i]] * mask[i]
    return y


# -- signatures ----------------------------------------------------------------------------------------------


def test_grad_of_an_op_is_by_its_first_argument() -> None:
    found = tc.grad(weighted)(X, W)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, 2 * X * W)


def test_argnums_names_arguments_by_position() -> None:
    np.testing.assert_array_equal(tc.grad(weighted, argnums=1)(X, W), X * X)
    np.testing.assert_array_equal(tc.grad(weighted, argnums=-1)(X, W), X * X)
    first, second = tc.grad(weighted, argnums=(1, 0))(X, W)
    np.testing.assert_array_equal(first, X * X)
    np.testing.assert_array_equal(second, 2 * X * W)
    (single,) = tc.grad(weighted, (0,))(X, W)
    np.testing.assert_array_equal(single, 2 * X * W)
    with pytest.raises(tc.DifferentiationError, match=r"argnums names argument 2, but weighted\(\) has 2 positional"):
        tc.grad(weighted, argnums=2)(X, W)


def test_value_and_grad_gives_both_from_one_program() -> None:
    derivative = tc.value_and_grad(weighted, argnums=(0, 1))
    value, (dx, dw) = derivative(X, W)
    assert value == (X * X * W).sum()
    np.testing.assert_array_equal(dx, 2 * X * W)
    np.testing.assert_array_equal(dw, X * X)
    assert derivative.cache_info().kernels == 1


def test_grad_accepts_any_python_function_of_ops() -> None:
    def loss(x: Any, w: Any) -> Any:
        parts = [weighted(x, w), squares(x).sum()]
        return parts[0] + 3 * parts[1]

    for function in (loss, lambda x, w: 1 * loss(x, w)):
        np.testing.assert_array_equal(tc.grad(function)(X, W), 2 * X * W + 6 * X)


def test_lambdas_see_closures_and_their_changes() -> None:
    w = W
    derivative = tc.grad(lambda x: weighted(x, w))
    np.testing.assert_array_equal(derivative(X), 2 * X * W)
    w = 2 * W
    np.testing.assert_array_equal(derivative(X), 4 * X * W)
    assert derivative.cache_info().programs == 1


def test_grad_takes_any_loss_of_one_element() -> None:
    @op
    def rank_two(x):
        y[a, b] = x[a] * x[b], a < 1, b < 1
        return y

    def kept(x: Any) -> Any:
        return x.sum(axis=0, keepdims=True)

    found = tc.grad(rank_two)(X)
    assert found.tolist() == [1.0, 0, 0]
    np.testing.assert_array_equal(tc.grad(kept)(X), [1, 1, 1])
    np.testing.assert_array_equal(tc.grad(squares)(X[:1]), 2 * X[:1])
    value, gradient = tc.value_and_grad(kept)(X)
    assert value.shape == (1,)
    np.testing.assert_array_equal(gradient, [1, 1, 1])
    with pytest.raises(tc.ShapeError, match="one element"):
        tc.grad(squares)(X)


def test_has_aux_passes_other_results_through() -> None:
    def loss(x: Any) -> Any:
        y = squares(x)
        return y.sum(), {"squares": y, "count": 3}

    gradient, aux = tc.grad(loss, has_aux=True)(X)
    np.testing.assert_array_equal(gradient, 2 * X)
    np.testing.assert_array_equal(aux["squares"], X * X)
    assert aux["count"] == 3
    (value, aux), gradient = tc.value_and_grad(loss, has_aux=True)(X)
    assert value == (X * X).sum()
    np.testing.assert_array_equal(gradient, 2 * X)
    np.testing.assert_array_equal(aux["squares"], X * X)
    value, pullback, aux = tc.vjp(loss, X, has_aux=True)
    np.testing.assert_array_equal(pullback(1.0)[0], 2 * X)
    np.testing.assert_array_equal(aux["squares"], X * X)


@pytest.mark.usefixtures("own_cache")
def test_keyword_arguments_are_configuration_or_run_time_numbers() -> None:
    derivative = tc.grad(scaled)
    for factor in (1.0, 2.0, 5.0):
        np.testing.assert_array_equal(derivative(X, factor=factor), np.full(3, factor))
    np.testing.assert_array_equal(derivative(X, factor=3.0, twice=True), np.full(3, 6.0))
    np.testing.assert_array_equal(derivative(X), np.ones(3))
    assert derivative.cache_info().programs == 2


def test_gradients_by_python_numbers_are_numbers() -> None:
    def loss(x: Any, rate: Any) -> Any:
        return (x * rate).sum()

    value = tc.grad(loss, argnums=1)(X, 2.0)
    assert np.ndim(value) == 0
    assert value == X.sum()
    assert tc.grad(lambda a: a * a * a)(2.0) == 12


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_gradient_has_the_type_and_shape_of_its_argument(dtype: str) -> None:
    x = X.astype(dtype)
    first, second = tc.grad(weighted, argnums=(0, 1))(x, W)
    assert (first.dtype, second.dtype) == (dtype, np.float64)
    np.testing.assert_allclose(first, (2 * x * W).astype(dtype), rtol=1e-3)


def test_vjp_gives_one_entry_per_positional_argument_and_none_for_integers_and_truth() -> None:
    table, ids, mask = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([True, True, False])
    value, pullback = tc.vjp(looked_up, table, ids, mask)
    np.testing.assert_array_equal(value, [3, 1, 0])
    d_table, d_ids, d_mask = pullback(np.array([1.0, 10.0, 100.0]))
    np.testing.assert_array_equal(d_table, [10, 0, 1])
    assert d_ids is None
    assert d_mask is None


def test_vjp_takes_cotangents_in_the_structure_of_the_outputs() -> None:
    def pair(x: Any) -> Any:
        return {"y": squares(x), "rest": [x.sum(), 2 * x]}

    value, pullback = tc.vjp(pair, X)
    assert value["rest"][0] == X.sum()
    (found,) = pullback({"y": np.ones(3), "rest": [np.float64(10), W]})
    np.testing.assert_array_equal(found, 2 * X + 10 + 2 * W)
    for wrong in (np.ones(3), [np.ones(3), [1.0, W]], {"y": np.ones(3), "rest": [1.0]}):
        with pytest.raises(tc.ShapeError, match="do not have the structure of the outputs"):
            pullback(wrong)
    with pytest.raises(tc.ShapeError, match=r"a cotangent has shape \[2\], but the output \['y'\] has shape \[3\]"):
        pullback({"y": np.ones(2), "rest": [1.0, W]})


def test_a_pullback_may_be_used_again() -> None:
    _, pullback = tc.vjp(squares, X)
    for row, seed in enumerate(np.eye(3)):
        np.testing.assert_array_equal(pullback(seed)[0], 2 * X * np.eye(3)[row])


def test_grad_is_an_error_only_where_argnums_names_integers() -> None:
    def loss(table: Any, ids: Any, mask: Any) -> Any:
        return looked_up(table, ids, mask).sum()

    arguments = (np.array([1.0, 2.0]), np.array([1, 1]), np.array([True, True]))
    np.testing.assert_array_equal(tc.grad(loss)(*arguments), [0, 2])
    for position, dtype in ((1, "int64"), (2, "bool")):
        with pytest.raises(tc.DifferentiationError, match=dtype):
            tc.grad(loss, argnums=(0, position))(*arguments)


def test_derivatives_are_programs_that_print_and_are_differentiable_again() -> None:
    assert "program grad_weighted" in tc.grad(weighted).explain("ir", X, W)

    def slope(x: Any) -> Any:
        return tc.grad(lambda x: (x * x * x).sum())(x).sum()

    np.testing.assert_array_equal(tc.grad(slope)(X), 6 * X)
    assert tc.grad(tc.grad(tc.grad(lambda a: a**4)))(2.0) == 48.0


def test_gradients_can_be_taken_inside_ops() -> None:
    @op
    def step(x, w, *, rate=0.5):
        return x - rate * tc.grad(weighted)(x, w)

    np.testing.assert_array_equal(step(X, W), X - 0.5 * 2 * X * W)


def test_check_grads_accepts_what_is_right_and_rejects_what_is_wrong() -> None:
    tc.check_grads(weighted, (X, W), order=2)
    tc.check_grads(lambda x: np.exp(x).sum(), (X.astype(np.float32),))

    def wrong(x: Any) -> Any:
        # Its value depends on x twice, its derivative follows one of the two.
        return (x * stopped(x)).sum()

    @op
    def stopped(x):
        return stop_gradient(x)

    with pytest.raises(tc.TcdslError, match="dot-product identity"):
        tc.check_grads(wrong, (X,))


def test_check_grads_passes_integers_on_as_numbers_of_the_call() -> None:
    @op
    def powers(x: real[N], most):
        V: real[most + 1, N]
        V[0, i] = x[i]
        for j in range(most):
            V[j + 1] = V[j] * x
        return V

    assert powers(X, 3).shape == (4, X.size)
    tc.check_grads(powers, (X, 3), order=2, modes=("fwd", "rev"))


def test_check_grads_takes_shorter_steps_where_a_function_bends_within_one() -> None:
    @op
    def steep(x, s):
        return np.sin(1000.0 * x) * s

    @op
    def nearly(x, s):
        return (
            np.sin(1000.0 * stop_gradient(x)) * s
            + 1000.5 * np.cos(1000.0 * stop_gradient(x)) * (x - stop_gradient(x)) * s
        )

    tc.check_grads(steep, (X, 2.0), modes=("fwd", "rev"))
    for mode, message in (("rev", "dot-product identity"), ("fwd", "directional derivative")):
        with pytest.raises(tc.TcdslError, match=message):
            tc.check_grads(nearly, (X, 2.0), modes=(mode,))


# -- rules of choice -----------------------------------------------------------------------------------------


@op
def largest(x):
    m[()] >>= x[i]
    return m


@op
def smallest(x):
    return min(x)


@op
def elementwise(x, y):
    t[()] += max(x[i], y[i]) + 10 * min(x[i], y[i])
    return t


@pytest.mark.parametrize(
    "function", [largest, lambda x: x.max(), lambda x: np.max(x, axis=0)], ids=["op", "method", "NumPy"]
)
def test_ties_in_max_share_the_gradient_equally(function: Any) -> None:
    np.testing.assert_allclose(tc.grad(function)(np.array([3.0, 1.0, 3.0, 3.0])), [1 / 3, 0, 1 / 3, 1 / 3])
    np.testing.assert_array_equal(tc.grad(function)(np.array([1.0, 2.0, 0.0])), [0, 1, 0])


def test_ties_in_min_share_the_gradient_equally() -> None:
    np.testing.assert_array_equal(tc.grad(smallest)(np.array([0.0, 1.0, 0.0])), [0.5, 0, 0.5])


def test_ties_of_two_arguments_share_the_gradient_equally() -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 0.0])
    dx, dy = tc.grad(elementwise, argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(dx, [5.5, 10, 1])
    np.testing.assert_array_equal(dy, [5.5, 1, 10])


def test_abs_relu_and_sat01_have_derivative_zero_at_their_kinks() -> None:
    @op
    def f(x):
        t[()] += abs(x[i]) + 10 * relu(x[i]) + 100 * sat01(x[i])
        return t

    found = tc.grad(f)(np.array([-2.0, 0.0, 0.5, 1.0, 2.0]))
    np.testing.assert_array_equal(found, [-1, 0, 111, 11, 11])


@pytest.mark.parametrize("factors", [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0], [0.0]])
def test_the_gradient_of_a_product_is_exact_with_zeros_among_the_factors(factors: list[float]) -> None:
    @op
    def accumulated(x):
        p[()] *= x[i]
        return p

    @op
    def reduced(x):
        q[()] = 1 * prod(x[i])
        return q

    wanted = [math.prod(factors[:k] + factors[k + 1 :]) for k in range(len(factors))]
    for function in (accumulated, reduced, lambda x: x.prod()):
        np.testing.assert_array_equal(tc.grad(function)(np.array(factors)), wanted)


def test_integer_and_bool_tensors_stop_gradients() -> None:
    @op
    def f(x):
        n[i] = int64(x[i])
        t[()] += x[i] * n[i] + (x[i] > 0)
        return t

    np.testing.assert_array_equal(tc.grad(f)(np.array([1.5, -2.5, 3.0])), [1, -2, 3])


def test_stop_gradient_passes_values_and_no_derivative() -> None:
    @op
    def f(x):
        t[()] += x[i] * stop_gradient(x[i] * x[i])
        return t

    @op
    def whole(x):
        return (x * stop_gradient(x * x)).sum()

    for function in (f, whole):
        value, gradient = tc.value_and_grad(function)(X)
        assert value == (X**3).sum()
        np.testing.assert_array_equal(gradient, X * X)


def test_an_adjoint_that_dropped_an_operand_keeps_its_range() -> None:
    @op
    def f(A, B):
        O[i] += A[i] + B[k]
        return O

    A, B = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    value, pullback = tc.vjp(f, A, B)
    np.testing.assert_array_equal(value, 3 * A + B.sum())
    dA, dB = pullback(np.array([10.0, 100.0]))
    # Every k adds A[i] again: dA is K * dO.
    np.testing.assert_array_equal(dA, [30, 300])
    np.testing.assert_array_equal(dB, [110, 110, 110])
    _, empty = tc.vjp(f, A, B[:0])
    np.testing.assert_array_equal(empty(np.array([10.0, 100.0]))[0], [0, 0])


def test_the_gradient_of_a_branch_not_taken_is_zero_and_never_nan() -> None:
    @op
    def f(x):
        y[i] = log(x[i]) if x[i] > 0 else 0.0
        z[i] = (x[i] > 0) * sqrt(x[i])
        t[()] += y[i] + z[i]
        return t

    x = np.array([0.0, -1.0, 4.0])
    value, gradient = tc.value_and_grad(f)(x)
    assert value == math.log(4) + 2
    np.testing.assert_array_equal(gradient, [0, 0, 0.25 + 0.25])


def test_arguments_that_nothing_depends_on_have_gradient_zero() -> None:
    first, second = tc.grad(lambda x, w: x.sum(), argnums=(0, 1))(X, W)
    np.testing.assert_array_equal(first, np.ones(3))
    np.testing.assert_array_equal(second, np.zeros(3))


def test_gradients_change_no_argument() -> None:
    x, w = X.copy(), W.copy()
    x.flags.writeable = w.flags.writeable = False
    tc.value_and_grad(weighted, argnums=(0, 1))(x, w)
    np.testing.assert_array_equal(x, X)


def test_a_pullback_belongs_to_the_values_that_its_arguments_had() -> None:
    x = X.copy()
    _, pullback = tc.vjp(squares, x)
    x[:] = 100
    np.testing.assert_array_equal(pullback(np.ones(3))[0], 2 * X)


def test_sizes_of_arrays_that_are_read_for_nothing_else() -> None:
    @op
    def scaled(x, w):
        y[i] = x[i] * w.shape[0]
        return y

    @op
    def slope(x, w):
        return tc.grad(lambda x: (x * w.shape[0] + scaled(x, w)).sum())(x)

    w = np.ones((5, 2))
    _, pullback = tc.vjp(lambda x: scaled(x, w), X)
    np.testing.assert_array_equal(pullback(X)[0], 5 * X)
    np.testing.assert_array_equal(slope(X, w), [10, 10, 10])


@op
def weighed(x, w, *, k=1):
    total[()] += x[i] ** 2 * w[i] * k
    return total


def lambda_of_weighed(x, w, *, k=1):
    return weighed(x, w, k=k)


@pytest.mark.parametrize("function", [weighed, lambda_of_weighed], ids=["op", "python"])
def test_functions_of_which_some_arguments_are_given(function: Any) -> None:
    x, w = np.arange(1.0, 4.0), np.array([2.0, 3.0, 4.0])
    bound = functools.partial(function, k=3)
    assert tc.grad(bound)(x, w).tolist() == (6 * x * w).tolist()
    assert tc.grad(bound)(x, w, k=5).tolist() == (10 * x * w).tolist()
    assert tc.value_and_grad(bound, argnums=1)(x, w)[1].tolist() == (3 * x**2).tolist()
    for given in (functools.partial(function, w=w), functools.partial(functools.partial(function, k=1), w=w)):
        assert tc.grad(given)(x).tolist() == (2 * x * w).tolist()
        assert tc.jacobian(given)(x).tolist() == (2 * x * w).tolist()
        assert tc.hessian(given)(x).tolist() == np.diag(2 * w).tolist()
        assert tc.grad(given)(x, k=2).tolist() == (4 * x * w).tolist()
        tc.check_grads(given, (x,))
    given = tc.grad(functools.partial(function, w=w))
    given(x)
    w[0] = 7.0
    assert given(x).tolist() == (2 * x * w).tolist()
    assert tc.grad(functools.partial(function, x))(w).tolist() == (x**2).tolist()
    has_derivatives = functools.partial(function, w=w)
    tc.grad(has_derivatives)(x)
    assert tc.grad(functools.partial(has_derivatives, k=2))(x).tolist() == (4 * x * w).tolist()
    assert repr(given) == f"<gradient by 0 of {function.__name__}>"
