"""Declared targets: they stay as declared where nothing is written, and whole values fill them."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tests.language.running_programs import program

X = np.array([1.0, 2.0, 4.0])

WHILE = "t = 0\nwhile t < n:\n    y[t] = x[t]\n    t = t + 1"
IF = "if n > 0:\n    y[i] = x[i]"
NESTED = "if n > 0:\n    for t in range(n):\n        y[t] = x[t]"
IN_ROUNDS = "for t in range(3):\n    if n > t:\n        y[t] = x[t]"


@pytest.mark.parametrize("writes", [WHILE, IF, NESTED, IN_ROUNDS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_python_leaves_out_leaves_a_target_as_declared(writes: str, dtype: type) -> None:
    f = program(f"y: real[3]\n{writes}\nreturn y", "x, *, n=0")
    x = X.astype(dtype)
    for found, expected in ((f(x), np.zeros(3)), (f(x, n=3), x)):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(tc.grad(lambda x: f(x).sum())(x), np.zeros(3))


@pytest.mark.parametrize("over", ["()", "{}", "range(2, 0)", "reversed(range(0))", "zip((), x[:0])", "enumerate([])"])
def test_rounds_over_nothing_leave_a_target_as_declared(over: str) -> None:
    each = "k, (_, a)" if over.startswith("enum") else "k, a" if over.startswith("zip") else "k"
    f = program(f"y: real[3]\ns = x[0]\nfor {each} in {over}:\n    y[k] = x[k]\n    s = s + 1\nreturn y, s", "x")
    for dtype in (np.float32, np.float64):
        found, first = f(X.astype(dtype))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.zeros(3))
        assert first == 1


@pytest.mark.parametrize("reads", ["z[i] = y[i] + x[i]", "z = y + x", "y[i] += y[i] + x[i]\nz = y"])
def test_such_a_target_can_be_read_and_written(reads: str) -> None:
    np.testing.assert_array_equal(program(f"y: real[3]\n{IF}\n{reads}\nreturn z", "x, *, n=0")(X), X)


def test_what_python_knows_stays_python() -> None:
    f = program(f"y: real[3]\n{WHILE}\nreturn y * (5.0, 6.0)[t]", "x, *, n=0")
    np.testing.assert_array_equal(f(X), np.zeros(3))
    np.testing.assert_array_equal(f(X, n=1), [6.0, 0.0, 0.0])


def test_what_would_fail_where_it_is_left_out_is_not_looked_at_but_for_the_type() -> None:
    f = program("y: real[3]\nif layers:\n    y[i] = x[i] * layers[2]\nreturn y", "x, *, layers=()")
    np.testing.assert_array_equal(f(X, layers=(1, 2, 3)), 3 * X)
    with pytest.raises(tc.DslSyntaxError, match="declared target is read or returned before anything is written"):
        f(X)
    g = program("y: real[3]\nif layers:\n    y[i] = x[i] * layers[2]\ny[i] += x[i]\nreturn y", "x, *, layers=()")
    np.testing.assert_array_equal(g(X), X)


@pytest.mark.parametrize("length", ["q.shape[0]", "q.ndim * x.shape[0] // 2"])
def test_the_shape_of_a_declared_target_is_known_before_it_is_written(length: str) -> None:
    f = program(f"q: real[N, 3]\nfor t in range({length}):\n    q[t, j] = x[t]\nreturn q", "x: 'real[N]'")
    np.testing.assert_array_equal(f(X), X[:, None] + np.zeros(3))


WHOLE = {
    "y = x": [[1, 2, 4], [1, 2, 4]],
    "y = 5": [[5, 5, 5], [5, 5, 5]],
    "y = [1, 2, 3]": [[1, 2, 3], [1, 2, 3]],
    "y = x.shape[0]": [[3, 3, 3], [3, 3, 3]],
    "y = np.array([1.0, 2.0, 4.0])": [[1, 2, 4], [1, 2, 4]],
    "y = sum(x[i])": [[7, 7, 7], [7, 7, 7]],
    "y, other = x, x": [[1, 2, 4], [1, 2, 4]],
    "y += x": [[1, 2, 4], [1, 2, 4]],
    "y -= x": [[-1, -2, -4], [-1, -2, -4]],
    "y *= x": [[1, 2, 4], [1, 2, 4]],
    "if x[0] > 2:\n    y = x\nelif x[1] > 1:\n    y = x + 1\nelse:\n    y = 7": [[2, 3, 5], [2, 3, 5]],
    "if x[0] < 2:\n    y = x": [[1, 2, 4], [1, 2, 4]],
    "y = x[0] if x[1] > 1 else 3.0": [[1, 1, 1], [1, 1, 1]],
    "for t in range(x.shape[0]):\n    y = x * t": [[2, 4, 8], [2, 4, 8]],
    "for t in range(x.shape[0]):\n    y += x": [[3, 6, 12], [3, 6, 12]],
    "for t in range(x.shape[0]):\n    if x[t] > 1:\n        y = x * t": [[2, 4, 8], [2, 4, 8]],
}


@pytest.mark.parametrize("writes", WHOLE)
@pytest.mark.parametrize("declared", ["y: real[2, 3]", "y = output(2, 3)"])
def test_a_whole_value_fills_a_declared_target(writes: str, declared: str) -> None:
    expected = np.array(WHOLE[writes], float)
    f = program(f"{declared}\n{writes}\nreturn y * 1.0", "x")
    np.testing.assert_array_equal(f(X), expected)
    np.testing.assert_array_equal(f.interpret(X), expected)
    assert tc.grad(lambda x: f(x).sum())(X).shape == X.shape
    code = program(f"{declared}\n{writes}\nout['.'] = y", "out, x", "cd")
    out = np.zeros((2, 3))
    code(out, X)
    np.testing.assert_array_equal(out, expected)


def test_a_whole_value_has_the_type_of_the_declaration_and_open_extents_of_its_own() -> None:
    assert program("y: float32[3]\ny = x\nreturn y", "x")(X).dtype == np.float32
    assert program("y: real[2, K]\ny = x\nreturn y", "x")(X).shape == (2, 3)
    with pytest.raises(tc.DtypeError, match="a tensor of int32 cannot hold float64 values"):
        program("y: int32[3]\ny = x\nreturn y", "x")(X)
    with pytest.raises(tc.ShapeError, match="extents x_0 = 3 and 4 meet on one axis"):
        program("y: real[2, 4]\ny = x\nreturn y", "x")(X)


def test_what_is_written_already_gets_another_value_in_an_operation() -> None:
    written = "y: real[2, 3]\nif x[0] < 2:\n    y = x\nelif x[0] < 1:\n    t = 2\nelse:\n    t = 3\n"
    assert program(f"{written}y = y.sum()\nreturn y", "x")(X) == 14
