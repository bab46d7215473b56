"""Shapes of parameters in ops with loops and branches that later uses say, as they may without loops."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import ShapeError

GENERATOR = np.random.default_rng(83)
X, Y = GENERATOR.random((5, 3)), GENERATOR.random(6)


@op
def hidden_by_hand(V, W, U, x: real[T, D]):
    h = V @ x[0]
    for t in range(T):
        h = tanh(W @ h + U @ x[t])
    return h


def made() -> dict[str, Any]:
    """Ops whose parameters nothing has said anything of."""

    @op
    def hidden(x: real[T, D]):
        h = "V" @ x[0]
        for t in range(T):
            h = tanh("W" @ h + "U" @ x[t])
        return h

    @op
    def chosen(x: real[T, D]):
        h = "V" @ x[0]
        if x[0, 0] > 0.5:
            h = tanh("W" @ h)
        else:
            g = "U" @ h
            h = g + h
        return h

    @op
    def until(x: real[T, D]):
        h, n = "V" @ x[0], 0
        while n < 4 and (h * h).sum() < 1e9:
            h = tanh("W" @ h + "U" @ x[n])
            n = n + 1
        return h

    @op
    def with_number(x: real[T, D]):
        h, total = "V" @ x[0], 0.0
        for row in x:
            h = tanh("W" @ h + "U" @ row)
            total = total + (h * h).sum()
        return {"state": h, "total": total, "rows": x}

    @op
    def outer(x: real[T, D]):
        return 2 * hidden(x)

    return {each.__name__: each for each in (hidden, chosen, until, with_number, outer)}


def values_of(function: Any) -> dict[str, np.ndarray]:
    return {name.partition(".")[0]: np.array(each.value) for name, each in function.parameters.items()}


def by_hand(name: str, p: dict[str, np.ndarray], x: np.ndarray = X) -> Any:
    h, total = p["V"] @ x[0], 0.0
    if name == "chosen":
        return np.tanh(p["W"] @ h) if x[0, 0] > 0.5 else p["U"] @ h + h
    for row in x[:4] if name == "until" else x:
        h = np.tanh(p["W"] @ h + p["U"] @ row)
        total += (h * h).sum()
    return 2 * h if name == "outer" else (h, total) if name == "with_number" else h


@pytest.mark.parametrize("name", ["hidden", "chosen", "until", "outer"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_later_use_says_how_large_parameters_are(name: str, dtype: str) -> None:
    functions = made()
    found = functions[name](tc.tensor(X.astype(dtype)))
    assert "..." in repr(found)
    summed = found + tc.tensor(Y.astype(dtype))
    assert found.shape == (6,)
    values = values_of(functions["hidden" if name == "outer" else name])
    assert values["V"].shape == (6, 3)
    assert values["W"].shape == (6, 6)
    wanted = by_hand(name, values, X.astype(dtype))
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(np.asarray(summed), wanted + Y.astype(dtype), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance)
    assert found.dtype == dtype


def test_all_results_of_a_call_are_staged_once() -> None:
    function = made()["with_number"]
    found = function(tc.tensor(X))
    head = tc.param("head", o=2) @ found["state"] + 0 * (found["state"] * tc.tensor(Y)).sum()
    state, total = by_hand("with_number", values_of(function))
    np.testing.assert_allclose(np.asarray(found["total"]), total, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(found["state"]), state, rtol=1e-12)
    np.testing.assert_array_equal(np.asarray(found["rows"]), X)
    assert head.shape == (2,)
    assert found["state"].recorded.program is found["total"].recorded.program


def test_gradients_by_parameters_that_a_loss_tells() -> None:
    function = made()["hidden"]
    x = tc.tensor(X)
    loss = ((function(x) - tc.tensor(Y)) ** 2).sum()
    step = tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.1))
    before = values_of(function)
    step.run()

    def wanted(V: Any, W: Any, U: Any) -> Any:
        return ((hidden_by_hand(V, W, U, X) - Y) ** 2).sum()

    slopes = tc.grad(wanted, argnums=(0, 1, 2))(before["V"], before["W"], before["U"])
    for name, slope in zip("VWU", slopes, strict=True):
        np.testing.assert_allclose(function.parameters[name].grad, slope, rtol=1e-10)
        np.testing.assert_allclose(function.parameters[name].value, before[name] - 0.1 * slope, rtol=1e-10)
    assert {each.label for each in tc.train.parameters(loss)} == {"V", "W", "U"}


def test_a_chain_of_calls_is_told_by_its_last_use() -> None:
    h, w, u = tc.param("h"), tc.param("w"), tc.param("u")

    @op
    def run(x: real[T, D], h, w, u):
        for t in range(T):
            h = tanh(w @ h + u @ x[t])
        return h

    last = h
    for _ in range(40):
        last = run(tc.tensor(X), last, w, u)
    assert (last + tc.tensor(Y)).shape == (6,)
    wanted = np.asarray(h.value)
    for _ in range(40):
        for row in X:
            wanted = np.tanh(np.asarray(w.value) @ wanted + np.asarray(u.value) @ row)
    np.testing.assert_allclose(np.asarray(last), wanted, rtol=1e-10)
    assert (h.shape, w.shape, u.shape) == ((6,), (6, 6), (6, 3))


def test_computed_tensors_pickle_where_they_were_told() -> None:
    function = made()["hidden"]
    found = function(tc.tensor(X)) + tc.tensor(Y)
    other = pickle.loads(pickle.dumps(found))
    np.testing.assert_allclose(np.asarray(other), np.asarray(found), rtol=1e-12)


def test_what_nothing_determines_is_said_where_a_value_is_asked() -> None:
    found = made()["hidden"](tc.tensor(X))
    for _ in range(2):
        with pytest.raises(ShapeError, match="axes that nothing determines"):
            np.asarray(found)
    assert np.asarray(found * tc.tensor(Y)).shape == (6,)
