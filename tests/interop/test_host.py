"""Functions of Python in ops: `tc.interop.host`."""

import threading

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program

SINE = tc.interop.host(
    np.sin, shape=lambda a: a.shape, vjp=lambda a, d_y: np.cos(a) * d_y, jvp=lambda a, t_a: np.cos(a) * t_a
)
SOLVE = tc.interop.host(
    np.linalg.solve,
    shape=lambda a, b: b.shape,
    vjp=lambda a, b, d_x: (-np.outer(u := np.linalg.solve(a.T, d_x), np.linalg.solve(a, b)), u),
)
BOTH = tc.interop.host(
    lambda a: (np.sin(a), np.cos(a).sum()),
    shape=lambda a: [a.shape, ()],
    vjp=lambda a, d: np.cos(a) * d[0] - np.sin(a) * d[1],
)
X = np.linspace(0, 1, 5)


def agrees(f, *arguments, rtol=1e-12):
    given = [np.copy(each) for each in arguments]
    found = f(*arguments)
    np.testing.assert_allclose(found, f.interpret(*arguments), rtol=rtol)
    for before, after in zip(given, arguments, strict=True):
        np.testing.assert_array_equal(before, after)
    return found


@op
def energy(a, b):
    x = SOLVE(a, b)
    e[()] += x[i] * b[i]
    return e


@op
def two(x):
    s, c = BOTH(x)
    return (s * c).sum()


@op
def rounds(x, n):
    for _ in range(n):
        x = x + 0.1 * SINE(x)
        for _ in range(3):
            x = SINE(x)
    return x


@op
def rows(X):
    Y = output(X.shape[0], X.shape[1])
    for n in range(X.shape[0]):
        Y[n] = SINE(X[n])
    return Y


@op
def chosen(x):
    y = x
    if x.sum() > 0.5:
        y = SINE(x)
    while y.sum() > 1.0:
        y = 0.9 * SINE(y)
    return y


def test_values_and_gradients():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 4)) + 4 * np.eye(4), rng.normal(size=4)
    np.testing.assert_allclose(agrees(energy, a, b), np.linalg.solve(a, b) @ b)
    tc.check_grads(energy, (a, b))
    agrees(two, X)
    tc.check_grads(two, (X,))
    np.testing.assert_array_equal(SINE(X[::-1]), np.sin(X[::-1]))  # outside of ops too


def test_in_loops_and_branches():
    agrees(rounds, X, 4)
    tc.check_grads(rounds, (X, 3), modes=("rev", "fwd"))
    np.testing.assert_allclose(agrees(rows, np.outer(X, X)), np.sin(np.outer(X, X)))
    tc.check_grads(rows, (np.outer(X, X),), modes=("rev", "fwd"))
    agrees(chosen, X)
    agrees(chosen, 0 * X)


