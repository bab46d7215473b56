"""Functions inside Numba's, and Numba's in ops: `tc.interop.numba`."""

import math
import sys

import numba
import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

X = np.linspace(0, 1, 5)


@op
def smooth(x, w):
    y[i] = w * x[i] + (1 - w) * x[i] * x[i]
    return y


@op
def both(x):
    s[()] += x[i, j]
    t[i] += x[i, j]
    return s, t


@op
def picked(x, p):
    y[i] = x[p[i]]
    return y


@op
def settled(x, n):
    total[()] += x[i]
    while n > 0:
        x = 0.5 * x + OFFSET * total
        n = n - 1
    return x


OFFSET = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
SMOOTH, BOTH, PICKED, SETTLED = map(tc.interop.numba, (smooth, both, picked, settled))


def test_calls_of_known_shapes_run_no_python(monkeypatch):
    @numba.njit
    def f(x, w, n):
        for k in range(3):
            x = SETTLED(SMOOTH(x, w + k), n)
        return x

    def expected(x, w, n):
        for k in range(3):
            x = settled(smooth(x, w + k), n)
        return x

    wide = np.linspace(0, 1, 15)
    for given in ((X, 0.5, 2), (wide[::3], 0.25, 3), (wide[::-3], 0.75, 0)):
        np.testing.assert_array_equal(f(*given), expected(*given))
    monkeypatch.setattr("tcdsl.interop.numba_functions._Kind.entered", None)
    for given in ((X + 1, 1.5, 2), (wide[1::3], 2.0, 5), (wide[:5], 0.0, 1)):
        np.testing.assert_array_equal(f(*given), expected(*given))


def test_loops_and_scalars():
    @numba.njit
    def steps(x, n):
        for _ in range(n):
            x = SMOOTH(x, 0.5)
        return x

    expected = smooth(smooth(smooth(X, 0.5), 0.5), 0.5)
    np.testing.assert_array_equal(steps(X, 3), expected)
    np.testing.assert_array_equal(SMOOTH(X, 0.5), smooth(X, 0.5))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_types_strides_and_several_results(dtype):
    @numba.njit
    def f(x):
        return BOTH(x)

    x = np.arange(12).reshape(4, 3).astype(dtype)
    for given in 2 * (x, x[::-2], x.T, x[:0]):
        for found, expected in zip(f(given), both(given), strict=True):
            assert np.ndim(found) == 0 or found.dtype == expected.dtype  # Numba gives Python's numbers
            np.testing.assert_array_equal(found, expected)


def test_keywords_defaults_and_nesting():
    def made(x, number=0.5, table=None):
        y = smooth(x, number)
        return y, (y.sum(), table or both(x[None])[0])

    given, nested = tc.interop.numba(made), tc.interop.numba(lambda x: {"y": smooth(x, 0.5)})

    @numba.njit
    def f(x, w):
        return given(number=w, x=x), given(x)

    for _ in range(2):
        np.testing.assert_equal(f(X, 0.25), (made(X, 0.25), made(X)))
    with pytest.raises(tc.ConfigurationError, match="returns a dict, but Numba's code takes arrays, and tuples"):
        numba.njit(lambda x: nested(x))(X)  # noqa: PLW0108
    with pytest.raises(tc.DtypeError, match=r"argument 2 is unicode_type in Numba(?s:.)*say what is configuration"):
        numba.njit(lambda x: given(x, 0.5, "no"))(X)


def test_errors_are_raised_there():
    @numba.njit
    def f(x, p):
        return PICKED(x, p)

    np.testing.assert_array_equal(f(X, np.array([0, 3])), X[[0, 3]])
    for _ in range(2):
        with pytest.raises(tc.DataIndexError, match="index 9 is out of range for axis 0 of `x`"):
            f(X, np.array([0, 9]))
    with pytest.raises(tc.DtypeError, match=r"picked\(\): argument 0 is array\(complex128, 2d, C\) in Numba"):
        f(np.ones((2, 2)) * 1j, np.array([0]))


def test_threads_of_numba():
    @numba.njit(parallel=True)
    def f(x, p):
        out = np.zeros(p.shape)
        for k in numba.prange(8):
            out[k] = PICKED(x + k, p[k])
        return out

    places = np.arange(16).reshape(8, 2) % 5
    for _ in range(2):
        np.testing.assert_array_equal(f(X, places), X[places] + np.arange(8.0)[:, None])
    # Numba would lose what another thread raises, and give its own kind of what the caller's own thread does.
    for bad in ([7], [0], range(8)):
        wrong = places.copy()
        wrong[bad, 1] = 9
        with pytest.raises((tc.DataIndexError, SystemError)) as told:
            f(X, wrong)
        assert "index 9 is out of range for axis 0 of `x`" in str(told.value.__cause__ or told.value)
    np.testing.assert_array_equal(f(X, places), X[places] + np.arange(8.0)[:, None])


def test_functions_of_scalars_in_ops():
    @numba.njit
    def halved(a):
        total = 0.0
        while a > 0.1:
            total += math.sin(a)
            a *= 0.5
        return total

    product = tc.interop.numba(numba.vectorize(lambda a, b: a * b + 1), derivative=lambda a, b: (b, a))
    tripled = tc.interop.numba(numba.cfunc("float64(float64)")(lambda a: a * 3))
    sums = tc.interop.numba(halved)

    @op
    def f(x, w):
        return product(sums(x), w) + tripled(x)

    @op
    def g(x, w):
        return product(x, w)

    expected = np.vectorize(halved.py_func)(X) * X[::-1] + 1 + 3 * X
    np.testing.assert_allclose(f(X, X[::-1]), expected)
    np.testing.assert_allclose(f.interpret(X, X[::-1]), expected)
    tc.check_grads(g, (X, np.array([2.0])))
    with pytest.raises(tc.DifferentiationError, match="has no derivative"):
        tc.grad(lambda x: f(x, X).sum())(X)
    with pytest.raises(tc.ConfigurationError, match="derivative for functions of Numba alone"):
        tc.interop.numba(smooth, derivative=math.cos)


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(tc.ConfigurationError, match=r"tc.interop.numba needs Numba(?s:.)*pip install numba"):
        tc.interop.numba(picked)
