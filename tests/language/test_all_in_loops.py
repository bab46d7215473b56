"""What works outside of loops that run works inside: each of it once, and bad input (`tests/errors` has messages)."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DataIndexError, NanError
from tcdsl.ir.text.parser import parse_program
from tcdsl.pass_names import OPTIONAL
from tests.language.running_programs import check, program

X = np.random.default_rng(29).random(6)
A = np.random.default_rng(31).random((4, 4))


@op
def rooted(x: real[N]):
    s = 0.0
    for t in range(N):
        y = sqrt(x[t])
        s = s + y
    return s


@op
def history(x: real[N]):
    y: real[N + 1]
    y[0] = 1.0
    for t in range(N):
        y[t + 1] = 0.5 * y[t] + x[t]
    return y


@op
def at(x: real[N], k: int64[N]):
    s = 0.0
    for t in range(N):
        s = s + x[k[t]]
    return s


@op
def powers(a: real[N, N], n):
    for _ in range(n):
        a = tanh(a @ a.T / 4)
    return a


def test_nan_names_the_round() -> None:
    bad = X.copy()
    bad[3] = -1
    with tc.config(check="nan,bounds"):
        assert np.isclose(rooted(X), np.sqrt(X).sum())
        with pytest.raises(NanError, match=r"y = sqrt\(x\[t\]\)\n *\^*\n *at t = 3\n"):
            rooted(bad)


def test_data_indices_name_the_round() -> None:
    k = np.array([0, 1, 2, 3, 4, 9])
    for check_ in ("", "bounds"):
        with tc.config(check=check_), pytest.raises(DataIndexError, match="at t = 5"):
            at(X, k)
    with pytest.raises(DataIndexError, match="at t = 5"):
        at.interpret(X, k)
    check(at, (X, k[::-1].copy() % 6), X[k % 6].sum())


def test_out_takes_results() -> None:
    out = np.zeros(7)
    assert history(X, out=out) is out
    np.testing.assert_array_equal(out, history(X))


def test_functions_with_loops_pickle() -> None:
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(history))(X), history(X))
    gradient = pickle.loads(pickle.dumps(tc.grad(rooted)))
    np.testing.assert_allclose(gradient(X), 0.5 / np.sqrt(X))


def test_any_number_of_threads_gives_the_same_bits() -> None:
    found = []
    for threads in (1, 2, 3):
        with tc.config(threads=threads):
            found.append(powers(A, 20).tobytes() + tc.grad(lambda a: powers(a, 5).sum())(A).tobytes())
    assert len(set(found)) == 1
    results: list[bytes] = []
    callers = [threading.Thread(target=lambda: results.append(powers(A, 20).tobytes())) for _ in range(3)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert {each + b"" for each in results} == {powers(A, 20).tobytes()}


def test_machine_code_comes_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCDSL_CACHE_DIR", str(tmp_path))

    def made() -> Any:
        return program("s = 0.0\nfor t in range(N):\n    s = s + x[t] * n * 1.2345\nreturn s")

    first, again = made(), made()
    assert np.isclose(first(X, np.array(2.0)), again(X, np.array(2.0)))
    info = again.cache_info()
    assert info.kernels >= 1
    assert info.from_disk == info.kernels


def test_loops_are_shown_at_every_stage() -> None:
    text = history.explain("ir", X)
    assert "repeat" in str(text)
    assert "= N times" in str(text)
    parse_program(str(text))
    assert "for t in 0 .. N" in str(history.explain("loops", X)) or "repeat t" in str(history.explain("loops", X))
    for stage in ("python", "llvm", "passes", "memory"):
        try:
            shown = str(history.explain(stage, X))
        except tc.TcdslError:
            continue  # no stage of that name
        assert shown


@pytest.mark.long
def test_loops_do_not_depend_on_any_one_pass() -> None:
    wanted = history(X)
    for name in sorted(OPTIONAL):
        with tc.config(optimize=f"-{name}"):
            np.testing.assert_allclose(history(X), wanted, rtol=1e-12)
            np.testing.assert_allclose(powers(A, 3), powers.interpret(A, 3), rtol=1e-12)


@op
def in_logics(a: real[N, N], x, n):
    for t in range(n):
        y = 0 * x
        y["@"] += a * x
        y["."] >>= 0 * y
        x = y / (1 + t)
    return x


def test_logics_connect_in_rounds() -> None:
    x = A[0]
    for t in range(3):
        x = np.maximum(A @ x, 0) / (1 + t)
    check(in_logics, (A, A[0].copy(), 3), x)


@cd
def softened(v, v1, *, projections):
    v = 3 * v1 / (1 + abs(3 * v1))


@cd
def softened_gradient(g, t1, g1, *, projections):
    g1 += 3 * g / (1 + abs(3 * t1)) ** 2


softsign = tc.primitive("softsign_of_rounds", softened, softened_gradient)


@op
def signed(x, n):
    for _ in range(n):
        x = softsign(x)
    return x


def test_primitives_of_users_run_in_rounds() -> None:
    x = X
    for _ in range(4):
        x = 3 * x / (1 + abs(3 * x))
    check(signed, (X, 4), x)
    tc.check_grads(lambda x: (signed(x, 4) ** 2).sum(), (X,))


@op
def cubed(x):
    return x * x * x


@cubed.defvjp
def _(x, y, d):
    return 7 * d


@op
def ruled(x, n):
    for _ in range(n):
        x = 0.5 * cubed(x)
    return x


def test_rules_of_users_hold_in_rounds() -> None:
    np.testing.assert_allclose(tc.grad(lambda x: ruled(x, 3).sum())(X), np.full(6, 3.5**3))


@op
def scaled(x, n):
    for _ in range(n):
        x = x * stop_gradient(x)
    return x


def test_what_is_constant_for_gradients_is_constant_in_rounds() -> None:
    slope, value = np.ones(6), X
    for _ in range(3):
        value, slope = value * value, slope * value
    np.testing.assert_allclose(scaled(X, 3), value)
    np.testing.assert_allclose(tc.grad(lambda x: scaled(x, 3).sum())(X), slope)


@op
def positive(x, a):
    assert a > 0, "a factor below 0"
    return a * x


@op
def positive_products(x, factors):
    for a in factors:
        for b in factors:
            x = positive(x, a + b)
    return x


def test_checks_of_functions_that_rounds_call_say_in_which_round() -> None:
    np.testing.assert_allclose(positive_products(X, X[:2]), X * (4 * X[0] * X[1] * (X[0] + X[1]) ** 2))
    for run in (positive_products, positive_products.interpret, tc.grad(lambda x, a: positive_products(x, a).sum())):
        with pytest.raises(AssertionError, match=r"a factor below 0\n.*assert a > 0.*\n"):
            run(X, np.array([1.0, 2.0, -1.5]))


@cd
def descend(w, g, n):
    for _ in range(n):
        w -= 0.1 * g


def test_code_with_loops_is_bound() -> None:
    w, g = tc.tensor(X), tc.tensor(X)
    step = tc.compile(descend(w, g, 5))
    for _ in range(2):
        step.run()
    np.testing.assert_allclose(w.value, 0 * X, atol=1e-15)


# -- bad input


def test_rounds_may_be_none_negative_or_many() -> None:
    f = program("s = 0\nfor t in range(n):\n    s = s + t\nreturn s")
    for n in (0, -5, -(10**15)):
        assert f(X, n) == 0
        assert f(X, np.array(n)) == 0
    assert f(X, 10**6) == f(X, np.array(10**6)) == 499999500000
    g = program("for t in range(n):\n    x = 0.5 * x\n    if x[0] < 1e-3:\n        break\nreturn x")
    assert g(X, np.array(2**62))[0] < 1e-3  # enormous, and left early


def test_nan_in_conditions_is_false() -> None:
    f = program("k = 0\nwhile x[0] < n:\n    x = x + 1\n    k = k + 1\nif x[0] > 0:\n    k = k + 10\nreturn k")
    assert f(np.array([np.nan, 1]), np.array(3.0)) == 0
    assert f(np.array([0.5, 1]), np.array(3.0)) == 13


def test_truth_values_that_a_loop_carries_decide_on_checks() -> None:
    @op
    def f(x, n):
        k = 0
        assert x[n % 3] > x[k % 3] or k != 4, "refused"
        if k == 4 and n > 0:
            raise ValueError("refused")
        w = 0
        while w < n and x[n % 3] < 0.8:
            w = w + 1
            k = (n + n) % 5
        return x, k

    x = np.array([0.1, 0.2, 0.3])
    for n in (0, 1, 2, 3):
        found, want = f(x, n), f.function(x, n)
        np.testing.assert_array_equal(found[0], want[0])
        assert found[1] == want[1]
