"""Loops and branches that run on tensors of graphs: the same as on arrays, with parameters declared in rounds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DslSyntaxError, ShapeError, TcdslError

GENERATOR = np.random.default_rng(19)
X, H, V = GENERATOR.random((5, 3)), GENERATOR.random(4), GENERATOR.random((3, 3))
W, U = GENERATOR.random((4, 4)), GENERATOR.random((4, 3))


@op
def rnn(x: real[T, D], h: real[H], W, U):
    for t in range(T):
        h = tanh(W @ h + U @ x[t])
    return h


@op
def history(x: real[T, D], W):
    s: real[T + 1, D]
    s[0, j] = 0.0
    for t in range(T):
        s[t + 1, j] = tanh(sum(s[t, k] * W[k, j]) + x[t, j])
    return s


@op
def halved(x, limit):
    while x.sum() > limit:
        x = x / 2
    return x


@op
def clipped(x):
    n = (x * x).sum()
    if n > 1:
        x = x / np.sqrt(n)
    return x, n if n < 9 else 9 + 0 * n


@op
def first_above(x: real[N], limit):
    for t in range(N):
        if x[t] > limit:
            return x[t] * t
    return 0 * limit


@op
def checked(x):
    assert x.sum() < 9, "too much"
    return 2 * x


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (rnn, (X, H, W, U)),
        (history, (X, V)),
        (halved, (X, np.array(1.0))),
        (clipped, (X,)),
        (clipped, (X / 9,)),
        (first_above, (H, np.array(0.5))),
        (checked, (X,)),
    ],
)
def test_tensors_and_arrays_agree(function: Any, arguments: tuple[Any, ...]) -> None:
    wanted = function(*arguments)
    found = function(*map(tc.tensor, arguments))
    for one, other in zip(
        found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,), strict=True
    ):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12)


@op
def by_sizes(x: real[N]):
    if N > 4:
        return x[4]
    return 2 * x[0]


@op
def rounds_until(x, limit):
    n = sqrt(sum(x[i] * x[i]))
    rounds = 0
    while n > limit:
        x = x / 2
        n = sqrt(sum(x[i] * x[i]))
        rounds = rounds + 1
    return x, rounds


@op
def layer(h, rounds):
    for _ in range(rounds):
        h = tanh("W"[3] @ h) + h
    return h


def test_a_parameter_in_rounds_that_a_number_says() -> None:
    made = [np.asarray(layer(tc.tensor(X[0]), rounds)) for rounds in (4, 2)]
    wanted = [X[0]]
    for _ in range(4):
        wanted.append(np.tanh(np.asarray(layer.parameters["W"].value) @ wanted[-1]) + wanted[-1])
    np.testing.assert_allclose(made, [wanted[4], wanted[2]], rtol=1e-12)


@op
def doubled(x, rounds):
    for _ in range(rounds):
        x = x * 2
    return x


def test_rounds_on_a_tensor_of_unknown_shape_are_unrolled() -> None:
    made = doubled(tc.param("p"), 3)
    assert np.asarray(made + tc.tensor(H)).shape == (4,)


@op
def in_a_block(x, limit):
    try:
        if x[0] > limit:
            y = 2 * x
            y = y * y
        else:
            y = x
    finally:
        z = y + 1
    return z


@op
def declared_before(x: real[N]):
    y: real[N]
    y[i] = 0.5
    z: real[N]
    for t in range(1, N):
        y[t] = x[t - 1]
        z[t] = y[t] + y[t - 1]
    return y, z


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (by_sizes, (H,)),
        (by_sizes, (np.arange(5.0),)),
        (in_a_block, (H, np.array(0.5))),
        (rounds_until, (8 * H, np.array(0.5))),
        (declared_before, (H,)),
    ],
)
def test_sizes_and_numbers_of_tensors_are_those_of_arrays(function: Any, arguments: tuple[Any, ...]) -> None:
    wanted, found = function(*arguments), function(*map(tc.tensor, arguments))
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert isinstance(one, tc.Tensor)
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12)


def test_what_does_not_hold_is_raised_where_the_value_is_asked() -> None:
    made = checked(tc.tensor(9 * X))
    with pytest.raises(AssertionError, match="too much"):
        np.asarray(made)


def test_loops_on_tensors_have_gradients() -> None:
    w = tc.param("w", o=4, i=4)
    loss = (rnn(tc.tensor(X), tc.tensor(H), w, tc.tensor(U)) ** 2).sum()
    tc.compile(tc.train.grad_update(loss)).run()
    wanted = tc.grad(lambda weights: (rnn(X, H, weights, U) ** 2).sum())(np.asarray(w.value))
    np.testing.assert_allclose(w.grad, wanted, rtol=1e-12)


@op
def declaring(x: real[T, D]):
    h = 0 * x[0]
    for t in range(T):
        h = tanh("W"[3] @ h + "U"[3] @ x[t] + "b")
    return h


@op
def reader(x: real[T, D], *, hidden=4):
    h = 0 * ("V"[hidden] @ x[0])
    for t in range(T):
        h = tanh("W"[hidden] @ h + "U"[hidden] @ x[t])
    return "out"[2] @ h


def unrolled(x: Any, W: Any, U: Any, b: Any) -> Any:
    h = 0 * x[0]
    for row in x:
        h = np.tanh(W @ h + U @ row + b)
    return h


def test_a_parameter_declared_in_a_round_is_one_for_all_rounds() -> None:
    made = declaring(tc.tensor(X))
    assert {name: value.value.shape for name, value in declaring.parameters.items()} == {
        "W": (3, 3),
        "U": (3, 3),
        "b": (3,),
    }
    values = {name: np.asarray(each.value) for name, each in declaring.parameters.items()}
    np.testing.assert_allclose(np.asarray(made), unrolled(X, **values), rtol=1e-12)
    tc.compile(tc.train.grad_update((made**2).sum())).run()
    for name, each in declaring.parameters.items():
        moved = {key: value.copy() for key, value in values.items()}
        sides = []
        for step in (1e-6, -2e-6):
            moved[name].flat[0] += step
            sides.append((unrolled(X, **moved) ** 2).sum())
        assert np.isclose(each.grad.flat[0], (sides[0] - sides[1]) / 2e-6, rtol=1e-6)


@op
def until_it_is_small(h):
    while (h * h).sum() > 0.5:
        h = 0.5 * tanh("A"[3] @ h)
    return h


@op
def until_it_ends(h, rounds):
    for _ in range(rounds):
        h = 0.5 * tanh("A"[3] @ h)
        if (h * h).sum() <= 0.5:
            break
    return h


@op
def a_number_of_times(h):
    for _ in tc.loop(2):
        h = 0.5 * tanh("A"[3] @ h)
    return h


@pytest.mark.parametrize(
    ("function", "numbers", "most"),
    [(until_it_is_small, (), 1000), (until_it_ends, (3,), 3), (until_it_ends, (1,), 1), (a_number_of_times, (), 2)],
)
def test_parameters_of_rounds_that_data_or_numbers_end(function: Any, numbers: tuple[int, ...], most: int) -> None:
    x = 40 * X[0]
    made = np.asarray(function(tc.tensor(x), *numbers))
    a, wanted = np.asarray(function.parameters["A"].value), x
    for _ in range(most):
        wanted = 0.5 * np.tanh(a @ wanted)
        if function is not a_number_of_times and (wanted * wanted).sum() <= 0.5:
            break
    np.testing.assert_allclose(made, wanted, rtol=1e-12)


def test_a_layer_with_a_loop_learns() -> None:
    layer = reader(hidden=5)
    loss = (layer(tc.tensor(X)) ** 2).sum()
    step = tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.1))
    losses = []
    for _ in range(3):
        step.run()
        losses.append(float(np.asarray(loss)))
    assert losses == sorted(losses, reverse=True)
    assert {name: each.value.shape for name, each in layer.parameters.items()} == {
        "V": (5, 3),
        "W": (5, 5),
        "U": (5, 3),
        "out": (2, 5),
    }


@cd
def decayed(w, rounds):
    for _ in range(rounds):
        w *= 0.5
        if w[0] < 0.1:
            w += 1


def test_code_on_tensors_loops() -> None:
    w = tc.tensor(H)
    tc.compile(decayed(w, 5)).run()
    wanted = H.copy()
    for _ in range(5):
        wanted *= 0.5
        if wanted[0] < 0.1:
            wanted += 1
    np.testing.assert_allclose(w.value, wanted)


@op
def open_output(x: real[T, D]):
    h = 0 * x[0]
    for t in range(T):
        h = tanh("W" @ h + x[t])
    return h


@op
def cell(h, x, *, label):
    return tanh("W" @ h + "U" @ x + "b")


@op
def layered(x: real[T, D], h):
    for t in range(T):
        h = cell(h, x[t], label="cell")
    return h


@op
def told_later(x: real[T, D], h):
    s, total = "V" @ x[0], 0.0
    for a in x:
        if a[0] > 0.5:
            s = tanh("W" @ s)
            total = total + 1
        else:
            s = tanh("U" @ a + "b"[6])
        s = s if a[1] > 0.5 else 2 * s
        total = total + (s * s).sum()
    while total > 9:
        total = total / 2
    return "out" @ s + "c"[2], total


@op
def pair(x: real[T, D], h):
    ys: real[T]
    state = h, 0 * h
    for t in range(T):
        a, b = state
        state = tanh("W" @ a + "U" @ x[t]), a + b
        ys[t] = sum(a[i] * b[i])
    return state[0] + state[1], ys


def by_hand(function: Any, x: Any, h: Any, p: Any) -> Any:
    if function is open_output:
        return unrolled(x, p["W"], np.eye(3), 0)
    if function is layered:
        return unrolled_from(h, x, p["W.cell"], p["U.cell"], p["b.cell"])
    if function is pair:
        b, ys = 0 * h, []
        for row in x:
            ys.append(h @ b)
            h, b = np.tanh(p["W"] @ h + p["U"] @ row), h + b
        return h + b, ys
    s, total = p["V"] @ x[0], 0.0
    for row in x:
        s = np.tanh(p["W"] @ s) if row[0] > 0.5 else np.tanh(p["U"] @ row + p["b"])
        s = s if row[1] > 0.5 else 2 * s
        total += (s * s).sum() + (row[0] > 0.5)
    while total > 9:
        total /= 2
    return p["out"] @ s + p["c"], total


def unrolled_from(h: Any, x: Any, W: Any, U: Any, b: Any) -> Any:
    for row in x:
        h = np.tanh(W @ h + U @ row + b)
    return h


@pytest.mark.parametrize("function", [open_output, layered, told_later, pair])
def test_what_a_name_holds_before_a_round_and_after_it_has_one_shape(function: Any) -> None:
    found = function(tc.tensor(X)) if function is open_output else function(tc.tensor(X), tc.tensor(H))
    values = {name: np.asarray(each.value) for name, each in function.parameters.items()}
    wanted = by_hand(function, X, H, values)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else ((found, wanted),)
    for one, other in pairs:
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12)


def test_parameters_of_unknown_shape_may_be_given_to_a_loop() -> None:
    w, u = tc.param("w"), tc.param("u")
    made = rnn(tc.tensor(X), tc.tensor(H), w, u)
    assert (w.shape, u.shape) == ((4, 4), (4, 3))
    np.testing.assert_allclose(np.asarray(made), rnn(X, H, np.asarray(w.value), np.asarray(u.value)), rtol=1e-12)
    tc.compile(tc.train.grad_update((made**2).sum())).run()
    wanted = tc.grad(lambda weights: (rnn(X, H, weights, np.asarray(u.value)) ** 2).sum())(np.asarray(w.value))
    np.testing.assert_allclose(w.grad, wanted, rtol=1e-12)


def test_what_a_call_that_fails_has_found_out_about_shapes_is_forgotten() -> None:
    w, u = tc.param("w"), tc.param("u", i=2)
    with pytest.raises(ShapeError, match="input axis 1 from the right of `u`"):
        rnn(tc.tensor(X), tc.tensor(H), w, u)
    assert "..." in str(w.rows)
    rnn(tc.tensor(X[:, :2]), tc.tensor(H[:3]), w, u)
    assert (w.shape, u.shape) == ((3, 3), (3, 2))


@op
def undetermined(x: real[T, D]):
    y, s = "V" @ x[0], 0.0
    for t in range(T):
        s = s + x[t, 0]
    return y, s


@op
def contradicting(x: real[T, D], h):
    for _ in range(T):
        h = "W"[5] @ h
    return h


@op
def of_python(x):
    for _ in range(2):
        x = "w" * x
    return x


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: np.asarray(undetermined(x)[0]), ShapeError, "`V` has output axes that nothing determines"),
        (lambda x: contradicting(x, tc.tensor(H)), ShapeError, "of `W` is 5"),
        (of_python, DslSyntaxError, 'the parameter "w" is declared inside a loop, where it would be the same one'),
    ],
)
def test_faults(function: Any, kind: type[TcdslError], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        function(tc.tensor(X))