def test_in_place_and_into_out():
    @cd
    def stored(y, x):
        y[:] = SINE(x)

    y = np.zeros(5)
    stored(y, X)
    np.testing.assert_allclose(y, np.sin(X))
    out = np.zeros(5)
    rounds(X, 1, out=out)
    np.testing.assert_allclose(out, rounds(X, 1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32"])
def test_types_layouts_and_empty_arrays(dtype):
    turned = tc.interop.host(lambda a: a[::-1], shape=lambda a: (a.shape, dtype))

    @op
    def f(x):
        return turned(x)

    for x in (np.arange(6).astype(dtype), np.arange(6).astype(dtype)[::-2], np.zeros((0, 3), dtype)):
        found = agrees(f, x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, x[::-1])


def test_it_has_copies_of_its_own():
    kept = []

    def changed(a):
        a[...] = 7
        kept.append(a)
        return a

    own = tc.interop.host(changed, shape=lambda a: a.shape)

    @op
    def f(x):
        return own(x) + x

    for k in range(3):
        np.testing.assert_array_equal(f(X + k), 7 + X + k)
    assert all((each == 7).all() for each in kept)


def test_each_direction_has_the_rule_that_it_needs():
    only = {
        "vjp": tc.interop.host(np.sin, shape=lambda a: a.shape, vjp=lambda a, d: np.cos(a) * d),
        "jvp": tc.interop.host(np.sin, shape=lambda a: a.shape, jvp=lambda a, t: np.cos(a) * t),
        "none": tc.interop.host(np.sin, shape=lambda a: a.shape),
    }

    def made(g):
        @op
        def f(x):
            return (g(x) * x).sum()

        return f

    expected = np.cos(X) * X + np.sin(X)
    np.testing.assert_allclose(tc.grad(made(only["vjp"]))(X), expected)
    np.testing.assert_allclose(tc.jvp(made(only["jvp"]), (X,), (X,))[1], expected @ X)
    with pytest.raises(tc.DifferentiationError, match=r"`sin` has no derivative(?s:.)*vjp=") as told:
        tc.grad(made(only["none"]))(X)
    assert "g(x) * x" in str(told.value)
    with pytest.raises(tc.DifferentiationError, match=r"`sin_jvp`, which Python computes, would(?s:.)*give `vjp`"):
        tc.grad(made(only["jvp"]))(X)
    with pytest.raises(tc.DifferentiationError, match=r"`sin_vjp`, which Python computes, would be(?s:.)*give `jvp`"):
        tc.jvp(made(only["vjp"]), (X,), (X,))
    with pytest.raises(tc.DifferentiationError, match=r"for all directions at once(?s:.)*tc.vjp"):
        tc.jacobian(rounds)(X, 1)


def test_derivatives_of_any_order_where_the_rule_has_its_own():
    cosine = tc.interop.host(
        lambda a, d: np.cos(a) * d,
        shape=lambda a, d: a.shape,
        vjp=lambda a, d, w: (-np.sin(a) * d * w, np.cos(a) * w),
        jvp=lambda a, d, t_a, t_d: -np.sin(a) * d * t_a + np.cos(a) * t_d,
    )
    sine = tc.interop.host(np.sin, shape=lambda a: a.shape, vjp=cosine, jvp=cosine)

    @op
    def f(x):
        return (sine(x) * x).sum()

    np.testing.assert_allclose(tc.hvp(f, X, X), (2 * np.cos(X) - np.sin(X) * X) * X)


@pytest.mark.parametrize("run", [lambda f: f, lambda f: f.interpret], ids=["compiled", "interpreted"])
def test_exceptions_reach_the_caller_with_the_line(run):
    def broken(_):
        raise KeyError("nothing there")

    failing = tc.interop.host(broken, shape=lambda a: a.shape)

    @op
    def f(x):
        for _ in range(3):
            x = failing(x)
        return x

    with pytest.raises(KeyError, match="nothing there") as told:
        run(f)(X)
    assert "`broken`, called at" in told.value.__notes__[0]
    assert "failing(x)" in told.value.__notes__[0]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda a: a[1:], tc.ShapeError, r"shape \(4,\), but its declared shape is \(5,\)(?s:.)*the `shape` of"),
        (lambda a: a * 1j, tc.DtypeError, "type complex128, but the declared type is float64"),
        (lambda a: (a, a), tc.ShapeError, r"an array of shape \(2, 5\)"),
        (lambda a: np.ma.array(a, mask=a > 0), tc.DtypeError, "masked array, whose mask would be lost"),
    ],
)
def test_wrong_results_are_errors(function, error, message):
    wrong = tc.interop.host(function, shape=lambda a: a.shape)

    @op
    def f(x):
        return wrong(x)

    for call in (f, f.interpret, wrong):
        with pytest.raises(error, match=message):
            call(X)
    with pytest.raises(error, match=r"return wrong\(x\)"):
        f(X)


def test_what_is_declared_must_be_shapes():
    with pytest.raises(tc.ShapeError, match=r"is given as 5(?s:.)*a tuple of sizes"):
        tc.interop.host(np.sin, shape=lambda a: 5)(X)
    with pytest.raises(tc.DtypeError, match="declares the type complex64"):
        tc.interop.host(np.sin, shape=lambda a: (a.shape, "complex64"))(X)
    with pytest.raises(tc.ConfigurationError, match="`shape` is a tuple"):
        tc.interop.host(np.sin, shape=(3,))


def test_threads():
    expected = [rounds(X + k, 2) for k in range(3)]
    found = []

    def work(k):
        found.extend(np.array_equal(rounds(X + k, 2), expected[k]) for _ in range(50))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [True] * 150


def test_programs_print_and_parse_with_calls():
    for function, given in ((rounds, (X, 2)), (two, (X,))):
        program = function.program(*given)
        assert "times on host with" in format_program(program)
        assert parse_program(format_program(program)) == program


def test_other_ways_to_run():
    with tc.config(check="bounds"):
        np.testing.assert_array_equal(rounds(X, 2), rounds(X, 2))
    assert "host_call(p0, p1, p2, failed)" in rounds.explain("python", X, 2)
    with tc.config(target="numba"), pytest.raises(tc.ConfigurationError, match="functions of Python"):
        rounds(X, 2)
