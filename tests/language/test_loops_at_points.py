"""Ops with loops and branches that run, called in statements on numbers at a point: as they are for each point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DslSyntaxError
from tests.autodiff.program_gradients import check_interpreted_gradient
from tests.language.running_programs import check, program

X = np.array([2.3, 3.1, 5.2, 7.4, 11.6])


@op
def root(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


@op
def ordered(a, b):
    if a > b:
        return b, a
    return a, b


@op
def escape(x, y, limit):
    u, v, n = 0.0, 0.0, 0
    while u * u + v * v < 4 and n < limit:
        u, v = u * u - v * v + x, 2 * u * v + y
        n += 1
    return n


@op
def repeated(a, k):
    s = 0.0
    for t in range(k):
        s = s + a / (t + 1)
    return s


@op
def power(a, n):
    y = 1.0
    for _ in range(n):
        y = y * a
    return y


def scaled(a):
    return 2 * root(a)


@op
def between(a, x):
    s = 0.0
    for t in range(x[a], x[a + 2]):
        s = s + t
    return s


FUNCTIONS = {
    "between": between,
    "root": root,
    "ordered": ordered,
    "repeated": repeated,
    "power": power,
    "scaled": scaled,
}

RISING = np.outer(X, np.arange(1.0, 4.0))
HARMONIC = np.array([0, 1, 1.5, 11 / 6, 25 / 12])

PROGRAMS = [
    ("out[n] = root(x[n])\nreturn out", np.sqrt(X)),
    ("out[n] = x[n] + 2 * root(x[n]) / root(root(x[n]))\nreturn out", X + 2 * X**0.25),
    ("y = root(x[n])\nout[n] = y * y + y\nreturn out", X + np.sqrt(X)),
    ("out[n] = scaled(x[n]) - scaled(x[n] + 1)\nreturn out", 2 * np.sqrt(X) - 2 * np.sqrt(X + 1)),
    ("out[n] = root(x[n] + x[n + 1])\nreturn out", np.sqrt(X[1:] + X[:-1])),
    ("out: real[7]\nout[n + 1] = root(x[n])\nreturn out", np.concatenate(([0], np.sqrt(X), [0]))),
    ("out[n] = root(x[n] - 4), x[n] > 4\nreturn out", np.sqrt(np.maximum(X - 4, 0))),
    ("out[n] = root(x[n]), n > 1\nreturn out", np.where(np.arange(5) > 1, np.sqrt(X), 0)),
    ("s[()] += root(x[n])\nreturn s", np.sqrt(X).sum()),
    ("return sum(root(x[n]))", np.sqrt(X).sum()),
    ("low[n], high[n] = ordered(x[n], 4.0)\nreturn low, high", (np.minimum(X, 4), np.maximum(X, 4))),
    ("a, b = ordered(x[n], x[4 - n])\nd[n] = b - a\nreturn d", abs(X - X[::-1])),
    ("out[n] = repeated(x[n], n)\nreturn out", X * HARMONIC),
    ("r[n] = int64(x[n])\nout[n] = x[n] * between(n, r), n < 3\nreturn out", X[:3] * [9, 18, 45]),
    ("z[i, k] = x[i] * (k + 1), k < 3\nout[i] = root(sum(z[i, k]))\nreturn out", np.sqrt(RISING.sum(1))),
    ("z[i, k] = x[i] * (k + 1), k < 3\nout[k, i] = root(z[i, k])\nreturn out", np.sqrt(RISING.T)),
    ("out: real[N]\nfor n in range(N):\n    out[n] = root(x[n]) + n\nreturn out", np.sqrt(X) + np.arange(5)),
    ("out[()] = root(x[2])\nreturn out", np.sqrt(5.2)),
]


def made(body: str, parameters: str = "x: 'real[N]'", decorator: str = "op") -> Any:
    function = program(body, parameters, decorator)
    function.template._function.__globals__.update(FUNCTIONS)
    return function


@pytest.mark.parametrize(("body", "wanted"), PROGRAMS)
def test_a_statement_calls_them_at_each_point(body: str, wanted: Any) -> None:
    check(made(body), (X,), wanted)


@pytest.mark.parametrize("length", [0, 1])
def test_without_points_and_with_one(length: int) -> None:
    check(made(PROGRAMS[0][0]), (X[:length],), np.sqrt(X[:length]))


@pytest.mark.parametrize("body", [body for body, _ in PROGRAMS])
def test_their_gradients(body: str) -> None:
    function = made(body)

    def total(x: Any) -> Any:
        found = function(x)
        found = found if isinstance(found, tuple) else (found,)
        return sum((k + 1) * (each * each).sum() for k, each in enumerate(found))

    # In machine code, whose values are compared above, one is enough.
    (tc.check_grads if body == PROGRAMS[0][0] else check_interpreted_gradient)(total, (X,))


def test_points_of_the_plane_and_threads() -> None:
    @op
    def mandelbrot(re, im, limit):
        out[i, j] = escape(re[j], im[i], limit)
        return out

    re, im = np.linspace(-2, 1, 31), np.linspace(-1, 1, 21)
    wanted = np.zeros((21, 31))
    for i, y in enumerate(im):
        for j, x in enumerate(re):
            z = 0j
            while abs(z) ** 2 < 4 and wanted[i, j] < 50:
                z, wanted[i, j] = z * z + complex(x, y), wanted[i, j] + 1
    np.testing.assert_array_equal(mandelbrot(re, im, 50), wanted)
    assert mandelbrot(re, im, 50).dtype == np.int64
    assert "parallel" in str(mandelbrot.explain("loops", re, im, 50))


def test_tensors_and_memory() -> None:
    @cd
    def in_place(x):
        x[n] = root(x[n])

    x = X.copy()
    in_place(x)
    np.testing.assert_allclose(x, np.sqrt(X))
    np.testing.assert_allclose(np.asarray(made(PROGRAMS[0][0])(tc.tensor(X))), np.sqrt(X))


def test_loops_that_python_knows_stay_in_the_statement() -> None:
    function = made("out[n] = power(x[n], 3)\nreturn out")
    check(function, (X,), X**3)
    assert "repeat" not in str(function.explain("ir", X))


@pytest.mark.parametrize(
    "body",
    ["out[n] = root(x[n]) if x[n] > 4 else 0.0\nreturn out", "out[n] = sum(root(x[k]) for k in range(n))\nreturn out"],
)
def test_where_not_all_points_are_asked_for_an_error_says_what_to_write(body: str) -> None:
    said = r"(?s)`root\(x\[.\]\)` has loops, branches, statements or whole arrays, and.*`found\[.\] = root"
    with pytest.raises(DslSyntaxError, match=said):
        made(body)(X)


W = np.array([1.0, 2.0, 4.0])


@op
def weighed(a, w):
    d[()] += a * w[j]
    return d


@op
def weighed_by_cells(a, w):
    d[n] = a * w[n]
    return sum(d[k])


@op
def weighed_in_place(a, w):
    d = w * 1
    d *= a
    return d.sum()


@op
def weighed_by_a_sum(a, w):
    s = sum(w[n] * a)
    return (np.ones(2) * s).sum() / 2


@op
def weighed_inside(a, w):
    d[j] = weighed(a, w) * w[j]
    return sum(d[j]), 3.0


@op
def summed(a, w):
    return sum(w[n] * a)


@op
def row(x, k, w):
    d[j] = x[k] * w[j]
    return d[0] + d[1] + d[2]


@pytest.mark.parametrize("function", [weighed, weighed_by_cells, weighed_in_place, weighed_by_a_sum, summed])
def test_statements_of_an_op_are_for_each_point(function: Any) -> None:
    # The letters of the op are its own.
    @op
    def f(x, w):
        out[n] = function(x[n], w) * x[n]
        return out

    np.testing.assert_allclose(f.interpret(X, W), 7 * X**2)
    if function is weighed:
        np.testing.assert_allclose(f(X, W), 7 * X**2)
        np.testing.assert_allclose(tc.grad(lambda x: f(x, W).sum())(X), 14 * X)


n = 2  # the module's, which is no number in an index


@op
def doubled(x, k, *, plus=0):
    found = x[k + plus]
    return found * 2


class Table:
    """A class with an operation."""

    @op
    def at(self, x, k):
        return x[k, 0] + x[k, 1]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("out[n] = doubled(x, n)\nreturn out", 2 * X),
        ("out[n] = sum(doubled(x, k) for k in range(3)) * x[n]\nreturn out", 2 * X[:3].sum() * X),
        ("return sum(doubled(x, k) for k in range(x.shape[0]))", 2 * X.sum()),
        ("out[n] = doubled(x, n) if x[n] > 4 else 0.0\nreturn out", np.where(X > 4, 2 * X, 0)),
        ("out[n] = max(doubled(x, k, plus=1) for k in range(2)) * x[n]\nreturn out", 2 * X[2] * X),
        ("y[i, j] = x[i] * x[j]\nout[()] = sum(TABLE.at(y, k) for k in range(2))\nreturn out", X[:2].sum() ** 2),
    ],
)
def test_ops_of_values_alone_mean_their_text(body: str, wanted: Any) -> None:
    function = program(body, "x: 'real[N]'")
    function.template._function.__globals__.update(doubled=doubled, TABLE=Table())
    check(function, (X,), wanted)
    assert "repeat" not in str(function.explain("ir", X))
    if "k in range(3)" in body:
        np.testing.assert_allclose(function(tc.tensor(X)).value, wanted)


def test_statements_of_ops_in_reductions_tuples_and_code() -> None:
    @op
    def f(x, w):
        total[()] += x[n] * weighed(x[n], w), x[n] > 3
        second, third = weighed_inside(x[n], w)
        rows[n] = second * third + row(x, n, w), n < x.shape[0]
        return total, rows

    @cd
    def code(x, w):
        x[n] += weighed(x[n], w)

    total, rows = f(X, W)
    np.testing.assert_allclose(total, (7 * X[X > 3] ** 2).sum())
    np.testing.assert_allclose(rows, 3 * 49 * X + 7 * X)
    y = X.copy()
    code(y, W)
    np.testing.assert_allclose(y, 8 * X)
    np.testing.assert_allclose(f(tc.tensor(X), tc.tensor(W))[0].value, total)


@op
def weighed_by_letter(n, w):
    return sum(w[j] * n)


@op
def weighed_in_cells(n, w):
    d[j] = w[j] * n
    return sum(d[j])


def test_calls_in_conditions_and_parameters_that_are_called_as_letters() -> None:
    @op
    def f(x, w):
        total[()] += x[n] * root(x[n]), root(x[n]) > 2, x[n] < 11
        many[n] = 1, weighed(root(x[n]), w) > 14
        by_letter[n] = weighed_by_letter(x[n], w) + weighed_in_cells(x[n], w)
        return total, many, by_letter

    total, many, by_letter = f.interpret(X, W)
    np.testing.assert_allclose(total, (X * np.sqrt(X))[(X > 4) & (X < 11)].sum())
    np.testing.assert_array_equal(many, X > 4)
    np.testing.assert_allclose(by_letter, 14 * X)


@op
def positive_root(a):
    if a < -100:
        raise ValueError("far below")
    assert a > 0, "no root"
    return root(a)


def test_checks_of_what_is_called_are_made_at_each_point() -> None:
    @op
    def f(x):
        total[()] += positive_root(x[n]) * positive_root(2 * x[n]), x[n] > -10
        return total

    def value(x):
        return np.sqrt(2) * x[x > -10].sum()

    for x in (X, np.array([-20.0, 4.0]), X[:0]):
        np.testing.assert_allclose(f(x), value(x))
        np.testing.assert_allclose(f.interpret(x), value(x))
    faulty = np.array([1.0, -3.0])
    for call in (f, tc.grad(f), tc.hessian(f)):
        with pytest.raises(AssertionError, match="no root"):
            call(faulty)
    with pytest.raises(AssertionError, match="at n = 1"):
        f(faulty)
    np.testing.assert_allclose(f(tc.tensor(X)).value, value(X))
    tc.check_grads(f, (X,))


@op
def sum_of_row(ends, values, n):
    s = 0.0
    for k in range(ends[n], ends[n + 1]):
        s = s + values[k]
    return s


def test_calls_with_index_variables_alone_have_the_points_of_the_target() -> None:
    @op
    def f(ends, values):
        N = ends.shape[0] - 1
        y: real[N]
        y[n] = sum_of_row(ends, values, n)
        z = values[:2] * 1.0
        z[n] += 2 * sum_of_row(ends, values, n), n > 0
        return y, z

    @cd
    def code(y, ends, values):
        y[k, n] = sum_of_row(ends, values, n) * repeated(1.0, k)

    ends, values = np.array([0, 2, 2, 5]), np.arange(5.0)
    for call in (f, f.interpret):
        y, z = call(ends, values)
        np.testing.assert_array_equal(y, [1.0, 0.0, 9.0])
        np.testing.assert_array_equal(z, [0.0, 1.0])
    y = np.empty((3, 2))
    code(y, ends, values)
    np.testing.assert_allclose(y, np.outer([0.0, 1.0, 1.5], [1.0, 0.0]))
    assert f(ends[:1], values[:1])[0].shape == (0,)
    tc.check_grads(lambda values: f(ends, values), (values,))
    with pytest.raises(tc.ShapeError, match="the index `n` runs over axis 0 of y"):
        differently_long(X, np.zeros(3))


@op
def differently_long(x, y):
    y[n] = root(x[n])
    return y
