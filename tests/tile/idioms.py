"""What libraries of operations are made of, in Tile, and what NumPy says they compute."""

from __future__ import annotations

import functools

import numpy as np

from tcdsl.tile import *
from tests.tile.reference_programs import Program, cells

__all__ = ["IDIOMS"]


def max_pool_2d(I, pool, stride):
    N, X0, X1, C = TensorDims(4)
    n, x0, x1, i, j, c = TensorIndexes(6)
    I.bind_dims(N, X0, X1, C)
    R = TensorOutput(N, (X0 - pool) // stride + 1, (X1 - pool) // stride + 1, C)
    R[n, x0, x1, c] >= I[n, stride * x0 + i, stride * x1 + j, c]
    R.add_constraints([i < pool, j < pool])
    return R


def softmax(X):
    I, J = TensorDims(2)
    i, j = TensorIndexes(2)
    X.bind_dims(I, J)
    M = TensorOutput(I, 1)
    M[i, 0] >= X[i, j]
    E = exp(X - M)
    N = TensorOutput(I, 1)
    N[i, 0] += E[i, j]
    return E / N


def mean_over(I, axes):
    dims = TensorDims(I.rank)
    idxs = TensorIndexes(I.rank)
    I.bind_dims(*dims)
    count = functools.reduce(lambda a, b: a * b, [dims[axis] for axis in axes])
    O = TensorOutput(*[1 if k in axes else dims[k] for k in range(I.rank)])
    O[[0 if k in axes else idxs[k] for k in range(I.rank)]] += I[idxs]
    return O / count


def layer_norm(X, gamma, beta):
    mu = mean_over(X, [1])
    var = mean_over((X - mu) * (X - mu), [1])
    return (X - mu) / sqrt(var + 1e-5) * gamma + beta


def conv_transposed(Y, K, stride, pad):
    N, X, CO, KX, CI = TensorDims(5)
    n, x, k, ci, co = TensorIndexes(5)
    Y.bind_dims(N, X, CO)
    K.bind_dims(KX, CI, CO)
    R = TensorOutput(N, (X - 1) * stride + KX - 2 * pad, CI)
    R[n, x, ci] += Y[n, (x + pad - k) // stride, co] * K[k, ci, co]
    return R


def conv_transposed_by_scattering(Y, K, stride, pad):
    N, X, CO, KX, CI = TensorDims(5)
    n, x, k, ci, co = TensorIndexes(5)
    Y.bind_dims(N, X, CO)
    K.bind_dims(KX, CI, CO)
    R = TensorOutput(N, (X - 1) * stride + KX - 2 * pad, CI)
    R[n, stride * x + k - pad, ci] += Y[n, x, co] * K[k, ci, co]
    return R


def arg_max(I):
    X0, X1, X2 = TensorDims(3)
    x0, x1, x2 = TensorIndexes(3)
    I.bind_dims(X0, X1, X2)
    Max = TensorOutput(X0, X2)
    Max[x0, x2] >= I[x0, x1, x2]
    IX = index([X1], 0)
    O = TensorOutput(X0, X2)
    O[x0, x2] >= cond(I[x0, x1, x2], Max[x0, x2], IX[x1])
    return cast(O, DType.UINT32)


def concatenate(A, B):
    N, MA, MB = TensorDims(3)
    n, m = TensorIndexes(2)
    A.bind_dims(N, MA)
    B.bind_dims(N, MB)
    O1 = TensorOutput(N, MA + MB)
    O1[n, m] = A[n, m]
    O2 = TensorOutput(N, MA + MB)
    O2[n, MA + m] = B[n, m]
    O2.use_default(O1)
    return O2


def upsample(I):
    N, C = TensorDims(2)
    n, c, j = TensorIndexes(3)
    I.bind_dims(N, C)
    O = TensorOutput(3 * N, C)
    O[3 * n + j, c] = I[n, c]
    O.add_constraint(j < 3)
    return O


def flip(I):
    N, C = TensorDims(2)
    n, c = TensorIndexes(2)
    I.bind_dims(N, C)
    O = TensorOutput(N, C)
    O[N - 1 - n, c] = I[n, c]
    return O


def one_hot(X, count):
    N = TensorDim()
    n, k = TensorIndexes(2)
    X.bind_dims(N)
    K = index([count], 0)
    C = TensorOutput(N, count)
    C[n, k] = X[n] == K[k]
    return cast(C, DType.FLOAT32)


def grouped_conv(I, K):
    N, X, G, GCI, KX, GCO = TensorDims(6)
    n, x, g, ci, k, co = TensorIndexes(6)
    I.bind_dims(N, X, G, GCI)
    K.bind_dims(KX, G, GCI, GCO)
    O = TensorOutput(N, X, G, GCO)
    O[n, x, g, co] += I[n, x + k - KX // 2, g, ci] * K[k, g, ci, co]
    return O


def avg_pool(I):
    N = TensorDim()
    x, k = TensorIndexes(2)
    I.bind_dims(N)

    def summed(T):
        O = TensorOutput((N + 1) // 2)
        O[x] += T[2 * x + k - 1]
        O.add_constraint(k < 3)
        return O

    One = select(I == I, 1.0, 1.0)
    return summed(I) / summed(One)


def norm(X):
    idxs = TensorIndexes(X.rank)
    XSqr = X * X
    X_MS = TensorOutput()
    X_MS[()] += XSqr[idxs]
    return sqrt(X_MS)


def lars_momentum(X, Grad, Veloc, LR, lars_coeff, lars_weight_decay, momentum):
    XNorm = norm(X)
    GradNorm = norm(Grad)
    LocLR = LR * lars_coeff * XNorm / (GradNorm + lars_weight_decay * XNorm)
    NewVeloc = momentum * Veloc + LocLR * (Grad + lars_weight_decay * X)
    return (X - NewVeloc, NewVeloc)


def top_k(X, k):
    order = argsort(X, direction=SortDirection.DESC)
    n = TensorIndex()
    first = TensorOutput(k)
    first[n] = order[n]
    return gather(X, first)


def flatten(X):
    X_dims = TensorDims(X.rank)
    X.bind_dims(*X_dims)
    product = functools.reduce(lambda x, y: x * y, X_dims[1:])
    return reshape(X, (X_dims[0], product))


def attention(Q, K, V):
    H, S, D, T = TensorDims(4)
    h, s, d, t = TensorIndexes(4)
    Q.bind_dims(H, S, D)
    K.bind_dims(H, T, D)
    V.bind_dims(H, T, D)
    L = TensorOutput(H, S, T)
    L[h, s, t] += Q[h, s, d] * K[h, t, d]
    L = L / sqrt(cast(D, DType.FLOAT64))
    M = TensorOutput(H, S, 1)
    M[h, s, 0] >= L[h, s, t]
    E = exp(L - M)
    Z = TensorOutput(H, S, 1)
    Z[h, s, 0] += E[h, s, t]
    P = E / Z
    O = TensorOutput(H, S, D)
    O[h, s, d] += P[h, s, t] * V[h, t, d]
    return O


def reorganize(I, stride):
    N, C, H, W = TensorDims(4)
    n, c, h, w, i, j = TensorIndexes(6)
    I.bind_dims(N, C, H, W)
    O = TensorOutput(N, C * stride * stride, H // stride, W // stride)
    O[n, (i * stride + j) * C + c, h, w] = I[n, c, h * stride + i, w * stride + j]
    O.add_constraints([i < stride, j < stride])
    return O


def gate(X, W, b):
    B, I, H = TensorDims(3)
    n, i, h = TensorIndexes(3)
    X.bind_dims(B, I)
    W.bind_dims(I, H)
    b.bind_dims(H)
    Z = TensorOutput(B, H)
    Z[n, h] += X[n, i] * W[i, h]
    Z = Z + b
    return sigmoid(Z) * tanh(Z)


def local_response(I):
    N, C = TensorDims(2)
    n, c, k = TensorIndexes(3)
    I.bind_dims(N, C)
    Sq = I * I
    S = TensorOutput(N, C)
    S[n, c] += Sq[n, c + k - 1]
    S.add_constraint(k < 3)
    return I / pow(1 + 0.5 * S, 0.75)


def lens_conv(I, K):
    stored = TensorLens("NCX", "NXC")
    I, K = I.use(stored), K.use(TensorLens("KOI", "KIO"))
    N, X, CI, KX, CO = TensorDims(5)
    n, x, ci, k, co = TensorIndexes(5)
    I.bind_dims(N, X, CI)
    K.bind_dims(KX, CI, CO)
    O = TensorOutput(N, X - KX + 1, CO, lens=stored)
    O[n, x, co] += I[n, x + k, ci] * K[k, ci, co]
    return O


def _softmax(X):
    E = np.exp(X - X.max(-1, keepdims=True))
    return E / E.sum(-1, keepdims=True)


def _layer_norm(X, gamma, beta):
    mu = X.mean(1, keepdims=True)
    return (X - mu) / np.sqrt(X.var(1, keepdims=True) + 1e-5) * gamma + beta


def _transposed(Y, K, stride, pad):
    whole = np.zeros((Y.shape[0], (Y.shape[1] - 1) * stride + K.shape[0], K.shape[1]))
    for x, k in np.ndindex(Y.shape[1], K.shape[0]):
        whole[:, stride * x + k] += Y[:, x] @ K[k].T
    return whole[:, pad : whole.shape[1] - pad]


def _grouped(I, K):
    padded = np.pad(I, ((0, 0), (1, 1), (0, 0), (0, 0)))
    parts = (np.einsum("nxgi,gio->nxgo", padded[:, k : k + I.shape[1]], K[k]) for k in range(3))
    return sum(parts)


def _lars(X, G, V, rate, coefficient, decay, momentum):
    sizes = np.linalg.norm(X), np.linalg.norm(G)
    veloc = momentum * V + rate * coefficient * sizes[0] / (sizes[1] + decay * sizes[0]) * (G + decay * X)
    return X - veloc, veloc


def _attention(Q, K, V):
    return _softmax(Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[-1])) @ V


def _local_response(I):
    squares = np.pad(I * I, ((0, 0), (1, 1)))
    return I / (1 + 0.5 * sum(squares[:, k : k + I.shape[1]] for k in range(3))) ** 0.75


def _lens_conv(I, K):
    size = I.shape[2] - K.shape[0] + 1
    return sum(np.einsum("ncx,oc->nox", I[:, :, k : k + size], K[k]) for k in range(K.shape[0]))


M = cells(4, 5)

IDIOMS = (
    Program(max_pool_2d, (cells(1, 5, 6, 2), 2, 2), lambda I, *_: I[:, :4].reshape(1, 2, 2, 3, 2, 2).max((2, 4))),
    Program(softmax, (M,), _softmax),
    Program(layer_norm, (M, cells(5), cells(5)), _layer_norm),
    Program(conv_transposed, (cells(2, 4, 3), cells(3, 2, 3), 2, 1), _transposed),
    Program(conv_transposed_by_scattering, (cells(2, 4, 3), cells(3, 2, 3), 2, 1), _transposed),
    Program(arg_max, (cells(2, 3, 4),), lambda I: I.argmax(1)),
    Program(concatenate, (cells(2, 3), cells(2, 2)), lambda A, B: np.concatenate([A, B], 1)),
    Program(upsample, (cells(2, 3),), lambda I: np.repeat(I, 3, 0)),
    Program(flip, (cells(2, 3),), lambda I: I[::-1]),
    Program(one_hot, (np.array([0, 2, 1]), 4), lambda X, count: np.eye(count)[X]),
    Program(grouped_conv, (cells(1, 5, 2, 2), cells(3, 2, 2, 3)), _grouped),
    Program(
        avg_pool, (cells(7),), lambda I: np.array([I[np.maximum(0, k - 1) : k + 2].mean() for k in range(0, 7, 2)])
    ),
    Program(lars_momentum, (cells(3, 2), cells(3, 2), cells(3, 2), 0.1, 0.2, 0.3, 0.9), _lars),
    Program(top_k, (cells(6), 3), lambda X, k: -np.sort(-X)[:k]),
    Program(flatten, (cells(2, 3, 4),), lambda X: X.reshape(2, 12)),
    Program(attention, (cells(2, 3, 4), cells(2, 5, 4), cells(2, 5, 4)), _attention),
    Program(
        reorganize,
        (cells(1, 2, 4, 4), 2),
        lambda I, _: np.concatenate([I[:, :, i::2, j::2] for i in range(2) for j in range(2)], 1),
    ),
    Program(gate, (cells(2, 3), cells(3, 4), cells(4)), lambda X, W, b: np.tanh(X @ W + b) / (1 + np.exp(-X @ W - b))),
    Program(local_response, (cells(2, 5),), _local_response),
    Program(lens_conv, (cells(2, 3, 5), cells(2, 4, 3)), _lens_conv),
)
