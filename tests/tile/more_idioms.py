"""More of what libraries of operations are made of: sizes as coefficients, lists of axes, programs of several steps."""

from __future__ import annotations

import numpy as np

from tcdsl.tile import *
from tests.tile.reference_programs import Program, cells

__all__ = ["MORE_IDIOMS"]


def winograd(I, K, A, B, G):
    N, S, X, Y, CI, CO, BI, BO = TensorDims(8)
    n, i, j, k, x, y, ci, co = TensorIndexes(8)
    I.bind_dims(N, X, Y, CI)
    K.bind_dims(S, S, CI, CO)
    A.bind_dims(BI, BO)
    B.bind_dims(BI, BI)
    G.bind_dims(BI, S)
    XO, YO = X - S + 1, Y - S + 1
    XB, YB = (XO + BO - 1) // BO, (YO + BO - 1) // BO
    U1 = TensorOutput(BI, S, CI, CO)
    U1[i, j, ci, co] += G[i, k] * K[k, j, ci, co]
    U = TensorOutput(BI, BI, CI, CO)
    U[i, j, ci, co] += U1[i, k, ci, co] * G[j, k]
    V1 = TensorOutput(N, BI, BI, XB, YB, CI)
    V1[n, i, j, x, y, ci] += B[k, i] * I[n, k + BO * x, j + BO * y, ci]
    V2 = TensorOutput(N, BI, BI, XB, YB, CI)
    V2[n, i, j, x, y, ci] += V1[n, i, k, x, y, ci] * B[k, j]
    M = TensorOutput(N, BI, BI, XB, YB, CO)
    M[n, i, j, x, y, co] += V2[n, i, j, x, y, ci] * U[i, j, ci, co]
    O1 = TensorOutput(N, BO, BI, XB, YB, CO)
    O1[n, i, j, x, y, co] += A[k, i] * M[n, k, j, x, y, co]
    O = TensorOutput(N, XO, YO, CO)
    O[n, i + BO * x, j + BO * y, co] += O1[n, i, k, x, y, co] * A[k, j]
    return O


def batch_dot(X, Y):
    dims = TensorDims(X.rank - 2)
    I, J, K = TensorDims(3)
    batch = TensorIndexes(len(dims))
    i, j, k = TensorIndexes(3)
    X.bind_dims(*dims, I, K)
    Y.bind_dims(*dims, K, J)
    O = TensorOutput(*dims, I, J)
    O[(*batch, i, j)] += X[(*batch, i, k)] * Y[(*batch, k, j)]
    return O


def depthwise_conv(I, K):
    N, X, C, KX, M = TensorDims(5)
    n, x, c, k, m = TensorIndexes(5)
    I.bind_dims(N, X, C)
    K.bind_dims(KX, C, M)
    O = TensorOutput(N, X - KX + 1, C * M)
    O[n, x, M * c + m] += I[n, x + k, c] * K[k, c, m]
    O.add_constraint(m < M)
    return O


def squared_distances(X):
    N, D = TensorDims(2)
    i, j, d = TensorIndexes(3)
    X.bind_dims(N, D)
    S = X * X
    Q = TensorOutput(N)
    Q[i] += S[i, d]
    P = TensorOutput(N, N)
    P[i, j] = Q[i] + Q[j]
    G = TensorOutput(N, N)
    G[i, j] += X[i, d] * X[j, d]
    return P - 2 * G


def largest_of_rows(I, k):
    N, M = TensorDims(2)
    n, m = TensorIndexes(2)
    I.bind_dims(N, M)
    order = argsort(I, axis=1, direction=SortDirection.DESC)
    First = TensorOutput(N, k)
    First[n, m] = order[n, m]
    flat = reshape(First + index((N, k), 0) * M, (N * k,))
    return reshape(gather(reshape(I, (N * M,)), flat), (N, k))


def cumulative_product(I):
    N = TensorDim()
    i, k = TensorIndexes(2)
    I.bind_dims(N)
    O = TensorOutput(N)
    O[i] *= I[k]
    O.add_constraint(i - k < N)
    return O


def toeplitz(V):
    N = TensorDim()
    i, j = TensorIndexes(2)
    V.bind_dims(N)
    O = TensorOutput(N, N)
    O[i, j] = V[i - j]
    return O


def band(A):
    N = TensorDim()
    i, j = TensorIndexes(2)
    A.bind_dims(N, N)
    O = TensorOutput(N, N)
    O[i, j] = A[i, j]
    O.add_constraint(i - j + 1 < 3)
    return O


def resize(I, factor):
    N = TensorDim()
    n, k = TensorIndexes(2)
    I.bind_dims(N)
    K = (factor - abs(index((2 * factor - 1,), 0) - (factor - 1))) / factor
    O = TensorOutput(factor * N)
    O[factor * n + k - (factor - 1)] += I[n] * K[k]
    return O


