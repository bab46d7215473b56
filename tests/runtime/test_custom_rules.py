"""`@f.defvjp` and `@f.defjvp`: derivatives that users write in the language itself."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DifferentiationError, DslSyntaxError, ShapeError

X = np.array([0.5, -1.0, 2.0])


@op
def clipped(x, *, bound):
    return x


@clipped.defvjp
def clipped_pullback(x, y, d_y, *, bound):
    d_x[i] = min(max(d_y[i], -bound), bound)
    return d_x


@op
def log1pexp(x):
    return np.log(1 + np.exp(x))


@log1pexp.defjvp
def log1pexp_pushforward(x, y, t_x):
    return t_x * (1 - np.exp(-y))


@op
def scaled(x, s):
    y[i] = 2.0 * s * x[i]
    return y, s * s


@scaled.defvjp
def scaled_pullback(x, s, results, cotangents):
    y, _ = results
    d_y, d_square = cotangents
    d_x[i] = 10.0 * s * d_y[i]
    return d_x, (d_y * y).sum() / s + 100.0 * d_square


def test_a_pullback_replaces_the_derivative():
    weights = np.array([-3.0, 0.25, 5.0])

    def loss(x, w):
        return (clipped(x, bound=1.5) * w).sum()

    np.testing.assert_array_equal(tc.grad(loss)(X, weights), [-1.5, 0.25, 1.5])
    np.testing.assert_array_equal(clipped(X, bound=1.5), X)
    _, pullback = tc.vjp(lambda x: clipped(x, bound=0.5), X)
    np.testing.assert_array_equal(pullback(weights)[0], [-0.5, 0.25, 0.5])


def test_interpreted_compiled_and_in_float32():
    loss = tc.grad(lambda x: (clipped(x, bound=0.75) ** 2).sum())
    expected = np.clip(2 * X, -0.75, 0.75)
    np.testing.assert_array_equal(loss(X), expected)
    np.testing.assert_array_equal(loss.interpret(X), expected)
    single = loss(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, expected)


def test_a_pushforward_serves_all_modes():
    sigmoid = 1 / (1 + np.exp(-X))
    np.testing.assert_allclose(tc.jvp(log1pexp, (X,), (np.ones(3),))[1], sigmoid)
    np.testing.assert_allclose(tc.grad(lambda x: log1pexp(x).sum())(X), sigmoid)
    np.testing.assert_allclose(tc.hvp(lambda x: log1pexp(x).sum(), X, np.ones(3)), sigmoid * (1 - sigmoid))
    # exp(1000) is inf, and the derivative of log(1 + exp(x)) as written is NaN there.
    np.testing.assert_allclose(tc.grad(lambda x: log1pexp(x).sum())(np.array([1000.0, 0.0])), [1.0, 0.5])


def test_a_pushforward_is_transposed_for_gradients():
    @op
    def product(x, w):
        y[i] += w[i, j] * x[j]
        return y

    @product.defjvp
    def product_pushforward(x, w, y, t_x, t_w):
        t[i] += 3 * w[i, j] * t_x[j] + 3 * t_w[i, j] * x[j]
        return t

    w, weights = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([1.0, -2])
    d_x, d_w = tc.grad(lambda x, w, s: (product(x, w) * s).sum(), argnums=(0, 1))(X, w, weights)
    np.testing.assert_allclose(d_x, 3 * weights @ w)
    np.testing.assert_allclose(d_w, 3 * np.outer(weights, X))


def test_several_arguments_and_results():
    def loss(x, s):
        y, square = scaled(x, s)
        return y.sum() + square

    d_x, d_s = tc.grad(loss, argnums=(0, 1))(X, np.float64(3.0))
    np.testing.assert_allclose(d_x, np.full(3, 30.0))
    np.testing.assert_allclose(d_s, (2 * X).sum() + 100.0)
    # A result without a cotangent counts as zeros.
    np.testing.assert_allclose(tc.grad(lambda s: scaled(X, s)[1])(np.float64(3.0)), 100.0)
    # A run-time number is differentiated like an array.
    np.testing.assert_allclose(tc.grad(loss, argnums=1)(X, 3.0), (2 * X).sum() + 100.0)


def test_the_transpose_of_a_pullback_is_its_pushforward():
    _, tangents = tc.jvp(scaled, (X, np.float64(3.0)), (np.ones(3), np.float64(0.0)))
    np.testing.assert_allclose(tangents[0], np.full(3, 30.0))
    np.testing.assert_allclose(tangents[1], 0.0)
    seed, direction = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, 4.0])
    _, pullback = tc.vjp(scaled, X, np.float64(3.0))
    pulled = pullback((seed, np.float64(0.7)))
    _, (t_y, t_square) = tc.jvp(scaled, (X, np.float64(3.0)), (direction, np.float64(0.3)))
    np.testing.assert_allclose(pulled[0] @ direction + pulled[1] * 0.3, seed @ t_y + 0.7 * t_square)


def test_rules_inside_operations_and_second_derivatives():
    @op
    def energy(x):
        y[i] = clipped(x, bound=100.0)[i] ** 3
        E[()] += y[i]
        return E

    np.testing.assert_allclose(tc.grad(energy)(X), 3 * X**2)
    np.testing.assert_allclose(tc.grad(lambda x: tc.grad(energy)(x).sum())(X), 6 * X)

    @op
    def step(x):
        g = tc.grad(energy)(x)
        return x - 0.1 * g

    np.testing.assert_allclose(step(X), X - 0.3 * X**2)


def test_methods_share_the_rules_of_their_class():
    class Layer:
        def __init__(self, factor):
            self.factor = factor

        @op
        def forward(self, x):
            return x * self.factor

        @forward.defvjp
        def forward_pullback(self, x, y, d_y):
            return d_y * self.factor * 10.0

    one, two = Layer(1.0), Layer(2.0)
    np.testing.assert_allclose(tc.grad(lambda x: one.forward(x).sum())(X), np.full(3, 10.0))
    np.testing.assert_allclose(tc.grad(lambda x: two.forward(x).sum())(X), np.full(3, 20.0))


def test_a_rule_given_later_takes_effect():
    @op
    def doubled(x):
        return 2.0 * x

    gradient = tc.grad(lambda x: doubled(x).sum())
    np.testing.assert_array_equal(gradient(X), np.full(3, 2.0))

    @doubled.defvjp
    def doubled_pullback(x, y, d_y):
        return 7.0 * d_y

    np.testing.assert_array_equal(gradient(X), np.full(3, 7.0))

    @doubled.defvjp
    def doubled_otherwise(x, y, d_y):
        return 9.0 * d_y

    np.testing.assert_array_equal(gradient(X), np.full(3, 9.0))


def test_integers_and_numbers_have_no_adjoint():
    @op
    def picked(x, ids, power):
        y[i] = x[ids[i]] ** power
        return y

    @picked.defvjp
    def picked_pullback(x, ids, power, y, d_y):
        d_x = tc.output(x.shape[0])
        d_x[ids[i]] += power * d_y[i]
        return d_x, None, None

    ids = np.array([2, 2, 0])
    np.testing.assert_allclose(tc.grad(lambda x: picked(x, ids, 2).sum())(X), [2.0, 0.0, 4.0])


def test_the_whole_function_may_be_the_one_with_the_rule():
    @op
    def total(x):
        return x.sum()

    @total.defvjp
    def total_pullback(x, y, d_y):
        return 0.0 * x + 4.0 * d_y

    np.testing.assert_array_equal(tc.grad(total)(X), np.full(3, 4.0))
    assert "4.0" in tc.grad(total).explain("ir", X)


def message(function, *arguments):
    with pytest.raises(Exception) as caught:  # noqa: PT011  # the type is part of what is compared
        function(*arguments)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_wrong_rules():
    @op
    def pair(x, y):
        return x * y

    @pair.defvjp
    def too_few(x, y, z, d_z):
        return d_z * y

    found = message(tc.grad(lambda x: pair(x, x).sum()), X)
    assert "the pullback rule `too_few` of `pair` returns one value, but `pair` has 2 positional arguments" in found
    assert "return a tuple with one adjoint per argument, None for those without a derivative" in found

    @pair.defvjp
    def wrong_shape(x, y, z, d_z):
        return d_z.sum(), None

    found = message(tc.grad(lambda x: pair(x, x).sum()), X)
    assert "an adjoint has shape [], but `x`, the argument of `pair` has shape [x_0]" in found

    @pair.defvjp
    def wrong_parameters(x, d_z):
        return d_z, d_z

    found = message(tc.grad(lambda x: pair(x, x).sum()), X)
    assert "takes 2 positional arguments, but is called with 4" in found
    assert "the arguments of `pair`, its result, and the cotangents of the result" in found


def test_extents_that_do_not_agree():
    @op
    def same(x):
        return 1.0 * x

    @same.defvjp
    def shortened(x, y, d_y):
        return d_y[1:]

    with pytest.raises(ShapeError, match="an adjoint has another shape than `x`, the argument of `same`"):
        tc.grad(lambda x: same(x).sum())(X)


def test_what_a_function_with_a_rule_may_read():
    @op
    def outer(x):
        @op
        def inner(y):
            return x * y

        @inner.defvjp
        def inner_pullback(y, z, d_z):
            return d_z

        return inner(x).sum()

    found = message(tc.grad(outer), X)
    assert "`inner` has a derivative rule, but reads `x`, which is no argument of it" in found
    assert "pass it as an argument, to the function and to its rule" in found
    with pytest.raises(DifferentiationError, match="gives no derivative by s, which is no argument"):
        tc.grad(lambda x, s: clipped(x, bound=s).sum(), argnums=1)(X, 2.0)


def test_code_that_changes_memory_has_no_rules():
    @cd
    def update(p):
        p -= 1.0

    with pytest.raises(DifferentiationError, match="`update` is a @cd function"):

        @update.defvjp
        def update_pullback(p, result, d):
            return d

    with pytest.raises(DslSyntaxError, match="defvjp takes a function, not a int"):
        log1pexp.defvjp(3)


def test_a_rule_that_is_not_linear_serves_one_mode():
    @op
    def kept(x):
        return 1.0 * x

    @kept.defvjp
    def squared(x, y, d_y):
        return d_y * d_y

    np.testing.assert_array_equal(tc.vjp(kept, X)[1](X)[0], X * X)
    with pytest.raises(DifferentiationError, match="is not linear in its cotangents"):
        tc.jvp(kept, (X,), (X,))


def test_rules_are_part_of_the_program():
    text = clipped.explain("ir", X, bound=1.0)
    assert "pullback" in text
    assert "= min(max(d_x[i], -bound), bound)" in text
    # Running does not need them; what a gradient is, does.
    np.testing.assert_array_equal(clipped.interpret(X, bound=1.0), X)
    assert "= min(max(" in clipped.explain("grad", X, bound=1.0)
    assert clipped(np.array([3, 4]), bound=1.0).tolist() == [3, 4]
    assert "pullback" not in clipped.explain("ir", np.array([3, 4]), bound=1.0)


@op
def weighted(d, x):
    return d * x


@weighted.defvjp
def weighted_pullback(d, x, y, d_y):
    return d_y * x, 10.0 * d_y * d


@op
def squares(x):
    return x * x


@squares.defvjp
def squares_pullback(x, y, d_y):
    return 2.0 * weighted(d_y, x)


def test_rules_hold_for_all_directions_of_a_jacobian():
    jacobian = tc.jacobian(squares, mode="reverse")
    np.testing.assert_allclose(jacobian(X), np.diag(2 * X))
    # The Jacobian is 2 d x in a function with a rule that says 20 d for its derivative by x.
    weights = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(tc.grad(lambda x: (jacobian(x) * weights).sum())(X), 20 * np.diag(weights))
    expected = np.zeros((3, 3, 3))
    expected[range(3), range(3), range(3)] = 20.0
    np.testing.assert_allclose(tc.jacobian(jacobian, mode="forward")(X), expected)
    np.testing.assert_allclose(tc.jacobian(jacobian, mode="reverse")(X), expected)


@op
def recursive(x):
    return x**3


@recursive.defvjp
def recursive_pullback(x, y, d_y):
    return d_y * recursive(x)


def test_an_operation_in_its_own_rule_is_what_its_statements_say():
    np.testing.assert_allclose(tc.grad(lambda x: recursive(x).sum())(X), X**3)
    np.testing.assert_allclose(tc.hvp(lambda x: recursive(x).sum(), X, np.ones(3)), 3 * X**2)


def test_each_mode_has_its_own_rule_where_there_are_both() -> None:
    @op
    def sine(x):
        y[i] = sin(x[i])
        return y

    @sine.defvjp
    def pullback(x, y, d_y):
        return 10 * d_y

    @sine.defjvp
    def pushforward(x, y, t_x):
        return 100 * t_x

    x = np.ones(3)
    np.testing.assert_array_equal(tc.grad(lambda x: sine(x).sum())(x), [10, 10, 10])
    assert tc.jvp(lambda x: sine(x).sum(), (x,), (x,))[1] == 300


def test_results_of_one_label_have_cotangents_of_their_own() -> None:
    @op
    def square(z):
        s[i] = z[i] * z[i]
        return s

    @op
    def squares(x, y):
        return square(x), square(y)

    @squares.defvjp
    def pullback(x, y, results, seeds):
        return 2 * x * seeds[0], 2 * y * seeds[1]

    @op
    def loss(x, y):
        u, v = squares(x, y)
        return (u**3).sum() + v.sum()

    x, y = np.array([0.5, 2.0]), np.array([3.0, 4.0])
    d_x, d_y = tc.grad(loss, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(d_x, 6 * x**5)
    np.testing.assert_allclose(d_y, 2 * y)

    # Arguments of one label, derived inside of an op.
    @op
    def gradients(x, y):
        return tc.grad(lambda a, b: (a**3).sum() + (a * b).sum(), argnums=(0, 1))(square(x), square(y))

    d_a, d_b = gradients(x, y)
    np.testing.assert_allclose(d_a, 3 * x**4 + y**2)
    np.testing.assert_allclose(d_b, x**2)
