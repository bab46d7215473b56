"""The benchmarked computations as one writes them here."""

from __future__ import annotations

from tcdsl import op, output

__all__ = [
    "added_transposed",
    "attention",
    "batched_first",
    "batched_last",
    "batched_middle",
    "black_scholes",
    "blur",
    "channels_last",
    "column_softmax",
    "column_sums",
    "convolution",
    "copied",
    "cumulative_sum",
    "depthwise",
    "distances",
    "embedding",
    "five_points",
    "group_norm",
    "grouped",
    "heads_first",
    "kronecker",
    "layer",
    "layer_norm",
    "log_sum_exp",
    "matmul",
    "matmul_transposed",
    "matvec",
    "max_pool",
    "mish",
    "moments",
    "n_body",
    "quick_gelu",
    "row_maxima",
    "row_sums",
    "seven_points",
    "softmax",
    "strided",
    "tensordot",
    "three_matrices",
]


@op
def copied(X):
    Y[i] = X[i]
    return Y


@op
def matmul(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def matmul_transposed(A, B):
    C[i, j] += A[i, k] * B[j, k]
    return C


@op
def matvec(A, x):
    y[i] += A[i, k] * x[k]
    return y


@op
def batched_first(A, B):
    C[b, i, j] += A[b, i, k] * B[b, k, j]
    return C


@op
def batched_middle(A, B):
    C[i, b, j] += A[i, b, k] * B[k, b, j]
    return C


@op
def batched_last(A, B):
    C[i, j, b] += A[i, k, b] * B[k, j, b]
    return C


@op
def tensordot(A, B):
    C[b, f] += A[a, b, c, d, e] * B[a, c, f, d, e]
    return C


@op
def three_matrices(A, B, C):
    D[i, l] += A[i, j] * B[j, k] * C[k, l]
    return D


@op
def kronecker(X, A, B, C):
    Y[n, i, j, k] += X[n, a, b, c] * A[i, a] * B[j, b] * C[k, c]
    return Y


@op
def layer(X, W, b):
    Y[n, i] = relu(sum(X[n, k] * W[i, k]) + b[i])
    return Y


@op
def convolution(I, K):
    """3 x 3, in the order of PyTorch, with zeros around."""
    N, _, H, W = I.shape
    O = output(N, K.shape[0], H, W)
    O[n, c, y, x] += I[n, d, y + r - 1, x + s - 1] * K[c, d, r, s]
    return O


@op
def channels_last(I, K):
    N, H, W, _ = I.shape
    O = output(N, H, W, K.shape[3])
    O[n, y, x, c] += I[n, y + r - 1, x + s - 1, d] * K[r, s, d, c]
    return O


@op
def strided(I, K):
    O[n, c, y, x] += I[n, d, 2 * y + r, 2 * x + s] * K[c, d, r, s]
    return O


@op
def grouped(I, K):
    O[n, g, c, y, x] += I[n, g, d, y + r, x + s] * K[g, c, d, r, s]
    return O


@op
def depthwise(I, K):
    O[n, c, y, x] += I[n, c, y + r, x + s] * K[c, r, s]
    return O


@op
def max_pool(X):
    Y[n, c, y, x] = max(X[n, c, 2 * y + r, 2 * x + s] for r in range(2) for s in range(2))
    return Y


@op
def softmax(X):
    top[i] = max(X[i, j])
    E[i, j] = exp(X[i, j] - top[i])
    Y[i, j] = E[i, j] / sum(E[i, k])
    return Y


@op
def column_softmax(X):
    top[j] = max(X[i, j])
    E[i, j] = exp(X[i, j] - top[j])
    total[j] += E[i, j]
    Y[i, j] = E[i, j] / total[j]
    return Y


@op
def log_sum_exp(X):
    top[i] = max(X[i, j])
    Y[i] = top[i] + log(sum(exp(X[i, j] - top[i])))
    return Y


@op
def layer_norm(X):
    mu[i] = mean(X[i, j])
    var[i] = mean((X[i, j] - mu[i]) ** 2)
    Y[i, j] = (X[i, j] - mu[i]) / sqrt(var[i] + 1e-5)
    return Y


@op
def group_norm(X):
    mu[n, g] = mean(X[n, g, c, y, x])
    var[n, g] = mean((X[n, g, c, y, x] - mu[n, g]) ** 2)
    Y[n, g, c, y, x] = (X[n, g, c, y, x] - mu[n, g]) / sqrt(var[n, g] + 1e-5)
    return Y


@op
def moments(X):
    mu[i] = mean(X[i, j])
    square[i] = mean(X[i, j] * X[i, j])
    return mu, square


@op
def row_sums(X):
    y[i] += X[i, j]
    return y


@op
def column_sums(X):
    y[j] += X[i, j]
    return y


@op
def row_maxima(X):
    k[i] = argmax(X[i, j])
    return k


@op
def cumulative_sum(X):
    Y[i, j] += X[i, k], k <= j, j < X.shape[1]
    return Y


@op
def quick_gelu(X):
    Y[i] = X[i] * sigmoid(1.702 * X[i])
    return Y


@op
def mish(X):
    Y[i] = X[i] * tanh(softplus(X[i]))
    return Y


@op
def black_scholes(A, B, C):
    """Prices of call options, from numbers for price, strike and time, at 2 % interest and 30 % volatility."""
    price[i] = exp(0.2 * A[i])
    strike[i] = exp(0.2 * B[i])
    time[i] = exp(0.5 * C[i])
    d[i] = (log(price[i] / strike[i]) + 0.065 * time[i]) / (0.3 * sqrt(time[i]))
    Y[i] = 0.5 * price[i] * (1 + erf(0.7071067811865476 * d[i])) - 0.5 * strike[i] * exp(-0.02 * time[i]) * (
        1 + erf(0.7071067811865476 * (d[i] - 0.3 * sqrt(time[i])))
    )
    return Y


@op
def five_points(X):
    """The mean of the four neighbours minus the cell, where all five exist."""
    Y[i, j] = 0.25 * (X[i, j + 1] + X[i + 2, j + 1] + X[i + 1, j] + X[i + 1, j + 2]) - X[i + 1, j + 1]
    return Y


@op
def seven_points(X):
    Y[i, j, k] = (
        X[i, j + 1, k + 1] + X[i + 2, j + 1, k + 1] + X[i + 1, j, k + 1] + X[i + 1, j + 2, k + 1]
        + X[i + 1, j + 1, k] + X[i + 1, j + 1, k + 2] - 6 * X[i + 1, j + 1, k + 1]
    )  # fmt: skip
    return Y


@op
def blur(X):
    """Three cells along each axis, one axis after the other."""
    H[i, j] = 0.25 * X[i, j] + 0.5 * X[i, j + 1] + 0.25 * X[i, j + 2]
    Y[i, j] = 0.25 * H[i, j] + 0.5 * H[i + 1, j] + 0.25 * H[i + 2, j]
    return Y


@op
def added_transposed(A):
    B[i, j] = A[i, j] + A[j, i]
    return B


@op
def heads_first(X):
    Y[b, h, t, d] = X[b, t, h, d]
    return Y


@op
def distances(X, Y):
    D[i, j] += (X[i, k] - Y[j, k]) ** 2
    return D


@op
def n_body(X):
    """Accelerations of bodies of one mass, softened."""
    R[i, j] = recip_sqrt(sum(square(X[c, j] - X[c, i])) + 0.01)
    A[c, i] += (X[c, j] - X[c, i]) * R[i, j] ** 3
    return A


@op
def attention(Q, K, V):
    S[b, h, i, j] += Q[b, h, i, d] * K[b, h, j, d]
    top[b, h, i] = max(S[b, h, i, j])
    E[b, h, i, j] = exp((S[b, h, i, j] - top[b, h, i]) * 0.125)
    total[b, h, i] += E[b, h, i, j]
    O[b, h, i, d] += E[b, h, i, j] * V[b, h, j, d]
    Y[b, h, i, d] = O[b, h, i, d] / total[b, h, i]
    return Y


@op
def embedding(W, ids):
    Y[i, j] = W[ids[i], j]
    return Y