def replaced_channel(P, I):
    B, N1, N2 = TensorDims(3)
    b, i1, i2 = TensorIndexes(3)
    I.bind_dims(B, N1, N2)
    O = TensorOutput(B, 4, N1, N2)
    O[b, 2, i1, i2] = I[b, i1, i2]
    O.use_default(P)
    return O


def strided_slice(I, start, step):
    N = TensorDim()
    n = TensorIndex()
    I.bind_dims(N)
    O = TensorOutput((N - start + step - 1) // step)
    O[n] = I[start + step * n]
    return O


def repeated(I, times):
    N = TensorDim()
    n, r = TensorIndexes(2)
    I.bind_dims(N)
    O = TensorOutput(times * N)
    O[r * N + n] = I[n]
    O.add_constraint(r < times)
    return O


def flattened_pools(I, K):
    N, X, Y, CI, CO, KX, KY = TensorDims(7)
    n, x, y, i, j, ci, co = TensorIndexes(7)
    I.bind_dims(N, X, Y, CI)
    K.bind_dims(KX, KY, CI, CO)
    C = TensorOutput(N, X - KX + 1, Y - KY + 1, CO)
    C[n, x, y, co] += I[n, x + i, y + j, ci] * K[i, j, ci, co]
    P = TensorOutput(N, (X - KX + 2) // 2, (Y - KY + 2) // 2, CO)
    P[n, x, y, co] >= C[n, 2 * x + i, 2 * y + j, co]
    P.add_constraints([i < 2, j < 2])
    _, PX, PY, _ = dims = TensorDims(4)
    P.bind_dims(*dims)
    _, CX, CY, _ = of_convolution = TensorDims(4)
    C.bind_dims(*of_convolution)
    return (
        reshape(C, (N, CX * CY * CO)),
        reshape(P, (1, N * PX * PY * CO)),
        reshape(P, (N * PX, PY * CO)),
        reshape(P, (N, PX, CO, PY)),
        reshape(P, (N, ((X - KX) // 2 + 1) * ((Y - KY) // 2 + 1) * CO)),
    )


def _flattened_pools(I, K):
    X, Y = I.shape[1] - K.shape[0] + 1, I.shape[2] - K.shape[1] + 1
    C = sum(I[:, a : a + X, b : b + Y] @ K[a, b] for a, b in np.ndindex(K.shape[:2]))
    P = C.reshape(len(I), X // 2, 2, Y // 2, 2, -1).max((2, 4))
    N, PX, PY, CO = P.shape
    return C.reshape(N, -1), P.reshape(1, -1), P.reshape(N * PX, -1), P.reshape(N, PX, CO, PY), P.reshape(N, -1)


def _convolved(I, K, *_):
    size = I.shape[1] - 2
    return sum(I[:, a : a + size, b : b + size] @ K[a, b] for a in range(3) for b in range(3))


def _depthwise(I, K):
    size = I.shape[1] - K.shape[0] + 1
    parts = (I[:, k : k + size, :, None] * K[k] for k in range(K.shape[0]))
    return sum(parts).reshape(I.shape[0], size, -1)


def _resized(I, factor):
    made = np.zeros(factor * len(I) + 2 * factor)
    for n, k in np.ndindex(len(I), 2 * factor - 1):
        made[factor * n + k] += I[n] * (factor - np.abs(k - factor + 1)) / factor
    return made[factor - 1 :][: factor * len(I)]


A = np.array([[1.0, 0], [1, 1], [1, -1], [0, -1]])
B = np.array([[1.0, 0, 0, 0], [0, 1, -1, 1], [-1, 1, 1, 0], [0, 0, 0, -1]])
G = np.array([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])

MORE_IDIOMS = (
    Program(winograd, (cells(1, 5, 5, 2), cells(3, 3, 2, 1), A, B, G), _convolved),
    Program(batch_dot, (cells(2, 3, 4), cells(2, 4, 2)), np.matmul),
    Program(depthwise_conv, (cells(1, 5, 2), cells(3, 2, 2)), _depthwise),
    Program(squared_distances, (cells(4, 3),), lambda X: ((X[:, None] - X) ** 2).sum(-1)),
    Program(largest_of_rows, (cells(3, 5), 2), lambda I, k: -np.sort(-I, 1)[:, :k]),
    Program(cumulative_product, (cells(5) + 2,), np.cumprod),
    Program(toeplitz, (cells(4),), lambda V: np.tril(V[np.subtract.outer(range(4), range(4))])),
    Program(band, (cells(5, 5),), lambda A: np.triu(np.tril(A, 1), -1)),
    Program(resize, (cells(4), 3), _resized),
    Program(
        replaced_channel,
        (cells(2, 4, 2, 3), cells(2, 2, 3)),
        lambda P, I: np.concatenate([P[:, :2], I[:, None], P[:, 3:]], 1),
    ),
    Program(strided_slice, (cells(9), 2, 3), lambda I, start, step: I[start::step]),
    Program(flattened_pools, (cells(2, 7, 5, 2), cells(2, 2, 2, 3)), _flattened_pools),
    Program(repeated, (cells(3), 2), np.tile),
)
