"""Derivative rules of users' own that have loops, in functions with loops: wherever the loops stand, in both modes."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import DifferentiationError

X = np.linspace(-0.8, 0.9, 5)
Y = X**2 + 0.3
S = np.array(0.4)


@op
def settled(a, c):
    b = a
    for _ in range(a.shape[0] + 40):
        b = 0.5 * np.cos(b * c) + 0.1 * a
    return b


@settled.defjvp
def settled_pushforward(a, c, b, t_a, t_c):
    t = t_a
    for _ in range(b.shape[0] + 40):
        t = -0.5 * np.sin(b * c) * (t * c + b * t_c) + 0.1 * t_a
    return t


@op
def before_a_loop(x, y, s):
    for v in settled(x, s):
        s = np.tanh(s + v * v)
    return s * y


@op
def behind_a_loop(x, y, s):
    for v in x:
        s = np.tanh(s + v * v)
    return settled(y, s)


@op
def between_loops(x, y, s):
    for _ in tc.loop(y.shape[0], checkpoint_every=2):
        y[(i * 2) % 5] += 0.3 * x[i]
        s = np.tanh(s + y[1] * y[2])
    x = settled(y, s)
    for v in settled(x, s):
        s = s + v * v
    return x * s


@op
def in_a_branch_of_a_round(x, y, s):
    for t in range(y.shape[0]):
        if y[t] > 0.6:
            y = settled(x, np.tanh(s))
            break
        s = max(y[i] * x[i])
    return y


@pytest.mark.parametrize(
    "function",
    [before_a_loop, behind_a_loop, pytest.param(between_loops, marks=pytest.mark.long), in_a_branch_of_a_round],
)
def test_rules_with_loops_stand_anywhere(function):
    tc.check_grads(function, (X, Y, S), modes=("fwd", "rev"), order=2)
    directions = (Y, X, np.array(1.0))
    _, tangent = tc.jvp(function, (X, Y, S), directions)
    np.testing.assert_allclose(tc.linearize(function, X, Y, S)[1](*directions), tangent, rtol=1e-12)


def test_a_rule_whose_loop_is_not_linear_serves_one_mode():
    @op
    def doubled(a):
        return a * 2.0

    @doubled.defjvp
    def products(a, b, t_a):
        t = t_a
        for k in range(b.shape[0]):
            t = t * t_a[k]
        return t

    np.testing.assert_allclose(tc.jvp(doubled, (X,), (Y,))[1], Y * Y.prod())
    with pytest.raises(DifferentiationError, match="is not linear in its tangents"):
        tc.vjp(doubled, X)
