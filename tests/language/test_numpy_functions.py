"""NumPy's functions on symbolic arrays, called where nothing rewrites the call: in lambdas and helpers."""

# ruff: noqa: PLW0108  # a lambda is what keeps NumPy's function from being recognized where it is called

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, primitives
from tests.language.outcomes import assert_gives, refusal

A = X = np.array([[1.0, 0.5, 3.0], [2.0, -1.0, 0.0]])


def through_helper(function: Callable[[Any], Any]) -> Any:
    @op
    def f(x):
        return function(x)

    return f


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x),
        lambda x: np.sum(x, 1),
        lambda x: np.prod(x, axis=0, keepdims=True),
        lambda x: np.mean(x, axis=-1),
        lambda x: np.max(x),
        lambda x: np.min(x, axis=(0, 1)),
        lambda x: np.amax(x, axis=1),
        lambda x: np.any(x > 2, axis=1),
        lambda x: np.all(x > -2),
        lambda x: np.where(x > 0, x, 2 * x),
        lambda x: np.dot(x, x.T),
        lambda x: np.outer(x[0], x[:, 1]),
        lambda x: np.matmul(x, np.transpose(x)),
        lambda x: np.exp(x) + np.maximum(x, 0.75),
        lambda x: np.round(x),
        lambda x: (x > 0).any(axis=0),
        lambda x: (x > 0).all(),
        lambda x: x * np.shape(x)[1] + np.ndim(x) + np.size(x),
        lambda x: np.ones_like(x, dtype=bool),
        lambda x: np.var(x),
        lambda x: np.var(x, axis=(0, 1), ddof=1, keepdims=True),
        lambda x: np.std(x.astype(np.float32), axis=1),
        lambda x: x.std(axis=-1, ddof=1) + x.var(axis=0, keepdims=True).sum(),
        lambda x: np.std((x > 1).astype(np.int64)),
        lambda x: np.flip(x),
        lambda x: np.flip(x, axis=-1) + np.flip(x, (np.int64(0),)),
        lambda x: np.roll(x, 1, axis=0) + np.roll(x, (-7, 1), (1, 0)),
        lambda x: np.roll(x[0], -1) * np.roll(2 * x[:, ::-1], x.shape[0], 1)[1],
        lambda x: np.concatenate((x, 2 * x[:1], x[:, ::-1])),
        lambda x: np.concatenate([x, (x > 1).astype(np.int8)[:, :2], np.ones((2, 1))], axis=-1),
        lambda x: np.concatenate((x.astype(np.float32), x[:0].astype(np.float32))),
        lambda x: np.hstack((x[0], x[1, 1:])) + np.hstack((x, x))[0, :5],
        lambda x: np.vstack((x[0], x, [1.0, 2.0, 3.0])),
        lambda x: np.clip(x, 0.2, x[0, 2]) + np.clip(x, None, 0.5) * np.clip(x, a_min=0.5, a_max=None),
        lambda x: np.diff(x)[:, :1] + np.diff(x, axis=np.int8(0)),
        lambda x: np.diff(x > 0.75),
        lambda x: np.stack((x, 2 * x, x > 1)),
        lambda x: np.stack([x, x[::-1]], axis=-1) + np.stack([x[0, 0], x.sum()]),
        lambda x: np.stack((x[:, 0], [2.0, 3.0]), 1),
        lambda x: np.argmax(x) + np.argmin(x[1:, ::-1]),
        lambda x: np.argmax(2 * x, axis=0) - x.argmin(-1)[1],
        lambda x: x.argmax(axis=1, keepdims=True),
        lambda x: np.argmin(np.where(x == 0.5, np.nan, (x > 1) * 1.0), axis=1),
        lambda x: (x > 0.75).argmax(axis=0),
        lambda x: x[np.argmax(x[:, 0])],
        lambda x: np.linalg.norm(x),
        lambda x: np.linalg.norm(x, 2, axis=1) + np.linalg.norm(x[0], ord=2),
        lambda x: np.linalg.norm(x, axis=0, keepdims=True),
        lambda x: np.add.outer(x, x[0]),
        lambda x: np.maximum.outer(x[0], 2.0) + np.multiply.outer(2.0, x[1]),
    ],
)
def test_functions_that_have_a_meaning_are_those_of_numpy(function: Callable[[Any], Any]) -> None:
    found, wanted = through_helper(function).interpret(X), function(X)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted)


