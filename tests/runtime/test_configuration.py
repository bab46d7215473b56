"""Numbers given as configuration: run-time values in arithmetic, constants where the program is solved by them."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, output


@op
def windowed(x, *, stride, taps):
    y[i] = sum(x[stride * i + k] for k in range(taps))
    return y


@op
def unflattened(x, *, P):
    A[i, p] = x[i * P + p], p < P
    return A


@op
def flattened(A):
    P = A.shape[1]
    C[i * P + p] = A[i, p]
    return C


@op
def kronecker(A, B):
    P, Q = B.shape
    K[i * P + p, j * Q + q] = A[i, j] * B[p, q]
    return K


@op
def padded(x, *, extent):
    y = output(extent)
    y[i] = x[i]
    return y


@op
def counted(x, *, step):
    return x / step


def test_integers_in_indices_ranges_and_extents_are_constants_of_the_program() -> None:
    x = np.arange(10.0)
    for stride, taps in ((2, 3), (3, 3), (1, 1), (2, 3)):
        count = (10 - taps) // stride + 1
        expected = [x[stride * n : stride * n + taps].sum() for n in range(count)]
        np.testing.assert_array_equal(windowed.interpret(x, stride=stride, taps=taps), expected)
    assert windowed.cache_info().programs == 3
    np.testing.assert_array_equal(padded.interpret(x, extent=12), [*x, 0, 0])
    np.testing.assert_array_equal(padded.interpret(x, extent=np.int64(2)), x[:2])


def test_integers_in_arithmetic_are_run_time_numbers() -> None:
    for step in range(1, 6):
        assert counted.interpret(np.ones(2), step=step)[0] == 1 / step
    assert counted.cache_info().programs == 1


def test_indices_with_size_coefficients() -> None:
    A, B = np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(flattened(A), A.ravel())
    np.testing.assert_array_equal(unflattened(np.arange(7.0), P=3), A)
    np.testing.assert_array_equal(kronecker(A, B), np.kron(A, B))
    assert flattened(np.ones((0, 3))).shape == (0,)
    tc.check_grads(flattened, (A,), order=2)
    tc.check_grads(kronecker, (A, B))


def test_wrong_extents() -> None:
    with pytest.raises(tc.ShapeError, match="an extent of -1"):
        padded.interpret(np.ones(2), extent=-1)
    with pytest.raises(tc.DslSyntaxError, match="a str as an extent"):
        padded.interpret(np.ones(2), extent="a")
