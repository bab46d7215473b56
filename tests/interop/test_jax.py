"""Functions for JAX, against JAX's own: values, derivatives of every order, batches, compiled code, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@op
def dense(a: Any, s: Any, b: Any) -> Any:
    c[i, j] += a[i, k] * b[k, j] * s
    y[i, j] = tanh(c[i, j])
    return y


@op
def parts(x: Any) -> Any:
    y[i] = x[i] * x[i]
    place[()] = argmax(x[i])
    return {"squares": y, "place": place}


@op
def stepped(x: Any, n: Any) -> Any:
    y = x * 1
    while y[0] < n:
        y = y * 1.5
    return y


@op
def row(x: Any, places: Any) -> Any:
    y[i] = x[places[i]]
    return y


def ours(a: Any, b: Any) -> Any:
    return tc.interop.jax(dense)(a, 2.0, b)


def theirs(a: Any, b: Any) -> Any:
    return jax.numpy.tanh(a @ b * 2.0)


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: function(*given).sum()


RNG = np.random.default_rng(3)
A, B, MANY = (RNG.normal(size=shape) for shape in ((3, 4), (4, 2), (5, 3, 4)))


def same(one: Any, other: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12), one, other)


@pytest.mark.parametrize(
    "derived",
    [
        lambda f: f(A, B),
        lambda f: jax.jit(f)(A, B),
        lambda f: jax.jit(jax.grad(total(f), (0, 1)))(A, B),
        lambda f: jax.jvp(f, (A, B), (A, B)),
        lambda f: jax.jacfwd(f, 1)(A, B),
        lambda f: jax.hessian(total(f), (0, 1))(A, B),
        lambda f: jax.vmap(f, (0, None), 1)(MANY, B),
        lambda f: jax.vmap(jax.grad(total(f), (0, 1)), (0, None))(MANY, B),
        lambda f: jax.grad(total(jax.vmap(f, (0, None))), (0, 1))(MANY, B),
        lambda f: jax.hessian(lambda b: jax.vmap(f, (0, None))(MANY, b).sum())(B),
        lambda f: jax.grad(lambda b: jax.lax.map(lambda a: f(a, b), MANY).sum())(B),
    ],
    ids=[
        "call",
        "jit",
        "grad",
        "jvp",
        "jacfwd",
        "hessian",
        "vmap",
        "vmap of grad",
        "grad of vmap",
        "hessian of vmap",
        "map",
    ],
)
def test_transforms(derived: Callable[[Any], Any]) -> None:
    same(derived(ours), derived(theirs))


def test_integers_and_nested_results() -> None:
    x = np.array([1.0, 3.0, 2.0])
    found = jax.jit(tc.interop.jax(parts))(x)
    assert (found["squares"].tolist(), int(found["place"])) == ([1.0, 9.0, 4.0], 1)
    assert jax.grad(lambda x: tc.interop.jax(parts)(x)["squares"].sum())(x).tolist() == [2.0, 6.0, 4.0]
    slope = jax.grad(lambda x: tc.interop.jax(row)(x, np.array([0, 2, 2])).sum())(x)
    assert slope.tolist() == [1.0, 0.0, 2.0]


def test_host_functions_with_vjp_alone() -> None:
    sine = tc.interop.host(np.sin, shape=np.shape, vjp=lambda a, d_y: np.cos(a) * d_y)

    @op
    def f(x: Any) -> Any:
        return sine(x) * x

    x = np.linspace(0, 1, 4)
    same(jax.grad(lambda x: tc.interop.jax(f)(x).sum())(x), np.cos(x) * x + np.sin(x))


def test_types_are_kept_without_doubles() -> None:
    with jax.enable_x64(False):
        a, b = jax.numpy.asarray(A, "float32"), jax.numpy.asarray(B, "float32")
        found = ours(a, b)
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, theirs(a, b), rtol=1e-5)


def test_batches_end_where_each_of_them_ends() -> None:
    xs = np.array([[1.0, 2.0], [0.1, 1.0], [40.0, 3.0]])
    f = tc.interop.jax(stepped)
    same(jax.vmap(lambda x: f(x, 30))(xs), np.stack([stepped(x, 30) for x in xs]))


def test_empty_arrays() -> None:
    assert ours(np.zeros((0, 4)), B).shape == (0, 2)
    assert ours(np.zeros((3, 0)), np.zeros((0, 2))).tolist() == [[0.0, 0.0]] * 3


def test_threads_do_not_wait_for_each_other() -> None:
    # Threads have the settings of the process, in which numbers are short.
    step = jax.jit(jax.grad(total(ours)))
    with jax.enable_x64(False):
        wanted = step(A, B)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: step(A, B), range(40)):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_wrong_shapes_are_told_while_tracing() -> None:
    with pytest.raises(tc.ShapeError) as caught:
        jax.jit(ours)(A, A)
    assert "runs over axis 1 of a, which has the extent 4" in str(caught.value)


def test_faults_of_data_are_told_by_jax() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.jit(tc.interop.jax(row))(np.ones(3), np.array([0, 7])))
    assert "DataIndexError" in str(caught.value)
    assert "index 7 is out of range" in str(caught.value)


@op
def repeated(x: Any, n: Any) -> Any:
    y: real[n]
    y[i] += x[i % 3]
    return y


def test_shapes_that_integers_decide() -> None:
    f = tc.interop.jax(repeated)
    for n in (2, 5, 0):
        assert f(np.arange(3.0), n).tolist() == [k % 3 for k in range(n)]


REFUSED = [
    (lambda: np.ma.masked_array(np.ones((3, 4)), False), "`a` is a masked array, whose mask would be lost"),
    (lambda: jax.random.key(0), "`a` has the element type key<fry>, which tcdsl does not handle"),
    (lambda: jax.numpy.ones((3, 4), "bfloat16"), "`a` has the element type bfloat16, which tcdsl does not handle"),
    (lambda: jax.numpy.ones((3, 4), "complex64"), "`a` has the element type complex64, which tcdsl does not handle"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=["masked", "key", "bfloat16", "complex"])
def test_what_would_be_lost_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(tc.DtypeError) as caught:
        ours(make(), B)
    assert message in str(caught.value)
