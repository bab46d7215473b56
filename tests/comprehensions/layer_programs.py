"""Programs in the language of Tensor Comprehensions: products, convolutions and layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROGRAMS", "Program"]


@dataclass(frozen=True)
class Program:
    """``shapes`` are those of the arguments, with a type behind it if it is not that of the parameter's reals."""

    name: str
    source: str
    shapes: tuple[Any, ...]
    expected: Callable[..., Any]
    differentiable: bool = True
    positive: bool = False

    def arguments(self) -> list[np.ndarray]:
        """Arrays of these shapes: reals, or integers below a bound: ``(shape, bound)``, ``(shape, bound, dtype)``."""
        rng = np.random.default_rng(sum(map(ord, self.name)))
        made: list[np.ndarray] = []
        for shape in self.shapes:
            if shape and isinstance(shape[0], tuple):
                extents, bound, *dtype = shape
                made.append(rng.integers(0, bound, extents).astype(dtype[0] if dtype else np.int32))
            else:
                reals = rng.uniform(0.2, 1.5, shape) if self.positive else rng.standard_normal(shape)
                made.append(reals.astype(np.float32))
        return made


def _windows(x: np.ndarray, *sizes: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, sizes, tuple(range(-len(sizes), 0)))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _mlp3(I: Any, W2: Any, B2: Any, W3: Any, B3: Any, W1: Any, B1: Any) -> tuple[np.ndarray, ...]:
    O1 = np.maximum(I @ W1.T + B1, 0)
    O2 = np.maximum(O1 @ W2.T + B2, 0)
    return O1, O2, np.maximum(O2 @ W3.T + B3, 0)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _wavenet(X: np.ndarray, WF: np.ndarray, WG: np.ndarray, WR: np.ndarray) -> tuple[np.ndarray, ...]:
    late = np.pad(X, ((0, 0), (0, 0), (2, 0)))[:, :, :-2]
    both = np.stack([X, late], -1)
    F, G = (np.einsum("bdtk,cdk->bct", both, W) for W in (WF, WG))
    Z = np.tanh(F) * _sigmoid(G)
    return F, G, Z, np.einsum("bdt,cd->bct", Z, WR) + X


def _batch_norm(I: Any, momentum: Any, eps: Any, mean_in: Any, var_in: Any) -> tuple[Any, ...]:
    mean = I.mean((0, 2))
    mean_out = (1 - momentum) * mean_in + momentum * mean
    centered = I - mean_out[:, None]
    variance = centered**2
    expected = (variance + eps).mean((0, 2))
    var_out = 1 / np.sqrt((1 - momentum) * var_in + momentum * expected)
    return centered * var_out[:, None], mean_out, var_out, mean, centered, variance, expected


def _group_norm(I: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, ...]:
    mu, var = I.mean((2, 3), keepdims=True), I.var((2, 3), keepdims=True)
    out = gamma[:, :, None] * (I - mu) / np.sqrt(var + 1e-5) + beta[:, :, None]
    return out, I.sum((2, 3)), (I * I).sum((2, 3))


