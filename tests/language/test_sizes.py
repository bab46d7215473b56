"""Sizes: where they come from, that they agree, zero and negative extents, declared targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tests.language.outcomes import assert_gives, refusal

A = np.arange(6.0).reshape(2, 3)
x = np.array([1.0, 2.0, 3.0])
left_over = 3
N = 77  # a number of the module, which annotations do not read


def test_sizes_come_from_shapes() -> None:
    @op
    def f(A):
        M, N = A.shape
        y[i] = A[i, 0] * N + M
        z = output(N + M - 1, dtype="float64")
        z[i] += 1.0
        return y, z

    assert_gives(f, A, wanted=(A[:, 0] * 3 + 2, np.ones(4)))


def test_sizes_come_from_bind_dims() -> None:
    @op
    def f(A, x):
        A.bind_dims(M, N)
        x.bind_dims(N)
        y[i] = x[i] * N + M
        return y

    assert_gives(f, A, x, wanted=3 * x + 2)
    message = refusal(tc.ShapeError, f, A, np.ones(4))
    assert "axis 0 of `x` does not have the extent `N` that is bound already" in message
    assert "N = 3" in message or "3" in message


def test_bind_dims_twice_must_agree() -> None:
    @op
    def f(A):
        A.bind_dims(M, N)
        A.bind_dims(M, N)
        A.bind_dims(P, Q)
        return A * (M + N + P + Q)

    @op
    def square(A):
        A.bind_dims(N, N)
        return A * N

    assert_gives(f, A, wanted=A * 10)
    assert_gives(square, A[:, :2], wanted=A[:, :2] * 2)
    assert "axis 1 of `A` does not have the extent `N` that is bound already" in refusal(tc.ShapeError, square, A)


def test_sizes_come_from_annotations_of_parameters() -> None:
    @op
    def f(A: "real[M, N]", x: "float64[N]"):  # noqa: UP037
        return A * (10 * M + N) + x

    assert_gives(f, A, x, wanted=A * 23 + x)
    assert "axis 0 of `x` does not have the extent `N`" in refusal(tc.ShapeError, f, A, np.ones(4))
    assert "`x` is float32, not float64" in refusal(tc.DtypeError, f, A, x.astype(np.float32))
    assert "`A` has rank 1, but 2 sizes are given for it" in refusal(tc.ShapeError, f, x, x)


def test_annotations_without_quotes_are_never_evaluated() -> None:
    @op
    def f(A: real[M, N]):
        y: real[N, M]
        y[j, i] = A[i, j]
        return y

    assert_gives(f, A, wanted=A.T)


def test_annotations_in_the_body_bind_sizes_of_parameters() -> None:
    @op
    def f(A, x):
        A: real[M, N]
        x: real[N]
        return A * (10 * M + N) + x

    assert_gives(f, A, x, wanted=A * 23 + x)
    assert "axis 0 of `x` does not have the extent `N`" in refusal(tc.ShapeError, f, A, np.ones(4))


def test_in_annotations_a_size_that_the_function_has_bound_keeps_its_value() -> None:
    @op
    def f(A, x):
        N = x.shape[0]
        A: real[M, N]
        A: real[2, N]
        return A * N

    assert_gives(f, A, x, wanted=3 * A)
    assert "extent `N`" in refusal(tc.ShapeError, f, A, np.ones(4))
    assert "extent `2`" in refusal(tc.ShapeError, f, np.ones((3, 3)), x)


def test_other_names_on_parameters_are_bound_there_and_never_read_from_globals() -> None:
    @op
    def f(A: "real[N, M]"):  # noqa: UP037
        return A * N

    @op
    def g(A):
        A: real[N, M]
        return A * N

    assert_gives(f, A, wanted=2 * A)
    assert_gives(g, A, wanted=2 * A)


def test_extents_of_a_target_may_be_expressions_of_bound_sizes() -> None:
    @op
    def f(A):
        M, N = A.shape  # noqa: RUF059
        y: real[M + 1, N // 2, max(M, N)]
        y[i, j, k] = A[i, j] * k
        return y

    wanted = np.zeros((3, 1, 3))
    wanted[:2] = A[:, :1, None] * np.arange(3)
    assert_gives(f, A, wanted=wanted)


def test_real_is_the_floating_type_written() -> None:
    @op
    def f(a, n):
        N = n.shape[0]
        y: real[N]
        z: real[N]
        w: int32[N]
        y[i] = a[i]
        z[i] = n[i]
        w[i] = n[i]
        return y, z, w

    first, second, third = f(np.ones(2, np.float32), np.ones(2, np.int8))
    assert (first.dtype, second.dtype, third.dtype) == (np.float32, np.float64, np.int32)


def test_a_negative_extent_is_a_shape_error() -> None:
    @op
    def declared(x):
        N = x.shape[0]
        y = output(N - 4)
        y[i] = x[i]
        return y

    @op
    def annotated(x):
        N = x.shape[0]
        y: real[N - 4]
        y[i] = x[i]
        return y

    @op
    def literal(x):
        y = output(-1)
        y[i] = x[i]
        return y

    @op
    def inferred(x, w):
        y[i] += x[i + k] * w[k]
        return y

    for function in (declared, annotated):
        message = refusal(tc.ShapeError, function, x)
        assert "axis 0 of y would have the negative extent N - 4: N = 3" in message
        assert_gives(function, np.ones(4), wanted=[])
    assert "an extent of -1" in refusal(tc.ShapeError, literal, x)
    assert_gives(inferred, np.ones(3), np.ones(4), wanted=[])
    assert "negative" in refusal(tc.ShapeError, inferred, np.ones(3), np.ones(5))


def test_sizes_and_shapes_that_64_bits_do_not_hold_are_shape_errors() -> None:
    @op
    def outer(x):
        y[i, j, k] = x[i] * x[j] * x[k]
        return y

    @op
    def product(x):
        N = x.shape[0]
        M = N * N * N * N
        y[i] = M * x[i], i < 1
        return y

    @op
    def literal(x):
        y = output(2**62)
        y[i] = x[i]
        return y

    long = np.broadcast_to(1.0, 2**21)
    for function, argument in ((outer, long), (literal, np.ones(3))):
        with pytest.raises(tc.ShapeError, match=r"y would have the shape \(.*\), which is larger than an array can be"):
            function(argument)
    with pytest.raises(tc.ShapeError, match=rf"is {2**84}, which does not fit into 64 bits"):
        product(long)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 0)])
def test_zero_is_allowed_everywhere(shape: tuple[int, int]) -> None:
    B = np.arange(float(np.prod(shape))).reshape(shape) + 1
    wanted = (B.T, B.sum(1), B @ B.T, B.sum(), np.where(B > 1, B, 0), 2 * B)
    assert_gives(zeros, B, wanted=wanted)


@op
def zeros(A):
    t[j, i] = A[i, j]
    s[i] += A[i, j]
    p[i, k] += A[i, j] * A[k, j]
    c[()] += A[i, j]
    M, N = A.shape
    o = output(M, N)
    o[i, j] = A[i, j] * (A[i, j] > 1)
    return t, s, p, c, o, 2 * A


def test_a_declared_target_is_written_before_it_is_read() -> None:
    @op
    def returned(x):
        y = output(3)
        return x, y

    @op
    def read(x):
        y = output(3)
        z[i] = x[i] + y[i]
        return z

    @op
    def whole(x):
        y: real[3]
        return y * 2

    for function in (returned, whole):
        assert "a declared target is read or returned before" in refusal(tc.DslSyntaxError, function, x)
    assert "`y` is read before anything is written to it" in refusal(tc.DslSyntaxError, read, x)


def test_extents_that_statements_leave_open_are_the_smallest_that_satisfy_all(tmp_path: Path) -> None:
    @op
    def concatenated(a, b):
        (N,) = a.shape
        y: real[X]
        y[i] = a[i]
        y[i + N] = b[i]
        return y

    @op
    def convolved(x, w):
        y: real[X]
        y[i] += x[i + k] * w[k]
        z[i] = y[i] * X
        return z

    @op
    def beside(A, b):
        N, M = A.shape  # noqa: RUF059  # names the size
        y: real[N, X]
        y[i, j] = A[i, j]
        y[i, j + M] = b[i], j < 2
        return y

    a, b = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])
    with tc.config(cache_dir=str(tmp_path)):  # programs that an earlier run has kept count too
        for left, right in ((a, b), (b, a), (a[:0], b), (a, b[:0]), (a[:0], b[:0])):
            np.testing.assert_array_equal(concatenated(left, right), np.concatenate([left, right]))
            np.testing.assert_array_equal(concatenated.interpret(left, right), np.concatenate([left, right]))
    assert concatenated.cache_info().programs == 1
    x = np.arange(5.0)
    np.testing.assert_array_equal(convolved(x, b), 4 * np.correlate(x, b, "valid"))
    np.testing.assert_array_equal(beside(np.ones((2, 3)), b), [[1, 1, 1, 4, 4], [1, 1, 1, 5, 5]])
    tc.check_grads(concatenated, (a, b))
    tc.check_grads(convolved, (x, b))


def test_open_extents_are_never_read_from_around_the_function() -> None:
    extent = 2

    @op
    def copied(x):
        y: real[left_over]
        z = output(extent)
        y[i] = x[i]
        z[i] = x[i] * left_over
        return y, z

    assert_gives(copied, np.arange(4.0), wanted=(np.arange(4.0), [0, 4]))


def test_an_open_extent_that_nothing_determines() -> None:
    @op
    def never(x):
        y: real[X]  # noqa: F842
        return x

    @op
    def itself(x):
        y: real[X]
        y[i] = x[i]
        y[i + 1] = y[i]
        return y

    assert "the extent `X` is open, but no statement writes" in refusal(tc.ShapeError, never, np.ones(3))
    assert "the open extent `X` of `y` would depend on itself" in refusal(tc.ShapeError, itself, np.ones(3))


def test_output_without_extents_infers_them() -> None:
    @op
    def f(A, x):
        C = output()
        C[i, j] += A[i, k] * x[k] * x[j]
        t = output()
        t[()] += x[i]
        return C, t

    assert_gives(f, A, x, wanted=(np.outer(A @ x, x), 6.0))


def test_a_declared_target_may_be_filled_as_a_whole() -> None:
    @op
    def filled(x):
        (N,) = x.shape
        y = output(N, 2)
        y[...] = 2.0
        z: real[N]
        z[:] = 3
        s = output(N)
        s[...] += x
        s[i] += x[i]
        m = output(N)
        m[...] >>= x
        return y, z, s, m

    for x in (np.array([1.0, -2.0, 3.0]), np.ones(1), np.ones(0)):
        for found in (filled(x), filled.interpret(x)):
            expected = (np.full((len(x), 2), 2.0), np.full(len(x), 3.0), 2 * x, x)
            for value, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(value, wanted)
                assert value.dtype == wanted.dtype
    assert "does not broadcast" in refusal(tc.ShapeError, too_wide, np.ones(3))


@op
def too_wide(x):
    y = output(1)
    y[...] = x
    return y


@op
def framed(a):
    y = output(len(a) + 1)
    y[...] = 0
    y[len(a)] = 9 * a[len(a) - 1]
    for t in range(len(a)):
        y[t] = a[len(a) - 1 - t] if t < len(a) - 1 else len(a)
    return y


def test_lengths_stand_in_statements() -> None:
    for count in (1, 4):
        a = np.arange(5.0, 5 + count)
        expected = [*a[:0:-1], count, 9 * a[-1]]
        np.testing.assert_array_equal(framed(a), expected)
        np.testing.assert_array_equal(framed.interpret(a), expected)
