"""Functions inside Numba's, and Numba's in ops: `tc.interop.numba`."""

import math
import pickle
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
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
    whole = tc.interop.numba(numba.njit(lambda a: a > 0))
    tripled = tc.interop.numba(numba.cfunc("float64(float64)")(lambda a: a * 3))
    sums = tc.interop.numba(halved)

    @op
    def f(x, w):
        return product(sums(x), w) + tripled(x)

    @op
    def g(x, w):
        y[i, j] = product(x[i], w[j])
        return y, product(x, w[0:1]), whole(x)

    expected = np.vectorize(halved.py_func)(X) * X[::-1] + 1 + 3 * X
    np.testing.assert_allclose(f(X, X[::-1]), expected)
    np.testing.assert_allclose(f.interpret(X, X[::-1]), expected)
    for x, w in ((X, X[1:]), (X[::-2], X), (X[:0], X), (np.array([np.nan, np.inf, -0.0]), X), (X > 0.5, X)):
        for found, wanted in zip(g(x, w), g.interpret(x, w), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype
    tc.check_grads(lambda x, w: g(x, w)[:2], (X, np.array([2.0, 3.0])), modes=("rev", "fwd"))
    with pytest.raises(tc.DifferentiationError, match="has no derivative"):
        tc.grad(lambda x: f(x, X).sum())(X)
    with pytest.raises(tc.ConfigurationError, match="derivative for functions of Numba alone"):
        tc.interop.numba(smooth, derivative=math.cos)


def test_machine_code_calls_functions_of_scalars(monkeypatch):
    monkeypatch.setattr("tcdsl.interop.numba_scalars._Cells.__call__", None)
    steep = numba.njit(lambda a, b: a * abs(a) / b)
    cells = tc.interop.numba(steep, derivative=lambda a, b: (2 * abs(a) / b, -a * abs(a) / b**2))

    @op
    def f(x, w):
        y[i] = cells(x[i + 1], w[2 * i])
        return y

    x, w = np.linspace(-1, 1, 6).astype("float32"), np.arange(1, 11)[::-1]
    np.testing.assert_allclose(f(x, w), x[1:] * abs(x[1:]) / w[::2], rtol=1e-6)
    np.testing.assert_allclose(tc.grad(lambda x: f(x, w).sum())(x)[1:], 2 * abs(x[1:]) / w[::2], rtol=1e-6)
    monkeypatch.undo()
    with pytest.raises(ZeroDivisionError) as told:
        f(x, 0 * w)
    assert "y[i] = cells(x[i + 1], w[2 * i])" in told.value.__notes__[0]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_what_functions_of_scalars_are_not():
    g = numba.njit(lambda a, b: a * b)
    short, pair = tc.interop.numba(g, derivative=lambda a, b: b), tc.interop.numba(numba.njit(lambda a: (a, a)))

    def made(called):
        @op
        def f(x):
            y[i] = called(x[i], x[i])
            return y

        return f

    with pytest.raises(tc.ShapeError, match="returns 1 numbers for 2 inputs"):
        tc.grad(lambda x: made(short)(x).sum())(X)
    with pytest.raises(tc.DtypeError, match="float16, which Numba does not handle"):
        made(short)(X.astype("float16"))
    with pytest.raises(tc.DtypeError, match=r"for float64, which is no number"):
        pair(X)

    @op
    def on_arrays(x):
        return g(x, 2.0)

    for called in (made(g), on_arrays):
        with pytest.raises(tc.DslSyntaxError, match=r"is a function of Numba(?s:.)*outside of the function: .*numba\("):
            called(X)


def scaled(a, b):
    return a * b


def test_functions_are_pickled():
    cloudpickle = pytest.importorskip("cloudpickle")
    given = tc.interop.numba(numba.njit(scaled), derivative=lambda a, b: (b, a))
    inside = numba.njit(lambda x: PICKED(x, np.array([1, 0])))
    given(X, X), inside(X)
    np.testing.assert_array_equal(pickle.loads(cloudpickle.dumps(given))(X, X), X * X)
    np.testing.assert_array_equal(pickle.loads(cloudpickle.dumps(inside))(X), X[[1, 0]])
    assert repr(given) == "<host function scaled>"


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(tc.ConfigurationError, match=r"tc.interop.numba needs Numba(?s:.)*pip install numba"):
        tc.interop.numba(picked)