def _attention(Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
    S = Q @ K.T / 2
    top = S.max(1)
    P = np.exp(S - top[:, None])
    total = P.sum(1)
    return S, top, P, total, P @ V / total[:, None]


PROGRAMS: list[Program] = []


def program(name: str, source: str, shapes: tuple[Any, ...], expected: Callable[..., Any], **options: Any) -> None:
    """Enter a program."""
    PROGRAMS.append(Program(name, source, shapes, expected, **options))


# -- products --------------------------------------------------------------------------------------------------------

program(
    "matmul",
    "def f(float(N, K) A, float(K, M) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }",
    ((3, 4), (4, 5)),
    lambda A, B: A @ B,
)
program(
    "batched matmul",
    "def f(float(B, N, M) X, float(B, M, K) Y) -> (Z) { Z(b, n, k) +=! X(b, n, mm) * Y(b, mm, k) }",
    ((2, 3, 4), (2, 4, 5)),
    lambda X, Y: X @ Y,
)
program(
    "transposed matmul",
    "def f(float(N, K) A, float(M, K) B) -> (C) { C(i, j) +=! A(i, k) * B(j, k) }",
    ((3, 4), (5, 4)),
    lambda A, B: A @ B.T,
)
program(
    "convolution",
    """def f(float(N, C, H, W) I, float(M, C, KH, KW) W1, float(M) B) -> (O) {
        O(n, m, h, w) +=! I(n, c, h + kh, w + kw) * W1(m, c, kh, kw)
        O(n, m, h, w) = O(n, m, h, w) + B(m)
    }""",
    ((2, 3, 6, 5), (4, 3, 3, 2), (4,)),
    lambda I, W, B: np.einsum("nchwij,mcij->nmhw", _windows(I, 3, 2), W) + B[:, None, None],
)
program(
    "strided convolution",
    "def f(float(H) I, float(K) W) -> (O) { O(h) +=! I(2 * h + k) * W(k) }",
    ((9,), (3,)),
    lambda I, W: _windows(I, 3)[::2] @ W,
)
program(
    "max pooling",
    "def f(float(H, W) I) -> (O) { O(h, w) max=! I(2 * h + i, 2 * w + j) where i in 0:2, j in 0:2 }",
    ((6, 4),),
    lambda I: I.reshape(3, 2, 2, 2).max((1, 3)),
)
program(
    "softmax",
    """def f(float(N, D) I) -> (top, e, total, O) {
        top(n) max=! I(n, d)
        e(n, d) = exp(I(n, d) - top(n))
        total(n) +=! e(n, d)
        O(n, d) = e(n, d) / total(n)
    }""",
    ((3, 5),),
    lambda I: (I.max(1), np.exp(I - I.max(1, keepdims=True)), np.exp(I - I.max(1, keepdims=True)).sum(1), _softmax(I)),
)
program(
    "a ternary at a border",
    "def f(float(T) A) -> (O) { O(t) = (t - 1 >= 0) ? A(t - 1) : 0.5 where t in 0:T }",
    ((5,),),
    lambda A: np.concatenate([[0.5], A[:-1]]),
)
program(
    "embedding",
    "def f(float(E, D) table, int32(B, L) ids) -> (O) { O(b, d) +=! table(ids(b, l), d) }",
    ((7, 3), ((2, 4), 7)),
    lambda table, ids: table[ids].sum(1),
)
program(
    "two statements, out of order calls",
    """def f(float(N, N) A) -> (B, D) { B = g(A) D = trace(B) }
    def g(float(N, M) A) -> (C) { C(i, j) = A(j, i) }
    def trace(float(N, N) A) -> (t) { t() +=! A(i, i) }""",
    ((3, 3),),
    lambda A: (A.T, np.trace(A)),
)
program(
    "contraction of four axes",
    "def f(float(A, B, C) X, float(C, B, D) Y) -> (Z) { Z(a, d) +=! X(a, b, c) * Y(c, b, d) }",
    ((2, 3, 4), (4, 3, 5)),
    lambda X, Y: np.einsum("abc,cbd->ad", X, Y),
)
program(
    "outer product",
    "def f(float(N) x, float(M) y) -> (Z) { Z(i, j) = x(i) * y(j) }",
    ((3,), (4,)),
    np.outer,
)
program(
    "Kronecker product",
    """def f(float(M, N) A, float(P, Q) B) -> (K) {
        K(x, y) = A(x / P, y / Q) * B(x % P, y % Q) where x in 0:M * P, y in 0:N * Q
    }""",
    ((2, 3), (3, 2)),
    np.kron,
)
program(
    "Kronecker recurrent units",
    """def f(float(D0, N0) W0, float(D1, N1) W1, float(M, N0, N1) X) -> (XW1, Y) {
        XW1(m, n0, d1) +=! X(m, n0, n1) * W1(d1, n1)
        Y(m, d0, d1) +=! XW1(m, n0, d1) * W0(d0, n0)
    }""",
    ((2, 3), (4, 2), (3, 3, 2)),
    lambda W0, W1, X: (X @ W1.T, np.einsum("mab,ca->mcb", X @ W1.T, W0)),
)

# -- convolutions ----------------------------------------------------------------------------------------------------

program(
    "grouped convolution",
    """def f(float(N, G, C, H, W) I, float(G, F, C, KH, KW) W1, float(G, F) B) -> (O) {
        O(n, g, o, h, w) +=! I(n, g, i, h + kh, w + kw) * W1(g, o, i, kh, kw)
        O(n, g, o, h, w) = O(n, g, o, h, w) + B(g, o)
    }""",
    ((2, 2, 3, 5, 4), (2, 3, 3, 2, 2), (2, 3)),
    lambda I, W, B: np.einsum("ngchwij,gfcij->ngfhw", _windows(I, 2, 2), W) + B[:, :, None, None],
)
program(
    "dilated convolution by where",
    "def f(float(H) I, float(K) W) -> (O) { O(h) +=! I(h + 2 * k) * W(k) where h in 0:H - 2 * (K - 1) }",
    ((9,), (3,)),
    lambda I, W: sum(W[k] * I[2 * k : 2 * k + 5] for k in range(3)),
)
program(
    "a stride that is a size",
    "def f(float(H) I, float(K) W, float(S) stride) -> (O) { O(h) +=! I(S * h + k) * W(k) }",
    ((10,), (2,), (3,)),
    lambda I, W, stride: _windows(I, 2)[::3] @ W,
)
program(
    "padding by ternaries",
    """def f(float(H) I, float(K) W) -> (O) {
        O(h) +=! ((h + k - 1 >= 0 && h + k - 1 < H) ? I(h + k - 1) : 0.0) * W(k) where h in 0:H, k in 0:K
    }""",
    ((6,), (3,)),
    lambda I, W: np.correlate(I, W, "same"),
)
program(
    "transposed convolution",
    """def f(float(H) I, float(K) W) -> (O) {
        O(o) +=! ((o - k >= 0 && o - k < H) ? I(o - k) : 0.0) * W(k) where o in 0:H + K - 1, k in 0:K
    }""",
    ((5,), (3,)),
    np.convolve,
)
program(
    "average pooling",
    "def f(float(H, W) I) -> (O) { O(h, w) +=! I(2 * h + i, 2 * w + j) / 4 where i in 0:2, j in 0:2 }",
    ((6, 4),),
    lambda I: I.reshape(3, 2, 2, 2).mean((1, 3)),
)
program(
    "min pooling of size KH",
    "def f(float(H) I, float(KH) window) -> (O) { O(h) min=! I(h + k) where k in 0:KH }",
    ((6,), (3,)),
    lambda I, window: _windows(I, 3).min(1),
)
program(
    "a causal, dilated WaveNet block",
    """def f(float(B, C, T) X, float(C, C, 2) WF, float(C, C, 2) WG, float(C, C) WR) -> (F, G, Z, R) {
        F(b, c, t) +=! (t - 2 * k >= 0 ? X(b, d, t - 2 * k) : 0.0) * WF(c, d, k) where t in 0:T, k in 0:2
        G(b, c, t) +=! (t - 2 * k >= 0 ? X(b, d, t - 2 * k) : 0.0) * WG(c, d, k) where t in 0:T, k in 0:2
        Z(b, c, t) = tanh(F(b, c, t)) / (1 + exp(-G(b, c, t)))
        R(b, c, t) +=! Z(b, d, t) * WR(c, d)
        R(b, c, t) += X(b, c, t)
    }""",
    ((2, 3, 6), (3, 3, 2), (3, 3, 2), (3, 3)),
    _wavenet,
)
program(
    "locally connected",
    "def f(float(H) I, float(X, K) W) -> (O) { O(x) +=! I(x + k) * W(x, k) }",
    ((6,), (4, 3)),
    lambda I, W: (_windows(I, 3) * W).sum(1),
)

# -- layers ----------------------------------------------------------------------------------------------------------

program(
    "a fully connected layer with relu",
    """def f(float(B, M) I, float(O, M) W1, float(O) B1) -> (O1) {
        O1(b, o) +=! I(b, m) * W1(o, m)
        O1(b, o) = O1(b, o) + B1(o)
        O1(b, o) = fmax(O1(b, o), 0)
    }""",
    ((2, 3), (4, 3), (4,)),
    lambda I, W, B: np.maximum(I @ W.T + B, 0),
)
program(
    "three layers",
    """def f(float(B,M) I, float(O,N) W2, float(O) B2, float(P,O) W3, float(P) B3, float(N,M) W1, float(N) B1)
        -> (O1, O2, O3)
    {
        O1(b,n) = B1(n) where b in 0:B   O1(b,n) +=  I(b,m) * W1(n,m)   O1(b,n) = max(O1(b,n), 0)
        O2(b,o) = B2(o) where b in 0:B   O2(b,o) += O1(b,n) * W2(o,n)   O2(b,o) = max(O2(b,o), 0)
        O3(b,p) = B3(p) where b in 0:B   O3(b,p) += O2(b,o) * W3(p,o)   O3(b,p) = max(O3(b,p), 0)
    }""",
    ((2, 3), (4, 5), (4,), (2, 4), (2,), (5, 3), (5,)),
    _mlp3,
)
program(
    "layer norm",
    """def f(float(N, D) X, float(D) g, float(D) b) -> (m, v, O) {
        m(n) +=! X(n, d) / D
        v(n) +=! (X(n, d) - m(n)) * (X(n, d) - m(n)) / D
        O(n, d) = (X(n, d) - m(n)) * rsqrt(v(n) + 1e-5) * g(d) + b(d)
    }""",
    ((3, 4), (4,), (4,)),
    lambda X, g, b: (
        X.mean(1),
        X.var(1),
        (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5) * g + b,
    ),
)
program(
    "batch norm with running statistics",
    """def f(float(N, C, H) I, float momentum, float eps, float(C) rMeanIn, float(C) rVarIn)
        -> (O, rMeanOut, rVarOut, mean, centered, variance, expectedVariance)
    {
        mean(c) +=! I(nn, c, hh)
        mean(c) = mean(c) / (N * H)
        rMeanOut(c) = (1 - momentum) * rMeanIn(c) + momentum * mean(c)
        centered(n, c, h) = I(n, c, h) - rMeanOut(c)
        variance(n, c, h) = centered(n, c, h) * centered(n, c, h)
        expectedVariance(c) +=! (variance(n, c, h) + eps) / (N * H)
        rVarOut(c) = rsqrt((1 - momentum) * rVarIn(c) + momentum * expectedVariance(c))
        O(n, c, h) = centered(n, c, h) * rVarOut(c)
    }""",
    ((3, 2, 4), (), (), (2,), (2,)),
    _batch_norm,
    positive=True,
)
program(
    "group norm",
    """def f(float(N, G, D, H) I, float(G, D) gamma, float(G, D) beta) -> (O, sum, sumsq) {
        sum(n, g) +=! I(n, g, d, h)
        sumsq(n, g) +=! I(n, g, d, h) * I(n, g, d, h)
        O(n, g, d, h) = gamma(g, d) * (I(n, g, d, h) - mu) * rsqrt(sumsq(n, g) / (D * H) - mu * mu + 1e-5) + beta(g, d)
            where mu = sum(n, g) / (D * H)
    }""",
    ((2, 2, 3, 4), (2, 3), (2, 3)),
    _group_norm,
)
program(
    "moments in several statements",
    """def f(float(N, K) I) -> (mean, var) {
        mean(n) +=! I(n, k)
        mean(n) = mean(n) / K
        var(n) +=! I(n, k) * I(n, k)
        var(n) = var(n) / K - mean(n) * mean(n)
    }""",
    ((3, 5),),
    lambda I: (I.mean(1), I.var(1)),
)
program(
    "two lookup tables",
    """def f(float(E1, D) LUT1, int32(B, L1) I1, float(E2, D) LUT2, int32(B, L2) I2) -> (O1, O2) {
        O1(b, d) +=! LUT1(I1(b, l), d)
        O2(b, d) +=! LUT2(I2(b, l), d)
    }""",
    ((5, 2), ((3, 4), 5), (6, 2), ((3, 2), 6)),
    lambda LUT1, I1, LUT2, I2: (LUT1[I1].sum(1), LUT2[I2].sum(1)),
)
program(
    "attention",
    """def f(float(N, D) Q, float(M, D) K, float(M, E) V) -> (S, top, P, total, O) {
        S(n, m) +=! Q(n, d) * K(m, d)
        S(n, m) = S(n, m) * rsqrt(float(D))
        top(n) max=! S(n, m)
        P(n, m) = exp(S(n, m) - top(n))
        total(n) +=! P(n, m)
        O(n, e) +=! P(n, m) * V(m, e)
        O(n, e) = O(n, e) / total(n)
    }""",
    ((3, 4), (5, 4), (5, 2)),
    _attention,
)
program(
    "cross entropy of labels",
    """def f(float(N, C) X, int32(N) label) -> (total, loss) {
        total(n) +=! exp(X(n, c))
        loss() +=! (log(total(n)) - X(n, label(n))) / N
    }""",
    ((4, 3), ((4,), 3)),
    lambda X, label: (np.exp(X).sum(1), (np.log(np.exp(X).sum(1)) - X[np.arange(4), label]).mean()),
)
