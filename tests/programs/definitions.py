"""The characteristic programs, as a user would write them."""
# ruff: noqa: RUF059 (shapes are unpacked to name all axes)

from __future__ import annotations

from tcdsl import op

__all__ = [
    "argmax_rows",
    "attention",
    "average",
    "blur_reflect",
    "complex_convolution",
    "cumulative_sum",
    "diagonal",
    "dilated_convolution_2d",
    "full_convolution",
    "gather_rows",
    "histogram",
    "layer_norm",
    "log_sum_exp",
    "matmul",
    "max_pool",
    "max_pool_up",
    "outer_difference",
    "padded_convolution",
    "padded_convolution_2d",
    "pairwise_distance",
    "scatter_add",
    "skipping",
    "softmax",
    "strided_convolution_2d",
    "trace",
    "transpose",
    "upsample",
    "valid_convolution",
]


@op
def matmul(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def transpose(A):
    B[j, i] = A[i, j]
    return B


@op
def trace(A):
    t[()] += A[i, i]
    return t


@op
def diagonal(A):
    d[i] = A[i, i]
    return d


@op
def average(A):
    M, N = A.shape
    total = output(N)
    total[y] += A[x, y]
    return total / M


@op
def cumulative_sum(I):
    N = I.shape[0]
    O[i] += I[k], k <= i, i < N
    return O


@op
def skipping(I):
    M, N = I.shape
    O = output(M)
    O[2 * i] += I[2 * i, j]
    return O


@op
def valid_convolution(I, K):
    O[n, x, c] += I[n, x + k, d] * K[k, d, c]
    return O


@op
def padded_convolution(I, K):
    N, X, D = I.shape
    W, E, C = K.shape
    O: real[N, X, C]
    O[n, x, c] += I[n, x + k - W // 2, d] * K[k, d, c]
    return O


@op
def full_convolution(x, c):
    y[i + k] += x[i] * c[k]
    return y


@op
def strided_convolution_2d(I, K):
    O[n, x, y, c] += I[n, 2 * x + p, 2 * y + q, d] * K[p, q, d, c]
    return O


@op
def dilated_convolution_2d(I, K):
    I.bind_dims(N, X, Y, CI)
    K.bind_dims(KX, KY, CI, CO)
    O = output(N, X - 2 * (KX - 1), Y - 3 * (KY - 1), CO)
    O[n, x, y, c] += I[n, x + 2 * p, y + 3 * q, d] * K[p, q, d, c]
    return O


@op
def padded_convolution_2d(I, K):
    N, D, X, Y = I.shape
    C, D, P, Q = K.shape
    O = output(N, C, X, Y)
    O[n, c, x, y] += I[n, d, x + p - P // 2, y + q - Q // 2] * K[c, d, p, q]
    return O


@op
def complex_convolution(I, K, *, stride, dilation):
    I.bind_dims(N, X0, X1, G, CI)
    K.bind_dims(K0, K1, G, CI, CO)
    Y0 = (X0 + stride[0] - 1) // stride[0]
    Y1 = (X1 + stride[1] - 1) // stride[1]
    E0 = dilation[0] * (K0 - 1) + 1
    E1 = dilation[1] * (K1 - 1) + 1
    P0 = ((Y0 - 1) * stride[0] + E0 - X0) // 2
    P1 = ((Y1 - 1) * stride[1] + E1 - X1) // 2
    O = output(N, Y0, Y1, G, CO)
    O[n, x, y, g, c] += (
        I[n, stride[0] * x + dilation[0] * p - P0, stride[1] * y + dilation[1] * q - P1, g, d] * K[p, q, g, d, c]
    )
    return O


@op
def max_pool(I):
    O[i] = max(I[2 * i + j] for j in range(2))
    return O


@op
def max_pool_up(I):
    N = I.shape[0]
    O = output((N + 1) // 2)
    O[i] >>= I[2 * i + j], j < 2
    return O


@op
def upsample(I):
    O[i, j] = I[i // 2, j // 3]
    return O


@op
def softmax(X):
    m[i] >>= X[i, j]
    E[i, j] = exp(X[i, j] - m[i])
    Y[i, j] = E[i, j] / sum(E[i, l])
    return Y


@op
def log_sum_exp(X):
    m[i] = max(X[i, j])
    y[i] = m[i] + log(sum(exp(X[i, j] - m[i])))
    return y


@op
def layer_norm(X, scale, shift):
    mu[i] = mean(X[i, j])
    var[i] = mean((X[i, j] - mu[i]) ** 2)
    Y[i, j] = (X[i, j] - mu[i]) / sqrt(var[i] + 1e-5) * scale[j] + shift[j]
    return Y


@op
def gather_rows(table, ids):
    E[i, d] = table[ids[i], d]
    return E


@op
def scatter_add(rows, ids, values):
    rows[ids[i], d] += values[i, d]
    return rows


@op
def histogram(bins, weights, edges):
    H = output(edges.shape[0])
    H[bins[i]] += weights[i]
    return H


@op
def blur_reflect(I):
    N, M = I.shape
    O = output(N, M)
    O[x, y] = sum(
        I[reflect(x + p), reflect(y + q)] / ((1 + p * p) * (1 + q * q)) for p in range(-1, 2) for q in range(-1, 2)
    )
    return O


@op
def argmax_rows(X):
    p[i] = argmax(X[i, j])
    return p


@op
def outer_difference(x, y):
    D[i, j] = x[i] - y[j]
    return D


@op
def pairwise_distance(X, Y):
    S[i, j] += (X[i, d] - Y[j, d]) ** 2
    D[i, j] = sqrt(S[i, j])
    return D


@op
def attention(Q, K, V):
    N, D = Q.shape
    S[i, j] += Q[i, d] * K[j, d]
    P[i, j] = exp(S[i, j] - max(S[i, l]))
    O[i, c] = sum(P[i, j] * V[j, c]) / sum(P[i, l])
    return O
