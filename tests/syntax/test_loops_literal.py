# tcdsl: literal
"""Loops and branches that run, with the operators and logics of the literal spelling in their bodies."""

import numpy as np

import tcdsl as tc
from tcdsl import cd, op

A = np.random.default_rng(3).random((4, 4))
X = A[0].copy()


@cd
def powers(p, a, q, n):
    for t in range(n):
        q =:+ a * p ~logic:"@"
        if t % 2 == 0:
            q =+ 0.5 *. p
        p =: q /. !..4


@op
def scores(x, w, n):
    while (x *+ "i;i=>" x) > n:
        x = x *+ "i;ki=>k" w
        x = x /. !.3.0
    return x


@op
def recurrent(x: "real[T, D]"):
    h = 0 *. x[0]
    for t in range(T):
        h = tanh("W" 4 @ h + "U" 4 @ x[t] + "b")
    return h


def test_code_of_operators_and_logics_loops():
    p, q = X.copy(), np.zeros(4)
    powers(p, A, q, 3)
    wanted = X
    for t in range(3):
        product = A @ wanted + (0.5 * wanted if t % 2 == 0 else 0)
        wanted = product / 4
    np.testing.assert_allclose(p, wanted)
    np.testing.assert_allclose(q, product)


def test_contractions_end_loops():
    wanted = 9 * X
    while wanted @ wanted > 0.5:
        wanted = A @ wanted / 3
    np.testing.assert_allclose(scores(9 * X, A, np.array(0.5)), wanted)


def test_parameters_are_declared_once_for_all_rounds():
    made = recurrent(tc.tensor(A))
    weights = {name: np.asarray(each.value) for name, each in recurrent.parameters.items()}
    h = np.zeros(4)
    for row in A:
        h = np.tanh(weights["W"] @ h + weights["U"] @ row + weights["b"])
    np.testing.assert_allclose(np.asarray(made), h)
