"""`jvp`, `linearize`, `hvp`, `jacobian` and `hessian`: JAX's signatures, every structure, and every order."""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.jax_functions import compiled

X = np.array([0.5, -1.0, 2.0])
W = np.array([1.0, 10.0, 100.0])
V = np.array([0.3, 0.7, -0.2])
SCALE = np.array([1.0, 2.0, 3.0])
Pair = namedtuple("Pair", ["first", "second"])


@op
def weighted(x, w):
    t[()] += x[i] * x[i] * w[i]
    return t


@op
def squares(x):
    y[i] = x[i] * x[i]
    return y


@op
def looked_up(table, ids, mask):
    y[i] = table[ids[i]] * mask[i]
    return y


@op
def scaled(x, *, factor=1.0, twice: bool = False):
    t[()] += x[i] * x[i] * factor * (2 if twice else 1)
    return t


@op
def with_global(x):
    t[()] += x[i] * x[i] * SCALE[i]
    return t


@op
def network(w, v, x):
    h[n, k] = tanh(sum(w[k, d] * x[n, d]))
    y[n] += v[k] * h[n, k]
    return {"y": y, "parts": [h, (y * y).sum()]}


def same(found: Any, wanted: Any, **tolerance: float) -> None:
    """Equal arrays in the same structure."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            same(found[key], value, **tolerance)
    elif isinstance(wanted, tuple | list):
        assert type(found) is type(wanted)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other, **tolerance)
    elif wanted is None:
        assert found is None
    else:
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, **(tolerance or {"rtol": 1e-12, "atol": 1e-12}))


# -- jvp -----------------------------------------------------------------------------------------------------


def test_jvp_gives_values_and_tangents() -> None:
    value, tangent = tc.jvp(weighted, (X, W), (V, X))
    assert value == (X * X * W).sum()
    np.testing.assert_allclose(tangent, (2 * X * V * W + X * X * X).sum())
    same(tc.jvp(squares, (X,), (V,)), (X * X, 2 * X * V))
    same(tc.jvp(squares, [X], [V]), (X * X, 2 * X * V))


def test_jvp_moves_some_arguments_only() -> None:
    same(tc.jvp(weighted, (X, W), (None, V)), ((X * X * W).sum(), (X * X * V).sum()))


def test_tangents_of_integers_are_none_or_zeros() -> None:
    table, ids, mask = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([True, True, False])
    wanted = (np.array([3.0, 1, 0]), np.array([100.0, 1, 0]))
    same(tc.jvp(looked_up, (table, ids, mask), (W, None, None)), wanted)
    float0 = np.zeros(3, [("float0", "V")])
    same(tc.jvp(looked_up, (table, ids, mask), (W, np.zeros_like(ids), float0)), wanted)
    with pytest.raises(tc.DtypeError, match=r"argument 1 of looked_up\(\) is int64: integer and bool tensors have no"):
        tc.jvp(looked_up, (table, ids, mask), (W, ids, None))


def test_jvp_keeps_structures_and_has_no_tangent_for_what_is_not_real() -> None:
    def several(x: Any) -> Any:
        return {"y": squares(x), "rest": [x.sum(), Pair(2 * x, x > 0)], "count": 3}

    value, tangent = tc.jvp(several, (X,), (V,))
    assert value["count"] == 3
    assert type(tangent["rest"][1]) is Pair
    assert tangent["rest"][1].second is None
    assert tangent["count"] is None
    same(tangent["y"], 2 * X * V)
    same(tangent["rest"][0], V.sum())
    same(tangent["rest"][1].first, 2 * V)


def test_jvp_with_aux() -> None:
    def loss(x: Any) -> Any:
        return (x * x).sum(), {"doubled": 2 * x, "name": "loss"}

    value, tangent, aux = tc.jvp(loss, (X,), (V,), has_aux=True)
    same((value, tangent), ((X * X).sum(), (2 * X * V).sum()))
    same(aux["doubled"], 2 * X)
    assert aux["name"] == "loss"
    with pytest.raises(tc.DifferentiationError, match=r"with has_aux, squares\(\) must return a pair \(outputs, aux\)"):
        tc.jvp(squares, (X,), (V,), has_aux=True)


def test_functions_of_every_kind() -> None:
    class Model:
        def __init__(self, power: int) -> None:
            self.power = power

        @op
        def staged(self, x):
            return (x**self.power).sum()

        def plain(self, x: Any) -> Any:
            return (x**self.power).sum()

    wanted = ((X**3).sum(), (3 * X * X * V).sum())
    model = Model(3)
    functions = (model.staged, model.plain, partial(lambda x, *, p: (x**p).sum(), p=3), lambda *a: (a[0] ** 3).sum())
    for function in functions:
        same(tc.jvp(function, (X,), (V,)), wanted)
    same(tc.jvp(lambda x: scaled(x, factor=3.0, twice=True), (X,), (V,)), (6 * (X * X).sum(), 12 * (X * V).sum()))
    same(tc.jvp(lambda a: a**3, (2.0,), (1.0,)), (8.0, 12.0))
    same(tc.jvp(lambda x, w=2.0: x * w, (X,), (V,)), (2 * X, 2 * V))


def test_a_function_is_staged_once_however_often_it_is_differentiated() -> None:
    runs = []

    def counted(x: Any) -> Any:
        runs.append(x)
        return x * x

    for _ in range(3):
        tc.jvp(counted, (X,), (V,))
    assert len(runs) == 1
    for _ in range(3):
        tc.vjp(counted, X)[1](V)
    assert len(runs) == 2


# -- linearize and vjp: the derivative at a point ------------------------------------------------------------


def test_linearize_gives_a_linear_function() -> None:
    value, f_jvp = tc.linearize(weighted, X, W)
    assert value == (X * X * W).sum()
    for v, u in ((V, X), (W, V), (V + W, X + V)):
        np.testing.assert_allclose(f_jvp(v, u), (2 * X * v * W + X * X * u).sum())
    value, f_jvp, aux = tc.linearize(lambda x: ({"y": squares(x), "n": 2}, x + 1), X, has_aux=True)
    same(aux, X + 1)
    same(f_jvp(V), {"y": 2 * X * V, "n": None})


def test_what_is_stored_are_values_that_the_linear_part_reads() -> None:
    @op
    def chain(x, w):
        h[i] = exp(x[i])
        y[i] = h[i] * w[i]
        return y

    for derivative, direction in ((tc.vjp, (V,)), (tc.linearize, (V, W))):
        _, linear = derivative(chain, X, W)
        stored = {tensor.name for tensor in linear.program.inputs[: len(linear.stored)]}
        assert stored == {"w", "h"}
        assert "exp" not in linear.explain()
        linear(*direction)


def test_a_derivative_at_a_point_stays_there() -> None:
    x = X.copy()
    y, pullback = tc.vjp(np.exp, x)
    _, f_jvp = tc.linearize(lambda x: x**3, x)
    wanted = np.exp(X) * V
    x[:] = 100
    y[:] = 100
    same(pullback(V)[0], wanted)
    same(f_jvp(V), 3 * X * X * V)


def test_a_derivative_at_a_point_keeps_what_globals_held() -> None:
    held = SCALE.copy()
    _, pullback = tc.vjp(with_global, X)
    try:
        SCALE[:] = 0
        same(pullback(1.0)[0], 2 * X * held)
    finally:
        SCALE[:] = held
    same(tc.hvp(with_global, X, V), 2 * held * V)


def test_cotangents_of_integers_and_of_constants_do_not_matter() -> None:
    _, pullback = tc.vjp(lambda x: {"y": x * x, "above": x > 0, "name": "f"}, X)
    for given in (None, np.zeros(3)):
        same(pullback({"y": V, "above": given, "name": given})[0], 2 * X * V)


# -- hvp, jacobian, hessian ----------------------------------------------------------------------------------


def test_hvp_of_one_argument_and_of_several() -> None:
    same(tc.hvp(lambda x: (x**3).sum(), X, V), 6 * X * V)
    same(tc.hvp(weighted, (X, W), (V, X)), (2 * W * V + 2 * X * X, 2 * X * V))
    same(tc.hvp(lambda t, i: (t[i] ** 3).sum(), (X, np.array([0, 0])), (V, None)), (12 * X * V * [1, 0, 0], None))


def test_hvp_moves_some_arguments_only() -> None:
    @op
    def cubic(x, w, s):
        return sum(x[i] * x[i] * w[i]) * s

    @op
    def twice(x, w, s):
        return tc.hvp(cubic, (x, w, s), (V, None, None))

    zeros = np.zeros(X.shape)
    for moved in ((V, None, None), (None, V, None), (None, None, 1.5), (V, None, 1.5), (None, None, None)):
        filled = tuple(zero if t is None else t for t, zero in zip(moved, (zeros, zeros, 0.0), strict=True))
        same(tc.hvp(cubic, (X, X + 1, 2.0), moved), tc.hvp(cubic, (X, X + 1, 2.0), filled))
    same(twice(X, X + 1, 2.0), tc.hvp(cubic, (X, X + 1, 2.0), (V, zeros, 0.0)))
    same(tc.hvp(lambda x: (x**3).sum(), X, None), zeros)


def test_jacobians_nest_over_outputs_and_then_over_arguments() -> None:
    def several(x: Any, w: Any) -> Any:
        return {"y": x * w, "rest": [(x * w).sum(), x > w]}

    x, w = np.diag(X), np.diag(W)
    same(tc.jacobian(several)(X, W), {"y": w, "rest": [W, None]})
    same(tc.jacobian(several, argnums=(1, 0))(X, W), {"y": (x, w), "rest": [(X, W), None]})
    same(tc.jacobian(several, argnums=(-1,))(X, W), {"y": (x,), "rest": [(X,), None]})
    found, aux = tc.jacobian(lambda x: (squares(x), {"n": 1, "x": 2 * x}), has_aux=True)(X)
    same(found, 2 * x)
    same(aux, {"n": 1, "x": 2 * X})


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_jacobians_have_the_outputs_shape_then_the_arguments(mode: str | None) -> None:
    w, v, x = np.ones((4, 2)) * 0.1, np.arange(4.0), np.arange(6.0).reshape(3, 2)
    found = tc.jacobian(network, argnums=(0, 1), mode=mode).interpret(w, v, x)
    assert [block.shape for block in found["y"]] == [(3, 4, 2), (3, 4)]
    assert [block.shape for block in found["parts"][0]] == [(3, 4, 4, 2), (3, 4, 4)]
    assert [block.shape for block in found["parts"][1]] == [(4, 2), (4,)]


def test_hessians_nest_over_arguments_twice() -> None:
    x, w = np.diag(2 * X), np.diag(2 * W)
    same(tc.hessian(weighted)(X, W), w)
    same(tc.hessian(weighted, argnums=(0, 1))(X, W), ((w, x), (x, np.zeros((3, 3)))))
    found, aux = tc.hessian(lambda x: ((x**3).sum(), x + 1), has_aux=True)(X)
    same(found, np.diag(6 * X))
    same(aux, X + 1)
    same(tc.hessian(scaled)(X, factor=3.0, twice=True), 12 * np.eye(3))
    same(tc.hessian(lambda a: a**3)(2.0), 12.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_types_of_derivatives(dtype: str) -> None:
    x, v = X.astype(dtype), V.astype(dtype)
    assert [part.dtype for part in tc.jvp(squares, (x,), (v,))] == [dtype, dtype]
    assert tc.jacobian(squares)(x).dtype == dtype
    assert tc.hvp(weighted, (x, W), (v, W))[0].dtype == dtype
    # A block has the type of the output.
    assert tc.jacobian(weighted).interpret(x, W).dtype == np.float64


@pytest.mark.parametrize("extent", [0, 1])
def test_small_extents(extent: int) -> None:
    x, v = X[:extent], V[:extent]
    same(tc.jvp(squares, (x,), (v,)), (x * x, 2 * x * v))
    same(tc.linearize(squares, x)[1](v), 2 * x * v)
    same(tc.jacobian(squares)(x), np.diag(2 * x).reshape(extent, extent))
    same(tc.hvp(lambda x: (x**3).sum(), x, v), 6 * x * v)
    same(tc.hessian(lambda x: (x**3).sum())(x), np.diag(6 * x).reshape(extent, extent))


# -- every order, everywhere ---------------------------------------------------------------------------------


def test_derivatives_of_derivatives() -> None:
    def cubes(x: Any) -> Any:
        return (x**3).sum()

    third = np.zeros((3, 3, 3))
    third[np.arange(3), np.arange(3), np.arange(3)] = 6
    same(tc.grad(lambda x: tc.jvp(cubes, (x,), (V,))[1])(X), 6 * X * V)
    same(tc.jvp(tc.grad(cubes), (X,), (V,)), (3 * X * X, 6 * X * V))
    same(tc.jacobian(tc.grad(cubes))(X), np.diag(6 * X))
    same(tc.jacobian(tc.jacobian(cubes))(X), np.diag(6 * X))
    same(tc.jacobian(tc.hessian(cubes))(X), third)
    same(tc.hessian(lambda x: tc.grad(cubes)(x) @ V)(X), np.diag(6 * V))
    same(tc.grad(lambda x: tc.hvp(cubes, x, V) @ V)(X), 6 * V * V)
    same(tc.grad(lambda x: tc.vjp(squares, x)[1](3 * x)[0].sum())(X), 12 * X)
    same(tc.grad(lambda x: tc.linearize(squares, x)[1](x).sum())(X), 4 * X)

    def along(f: Any) -> Any:
        return lambda x: tc.jvp(f, (x,), (V,))[1]

    same(along(along(along(cubes)))(X), 6 * (V**3).sum())


def test_directions_do_not_mix_between_levels() -> None:
    assert tc.grad(lambda x: x * tc.grad(lambda y: x + y)(2.0))(1.0) == 1
    assert tc.jvp(lambda x: x * tc.jvp(lambda y: x * y, (2.0,), (1.0,))[1], (3.0,), (1.0,))[1] == 6
    same(tc.grad(lambda x: tc.grad(lambda w: (w * w * x).sum())(x).sum())(X), 4 * X)


@op
def newton_step(x, w):
    slope = tc.grad(quartic)(x, w)
    curvature = tc.hessian(quartic)(x, w)
    step[i] = x[i] - slope[i] / curvature[i, i]
    return step


@op
def quartic(x, w):
    t[()] += w[i] * x[i] ** 4
    return t


def test_every_derivative_inside_an_op() -> None:
    @op
    def everything(x, w):
        y, t = tc.jvp(squares, (x,), (w,))
        value, pullback = tc.vjp(weighted, x, w)
        dx, dw = pullback(2.0)
        _, f_jvp = tc.linearize(squares, x)
        j = tc.jacobian(squares)(x)
        d[i] = j[i, i]
        return y, t, value, dx, dw, f_jvp(w), tc.hvp(weighted, (x, w), (w, x)), d

    wanted = (X * X, 2 * X * W, (X * X * W).sum(), 4 * X * W, 2 * X * X, 2 * X * W)
    same(everything(X, W), (*wanted, (2 * W * W + 2 * X * X, 2 * X * W), 2 * X))
    same(newton_step(X, W), X - X / 3)
    same(tc.jacobian(newton_step)(X, W), np.eye(3) * 2 / 3)


def test_functions_differentiated_inside_ops_see_what_is_around_them() -> None:
    @op
    def outer(x, w):
        y = x * w
        (N,) = x.shape

        @op
        def inner(v):
            t[()] += v[i] * v[i] * y[i] * N
            return t

        return tc.grad(inner)(w), tc.hvp(lambda v: inner(v) + (v * y).sum(), w, x)

    same(outer(X, W), (6 * W * X * W, 6 * X * W * X))
    same(tc.grad(lambda x, w: outer(x, w)[0].sum(), argnums=(0, 1))(X, W), (6 * W * W, 12 * X * W))


def test_derivatives_inside_code() -> None:
    @cd
    def descend(p, *, rate):
        p -= rate * tc.grad(lambda v: (v * v * p).sum())(p)

    p = X.copy()
    descend(p, rate=0.5)
    same(p, X - X * X)


def test_a_pullback_may_be_called_in_a_function_that_is_staged_later() -> None:
    _, pullback = tc.vjp(squares, X)

    @op
    def twice(c):
        return 2 * pullback(c)[0]

    same(twice(V), 4 * X * V)
    same(tc.grad(lambda c: (pullback(c)[0] * c).sum())(V), 4 * X * V)


def test_open_extents_around_a_derivative() -> None:
    @op
    def shifted(x):
        padded: real[M]
        padded[i + 1] += x[i]
        slope = tc.grad(lambda v: (v * v * v).sum())(padded)
        padded[i + 2] += x[i]
        return padded, slope

    padded, slope = shifted(X)
    same(padded, np.array([0, 0.5, -0.5, 1, 2]))
    same(slope, 3 * np.array([0, 0.5, -1, 2, 0]) ** 2)


# -- against JAX ---------------------------------------------------------------------------------------------


def test_all_derivatives_of_a_network_agree_with_jax() -> None:
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(3)
    w, v, x = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=(3, 2))
    dw, dv = rng.normal(size=(4, 2)), rng.normal(size=4)

    def other(w: Any, v: Any, x: Any) -> Any:
        h = jax.numpy.tanh(x @ w.T)
        y = h @ v
        return {"y": y, "parts": [h, (y * y).sum()]}

    def loss(w: Any, v: Any) -> Any:
        return network(w, v, x)["parts"][1]

    def other_loss(w: Any, v: Any) -> Any:
        return other(w, v, x)["parts"][1]

    with jax.enable_x64(True):
        zero = np.zeros_like(x)
        pushed = compiled(lambda at, along: jax.jvp(other, at, along))((w, v, x), (dw, dv, zero))
        same(tc.jvp(network, (w, v, x), (dw, dv, zero)), pushed, rtol=1e-10)
        blocks = compiled(jax.jacrev(other, argnums=(0, 1)))(w, v, x)
        for mode in ("forward", "reverse"):
            same(tc.jacobian(network, argnums=(0, 1), mode=mode).interpret(w, v, x), blocks, rtol=1e-10, atol=1e-13)
        wanted = compiled(lambda at, along: jax.jvp(jax.grad(other_loss, argnums=(0, 1)), at, along)[1])(
            (w, v), (dw, dv)
        )
        same(tc.hvp(loss, (w, v), (dw, dv)), wanted, rtol=1e-10)
        second = compiled(jax.hessian(other_loss, argnums=(0, 1)))(w, v)
        same(tc.hessian(loss, argnums=(0, 1)).interpret(w, v), second, rtol=1e-10, atol=1e-13)


def test_hessians_are_symmetric() -> None:
    rng = np.random.default_rng(5)
    w, v, x = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=(3, 2))
    one, other = ((rng.normal(size=(4, 2)), rng.normal(size=4)) for _ in range(2))

    def loss(w: Any, v: Any) -> Any:
        return network(w, v, x)["parts"][1]

    def inner(left: Any, right: Any) -> float:
        return float(sum((a * b).sum() for a, b in zip(left, right, strict=True)))

    left, right = (tc.hvp(loss, (w, v), direction) for direction in (one, other))
    np.testing.assert_allclose(inner(left, other), inner(right, one))


def test_check_grads_checks_forward_mode() -> None:
    tc.check_grads(weighted, (X, W), modes=("fwd", "rev"))
    with pytest.raises(tc.ConfigurationError, match="choose among 'fwd' and 'rev'"):
        tc.check_grads(weighted, (X, W), modes=("forward",))

    @op
    def stopped(x):
        return stop_gradient(x)

    with pytest.raises(tc.TcdslError, match="directional derivative of output 0"):
        tc.check_grads(lambda x: (x * stopped(x)).sum(), (X,), modes=("fwd",))


# -- with rules of one's own ---------------------------------------------------------------------------------


@op
def rounded(x):
    y[i] = round(2 * x[i]) / 2
    return y


@rounded.defvjp
def straight_through(x, y, d_y):
    return d_y


@op
def steep(x):
    y[i] = exp(x[i])
    return y


@steep.defjvp
def three_times_as_steep(x, y, t):
    return 3 * t * y


def test_rules_hold_in_every_derivative() -> None:
    y = np.exp(np.round(2 * X) / 2)

    def f(x: Any) -> Any:
        return steep(rounded(x))

    for mode in ("forward", "reverse"):
        same(tc.jacobian(f, mode=mode)(X), np.diag(3 * y))
    same(tc.jvp(f, (X,), (V,))[1], 3 * y * V)
    same(tc.linearize(f, X)[1](V), 3 * y * V)
    same(tc.vjp(f, X)[1](V)[0], 3 * y * V)
    same(tc.hessian(lambda x: f(x).sum())(X), np.diag(9 * y))


def test_rules_hold_in_derivatives_of_derivatives_inside_functions() -> None:
    y = np.exp(X)

    def pulled(x: Any) -> Any:
        return tc.vjp(steep, x)[1](x)[0].sum()  # 3 * x * y

    def pushed(x: Any) -> Any:
        return tc.linearize(lambda x: rounded(steep(x)), x)[1](x).sum()

    for function in (pulled, pushed):
        same(tc.grad(function)(X), 3 * y + 9 * X * y)
    same(tc.grad(lambda x: tc.hvp(lambda x: steep(x).sum(), x, V).sum())(X), 27 * y * V)


def test_derivatives_explain_themselves() -> None:
    def loss(x: Any) -> Any:
        return (x**3).sum()

    assert "program hessian_weighted" in tc.hessian(weighted).explain("ir", X, W)
    assert "def weighted(x, w):" in tc.jacobian(weighted).explain("source")
    assert "return (x**3).sum()" in tc.grad(tc.grad(loss)).explain("source")
    assert repr(tc.jacobian(weighted, argnums=(0, 1))) == "<Jacobian by (0, 1) of weighted>"
    text = tc.vjp(loss, X)[1].explain()
    assert "d_x" in text
    assert repr(text) == str(text)