def test_gradients_of_lambdas_with_functions_of_numpy() -> None:
    np.testing.assert_allclose(tc.grad(lambda x: np.sum(np.where(x > 0, x * x, 0.0)))(X), np.where(X > 0, 2 * X, 0))
    np.testing.assert_allclose(tc.grad(lambda x: np.mean(x, axis=0)[0])(X), [[0.5, 0, 0], [0.5, 0, 0]])
    tc.check_grads(lambda x: np.concatenate((x, x[:1] * x[1:])) * np.vstack((x[0], x)), (X,))
    tc.check_grads(lambda x: x * np.roll(x, 2, axis=1), (X,))
    tc.check_grads(lambda x: np.stack((x, x * x, x[:, ::-1]), axis=1) * x[np.argmax(x[:, 2])], (X,))
    tc.check_grads(lambda x: np.std(x, axis=0) * np.linalg.norm(np.flip(x)) + x.var(), (X,))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.argmax(x, axis=2), "axis 2 of an array of rank 2"),
        (lambda x: x.argmin(axis=(0, 1)), r"`argmin` over the axes \(0, 1\)"),
        (lambda x: np.argmax(x[:0]), "`argmax` over axis 0, whose extent is 0: there is no cell"),
        (lambda x: np.linalg.norm(x, 2), r"np\.linalg\.norm has no meaning for tensors"),
        (lambda x: np.linalg.norm(x, ord=1, axis=(0, 2)), "an array of rank 2 has no axis 2"),
        (lambda x: np.concatenate((x, x[0])), "arrays of rank 1 and 2 along axis 0"),
        (lambda x: np.concatenate((x, x), axis=2), "arrays of rank 2 along axis 2"),
        (lambda x: np.concatenate((x, x[:, :1])), r"arrays along axis 0 have the extents x_1 = 3 and .* on axis 1"),
        (lambda x: np.concatenate((x, x), dtype=np.float32), r"np\.concatenate with dtype has no meaning"),
        (lambda x: np.concatenate((x, x), axis=None), "arrays along the axis None"),
        (lambda x: np.stack((x, x), axis=(0, 1)), r"arrays along the axis \(0, 1\)"),
        (lambda x: np.diff(x, axis=(0, 1)), r"one axis is wanted, not \(0, 1\)"),
        (lambda x: np.flip(x, (0, -2)), "axis 0 is given twice"),
        (lambda x: np.diff(x, -1), r"np\.diff of the order -1"),
        (lambda x: np.clip(x, 0, 1, out=x), r"np\.clip with out has no meaning"),
        (lambda x: np.roll(x, 1, axis=2), "an array of rank 2 has no axis 2"),
        (lambda x: np.roll(x, (1, 2, 3), axis=(0, 1)), "np.roll by 3 numbers along 2 axes"),
        (lambda x: np.roll(x, 0.5, axis=0), "a float as an index"),
        (lambda x: np.flip(x, -3), "an array of rank 2 has no axis -3"),
        (lambda x: np.var(x, dtype=np.float32), r"np\.var with dtype has no meaning"),
        (lambda x: np.add.outer(x, x, dtype=np.float32), r"np\.add\.outer is not a primitive"),
        (lambda x: np.sum(x, out=x), "`sum` with `out` has no meaning"),
        (lambda x: np.stack([x, x[0]]), "arrays of rank 1 and 2 along the new axis 0"),
        (lambda x: np.stack([x, x], axis=3), "arrays of rank 2 along the new axis 3"),
        (lambda x: np.cumsum(x, axis=2), "an array of rank 2 has no axis 2"),
        (lambda x: np.asarray(x), "Python cannot use it as a NumPy array"),
        (lambda x: np.array([x, x]), "Python cannot use it as"),
        (lambda x: np.nextafter(x, x), r"np\.nextafter is not a primitive"),
        (lambda x: np.subtract.reduce(x), r"np\.subtract\.reduce is not a primitive"),
        (lambda x: np.linalg.inv(x), r"np\.linalg\.inv of a matrix of x_0 = 2 rows and x_1 = 3 columns"),
        (lambda x: np.linalg.det(x[0]), r"np\.linalg\.det of an array of rank 1"),
        (lambda x: np.linalg.qr(x, "raw"), r"np\.linalg\.qr in the mode 'raw'"),
        (lambda x: np.bincount(x.astype(int)[0]), r"np\.bincount without `minlength`"),
        (lambda x: np.searchsorted(x[0], x, "middle"), r"np\.searchsorted from the side 'middle'"),
        (lambda x: np.insert(x, [1, 2], 0), r"an array is taken apart at \[1, 2\]"),
        (lambda x: np.delete(x, 2, 0), "the index 2 is out of range of axis 0"),
        (lambda x: np.unstack(x), r"np\.unstack along axis 0, whose extent only the call knows"),
        (lambda x: np.gradient(x[:1], axis=0), r"np\.gradient along axis 0, which has fewer than 2 cells"),
        (lambda x: x[[0, 5]], "index 5 is out of range"),
        (lambda x: np.diag(x[None]), r"np\.diag of an array of rank 3"),
        (lambda x: np.reshape(x, (-1, 0)), "-1 beside an extent of 0"),
        (lambda x: np.meshgrid(x, indexing="ab"), r"np\.meshgrid indexed by 'ab'"),
        (lambda x: np.max(x.astype(int), initial=np.inf), "`max` of int64 with `initial=inf`"),
        (lambda x: np.logical_and.reduce(x, dtype=float), r"`logical_and\.reduce` of arguments that do not fit it"),
        (lambda x: np.outer(x, None), "`outer` of arguments that do not fit it"),
    ],
)
def test_functions_without_a_meaning_are_errors_and_never_wrong_values(
    function: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(tc.TcdslError, match=message):
        through_helper(function).interpret(X)


def test_arrays_after_each_other_in_rounds_and_in_code() -> None:
    @op
    def turned(x, n):
        for _ in range(n):
            x = np.concatenate((x[1:], x[:1]))
        return x

    @tc.cd
    def turn(x):
        x[:] = np.concatenate((x[1:], x[:1]))

    x = np.arange(5.0)
    assert_gives(turned, x, 3, wanted=np.roll(x, -3))
    turn(x)
    np.testing.assert_array_equal(x, [1, 2, 3, 4, 0])


def test_what_an_array_does_not_have_says_what_it_has() -> None:
    @op
    def f(A):
        return A.byteswap()

    @op
    def guarded(A):
        return A.tobytes() if hasattr(A, "tobytes") else A.T

    message = refusal(tc.DslSyntaxError, f, A)
    assert "an array has no `byteswap` while the function is staged" in message
    assert "return A.byteswap()" in message
    assert "it has `T`, `all`, `any`, `astype`, `bind_dims`, `clip`, `conj`, " in message
    assert "write a statement, such as `y[i*M + j] = x[i, j]`" in message
    assert_gives(guarded, A, wanted=A.T)


def test_reductions_of_whole_arrays_by_their_names_in_the_language() -> None:
    @op
    def f(A):
        m[i, j] = A[i, j] - mean(A[i, k])
        return mean(A), mean(A, axis=0), prod(A, axis=1), sum(A), m

    wanted = (A.mean(), A.mean(0), A.prod(1), A.sum(), A - A.mean(1, keepdims=True))
    assert_gives(f, A, wanted=wanted)
    assert primitives.mean(A, axis=1).tolist() == A.mean(1).tolist()


def test_astype_takes_types_by_any_name() -> None:
    @op
    def f(A):
        return A.astype(float32), A.astype("int8"), A.astype(np.int32), A.astype(bool), A.astype(float)

    assert_gives(f, A, wanted=(A, A.astype("int8"), A.astype(np.int32), A.astype(bool), A))
    assert [str(part.dtype) for part in f(A)] == ["float32", "int8", "int32", "bool", "float64"]


def test_an_array_of_the_surroundings_as_an_index_is_read_at_every_call() -> None:
    rows = np.array([1, 0, 1])

    @op
    def f(A):
        return A[rows], A[:, np.array([0, 2])]

    assert_gives(f, A, wanted=(A[[1, 0, 1]], A[:, [0, 2]]))
    rows[0] = 0
    np.testing.assert_array_equal(f(A)[0], A[[0, 0, 1]])


@pytest.mark.parametrize(
    ("function", "kind", "fact"),
    [
        (lambda A: A[7], tc.ShapeError, "the index 7 is out of range of axis 0, which has the extent A_0 = 2"),
        (lambda A: A[:, A.shape[0] + 1], tc.ShapeError, "axis 1, which has the extent A_1 = 3"),
        (lambda A: A @ A, tc.ShapeError, "the last but one of the right, whose extents are A_1 = 3 and A_0 = 2"),
        (lambda A: np.hstack(A), tc.DslSyntaxError, "use an index variable in a statement"),
        (lambda A: A.astype(complex), tc.DtypeError, "complex128 is no element type of the language"),
        (lambda A: A.astype("real"), tc.DtypeError, "real is no element type of the language"),
    ],
)
def test_faults_show_what_they_are_about(function: Callable[[Any], Any], kind: type[Exception], fact: str) -> None:
    @op
    def f(A):
        return function(A)

    assert fact in refusal(kind, f, A)


def test_options_of_reductions() -> None:
    @op
    def f(x):
        return x.max(initial=0.5), np.sum(x, where=x > 0), np.mean(x, axis=0, where=x > 0), x.sum(dtype=np.float32)

    @op
    def unstarted(x):
        return np.max(x, where=x > 0)

    @op
    def stored(x):
        return x.sum(out=x)

    assert_gives(f, X, wanted=(3.0, X.sum(where=X > 0), X.mean(0, where=X > 0), X.sum(dtype=np.float32)))
    for given in (X, tc.tensor(X)):
        assert float(np.asarray(getattr(f(given)[1], "value", f(given)[1]))) == X.sum(where=X > 0)
        with pytest.raises(
            tc.DslSyntaxError, match=r"`max` with `where` and without `initial`(.*\n)*.*`max\(x, initial=0.0"
        ):
            unstarted(given)
    with pytest.raises(tc.DslSyntaxError, match="`sum` with `out` has no meaning"):
        stored(X)


@pytest.mark.parametrize("function", [np.max, np.min, np.amax, np.sum, np.any])
def test_numpys_reductions_take_axes_by_position(function: Any) -> None:
    @op
    def reduced(x):
        return function(x, 0), function(x, 1, keepdims=True)

    x = np.array([[1.0, -2.0, 0.0], [3.0, 4.0, 5.0]])
    x = x > 0 if function is np.any else x
    for found, wanted in zip(reduced(x), (function(x, 0), function(x, 1, keepdims=True)), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_axes_of_one_cell_are_errors() -> None:
    def larger(a: Any) -> Any:
        return np.max(a, 0)

    @op
    def in_a_statement(x):
        y[i] = np.max(x[i], 0)
        return y

    @op
    def in_a_function(x):
        y[i] = larger(x[i])
        return y

    for function in (in_a_statement, in_a_function):
        with pytest.raises(
            tc.DslSyntaxError, match=r"np\.max with an axis, of one cell\n(.*\n)*.*`np\.maximum\(a, b\)`"
        ):
            function(np.ones(3))
