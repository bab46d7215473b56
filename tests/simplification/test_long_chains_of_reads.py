"""Steps in Python that each change a part of the cells: of the last one, what is read is not written out for all."""

from __future__ import annotations

import numpy as np

import tcdsl as tc
from tcdsl import op
from tcdsl.simplification.sparsity.sparse_reads import operations


@op
def cholesky(A):
    for k in range(6):
        A[k, k] = sqrt(A[k, k])
        A[i, k] /= A[k, k], i > k
        A[i, j] -= A[i, k] * A[j, k], i > k, k < j, j <= i
    return A


def test_gradients_of_many_steps_stay_short() -> None:
    B = np.random.default_rng(0).standard_normal((6, 6))
    A = B @ B.T + 6 * np.eye(6)
    gradient = tc.grad(lambda a: cholesky(a * 2.0).sum())
    # Written out, the last step would have some millions of operations.
    assert max(operations(statement.value) for statement in gradient.program(A).statements) < 1000
    np.testing.assert_allclose(np.tril(cholesky(A)) @ np.tril(cholesky(A)).T, A)
    tc.check_grads(lambda a: cholesky(a * 2.0), (A,))
