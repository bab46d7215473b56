"""Programs in the language of Tensor Comprehensions beside what NumPy makes of the same arrays."""

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

# -- ranges ----------------------------------------------------------------------------------------------------------

program(
    "the smaller of two extents",
    "def f(float(N) A, float(M) B) -> (C) { C(i) = A(i) + B(i) }",
    ((5,), (3,)),
    lambda A, B: A[:3] + B,
)
program(
    "the smallest of many extents",
    "def f(" + ", ".join(f"float(N{k}) A{k}" for k in range(9)) + ") -> (C) { "
    "C(i) = " + " + ".join(f"A{k}(i)" for k in range(9)) + " }",
    tuple((3 + k % 4,) for k in range(9)),
    lambda *given: sum(each[:3] for each in given),
)
program(
    "a range that begins above 0",
    "def f(float(N) A) -> (C) { C(i) = A(i - 2) }",
    ((4,),),
    lambda A: np.concatenate([[0, 0], A]),
)
program(
    "what is written bounds what is read",
    """def f(float(N) A) -> (C, D, E) {
        C(i) = A(i - 2)
        D(i) = exp(C(i))
        E(i) = exp(C(i)) where i in 0:N
    }""",
    ((4,),),
    lambda A: (
        np.concatenate([[0, 0], A]),
        np.concatenate([[0, 0], np.exp(A)]),
        np.concatenate([[1, 1], np.exp(A[:2])]),
    ),
)
program(
    "neutral cells below a range",
    "def f(float(N, M) A) -> (C) { C(i) max=! A(i, k) where i in 1:N }",
    ((4, 3),),
    lambda A: np.concatenate([[-np.inf], A.max(1)[1:]]),
    differentiable=False,
)
program(
    "rounds",
    "def f(float(N) I, float(K) W, float(L) V) -> (O) { O(n) +=! I(n + k + l) * W(k) * V(l) }",
    ((8,), (3,), (2,)),
    lambda I, W, V: np.correlate(np.correlate(I, W, "valid"), V, "valid"),
)
program(
    "exists bounds a range",
    "def f(float(N, M) A) -> (C) { C(i) +=! 1.0 where exists A(i, k) }",
    ((3, 4),),
    lambda A: np.full(3, 4.0),
    differentiable=False,
)
program(
    "exists narrows a range",
    "def f(float(N) A, float(M) B) -> (C) { C(i) = 2 * A(i) where exists B(i + 1) }",
    ((6,), (4,)),
    lambda A, B: 2 * A[:3],
)
program(
    "reversed",
    "def f(float(N) A) -> (C) { C(i) = A(N - 1 - i) }",
    ((5,),),
    lambda A: A[::-1],
)
program(
    "every second cell",
    "def f(float(N) A) -> (C) { C(i) = A(2 * i) }",
    ((7,),),
    lambda A: A[::2],
)
program(
    "repeated by division",
    "def f(float(N) A) -> (C) { C(i) = A(i / 3) where i in 0:3 * N }",
    ((4,),),
    lambda A: np.repeat(A, 3),
)
program(
    "tiled by the rest",
    "def f(float(N) A) -> (C) { C(i) = A(i % N) where i in 0:3 * N }",
    ((4,),),
    lambda A: np.tile(A, 3),
)
program(
    "a diagonal",
    "def f(float(N, M) A) -> (C) { C(i) = A(i, i) }",
    ((3, 5),),
    np.diagonal,
)
program(
    "a lower triangle",
    "def f(float(N, N) A) -> (C) { C(i, j) = j <= i ? A(i, j) : 0.0 }",
    ((4, 4),),
    np.tril,
)
program(
    "prefix sums",
    "def f(float(N) A) -> (C) { C(i) +=! k <= i ? A(k) : 0.0 where i in 0:N }",
    ((5,),),
    np.cumsum,
)
program(
    "bounds of sizes",
    "def f(float(N, M) A) -> (C) { C(i) = A(i, 0) where i in max(0, N - M):min(N, 2 * M) - A.1 / M + 1 - 0 * N % 2 }",
    ((4, 2),),
    lambda A: np.concatenate([[0, 0], A[2:4, 0]]),
)
program(
    "bounds of a choice between sizes",
    "def f(float(N, M) A) -> (C) { C(i) = A(i, 0) where i in 0:(N < M && !(N == M) ? N : M) }",
    ((4, 2),),
    lambda A: A[:2, 0],
)
program(
    "statements of different extents",
    "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) O(i) = B(i) }",
    ((3,), (5,)),
    lambda A, B: B,
)
program(
    "a smaller statement leaves the rest",
    "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) O(i) = B(i) }",
    ((5,), (3,)),
    lambda A, B: np.concatenate([B, A[3:]]),
)
program(
    "accumulating meets what is there",
    "def f(float(N) A, float(M) B) -> (O) { O(i) = A(i) O(i) += B(i) }",
    ((5,), (3,)),
    lambda A, B: A + np.pad(B, (0, 2)),
)

# -- operators and values --------------------------------------------------------------------------------------------

program(
    "precedence",
    "def f(float(N) a, float(N) b) -> (C) { C(i) = -a(i) + b(i) * 2 - a(i) / 4 * b(i) - (a(i) - (b(i) - 1)) }",
    ((4,), (4,)),
    lambda a, b: -a + b * 2 - a / 4 * b - (a - (b - 1)),
)
program(
    "logic and comparisons",
    """def f(float(N) a, float(N) b) -> (C, D) {
        C(i) = !(a(i) < b(i)) || a(i) >= 0 && b(i) != 0 || a(i) == b(i)
        D(i) = C(i) ? (a(i) > 0 ? 1 : 2) : a(i) <= b(i) ? 3 : 4
    }""",
    ((6,), (6,)),
    lambda a, b: ((a >= b) | ((a >= 0) & (b != 0)), np.where((a >= b) | (a >= 0), np.where(a > 0, 1, 2), 3)),
    differentiable=False,
)
program(
    "all reductions",
    """def f(float(N, M) A) -> (s, p, lo, hi, s2, p2, lo2, hi2) {
        s(i) +=! A(i, j)    p(i) *=! A(i, j)    lo(i) min=! A(i, j)    hi(i) max=! A(i, j)
        s2(i) = 1.0 where i in 0:N    p2(i) = s2(i)    lo2(i) = s2(i)    hi2(i) = s2(i)
        s2(i) += A(i, j)    p2(i) *= A(i, j)    lo2(i) min= A(i, j)    hi2(i) max= A(i, j)
    }""",
    ((3, 4),),
    lambda A: (
        *(A.sum(1), A.prod(1), A.min(1), A.max(1)),
        *(1 + A.sum(1), A.prod(1), np.minimum(1, A.min(1)), np.maximum(1, A.max(1))),
    ),
    differentiable=True,
    positive=True,
)
program(
    "an operator with ! and no reduction is a store",
    "def f(float(N) A) -> (C) { C(i) = 5.0 where i in 0:N C(i) +=! 2 * A(i) }",
    ((4,),),
    lambda A: 2 * A,
)
program(
    "casts",
    """def f(float(N) a, int32(N) k) -> (C, D, E, F) {
        C(i) = int32(a(i) * 3)
        D(i) = double(a(i)) / 3
        E(i) = float(k(i)) / 2 + half(0.5)
        F(i) = bool(k(i))
    }""",
    ((5,), ((5,), 3)),
    lambda a, k: ((a * 3).astype(np.int32), a.astype(float) / 3, k / 2 + 0.5, k != 0),
    differentiable=False,
)
program(
    "integers divide to the floor",
    "def f(int32(N) a) -> (C, D) { C(i) = (a(i) - 4) / 3 D(i) = (a(i) - 4) % 3 }",
    (((6,), 9),),
    lambda a: ((a - 4) // 3, (a - 4) % 3),
    differentiable=False,
)
program(
    "sizes and indices are values",
    "def f(float(N, M) A) -> (C) { C(i, j) = A(i, j) * N + i * M + j + A.0 where i in 0:N }",
    ((3, 4),),
    lambda A: A * 3 + np.arange(12).reshape(3, 4) + 3,
)
program(
    "numbers",
    "def f(float(N) A) -> (C) { C(i) = 1.5e1f * A(i) + .5 - 2. + 0x1F + 1E-1 + 7 }",
    ((3,),),
    lambda A: 15 * A + 0.5 - 2 + 31 + 0.1 + 7,
)
program(
    "tensors of rank 0",
    """def f(float a, float(N) x) -> (s, t, u) {
        s = a * a
        t() +=! x(i) * s()
        u = t + a()
    }""",
    ((), (4,)),
    lambda a, x: (a * a, x.sum() * a * a, x.sum() * a * a + a),
)
program(
    "sizes that are numbers",
    "def f(float(3, N) A, float(N, 2) B) -> (float(3, 2) C) { C(i, j) +=! A(i, k) * B(k, j) }",
    ((3, 4), (4, 2)),
    lambda A, B: A @ B,
)
program(
    "declared results",
    "def f(float(N) A) -> (double(N) C, float D) { C(i) = A(i) D +=! A(i) }",
    ((4,),),
    lambda A: (A.astype(float), A.sum()),
)
program(
    "local definitions",
    """def f(float(N, M) A) -> (C) {
        C(i) +=! u * u + t where m = A(i, 0), t = A(i, j), u = t - 2 * m, unused = A(j, j)
    }""",
    ((3, 4),),
    lambda A: ((A - 2 * A[:, :1]) ** 2 + A).sum(1),
)
program(
    "annotations and comments",
    """# A comment, with "quotes" and ünïcode.
    def f(float(N) A) -> (C) {   # another
        C(i) = A(i)  <=> copy(A(i)) where i in 0:N   # the last
    } # end""",
    ((4,),),
    lambda A: A,
)
program(
    "an argmin through ternaries",
    """def f(float(N, M) A) -> (lo, at) {
        lo(i) min=! A(i, j)
        at(i) min=! A(i, j) == lo(i) ? j : M
    }""",
    ((4, 5),),
    lambda A: (A.min(1), A.argmin(1)),
    differentiable=False,
)
program(
    "any and all",
    "def f(float(N, M) A) -> (any, all, n) { any(i) max=! A(i, j) > 0 all(i) min=! A(i, j) > 0 n() +=! any(i) }",
    ((4, 2),),
    lambda A: ((A > 0).any(1), (A > 0).all(1), (A > 0).any(1).sum()),
    differentiable=False,
)
program(
    "words of Python as names",
    "def f(float(lambda, class) not, float(lambda) in1) -> (and, or) { and(is) +=! not(is, def1) or(min) = in1(min) }",
    ((2, 3), (2,)),
    lambda A, b: (A.sum(1), b),
)
program(
    "a histogram",
    "def f(int32(N) x, float(B) like) -> (H) { H(b) +=! x(i) == b ? 1 : 0 where b in 0:B }",
    (((20,), 5), (5,)),
    lambda x, like: np.bincount(x, minlength=5),
    differentiable=False,
)
program(
    "data in an index, with arithmetic",
    "def f(float(N) A, int64(M) p) -> (C) { C(i) = A(2 * p(i) + 1) + A(p(p(i))) }",
    ((8,), ((4,), 4, np.int64)),
    lambda A, p: A[2 * p + 1] + A[p[p]],
)
program(
    "a branch on data guards a read",
    "def f(float(N) A, int32(N) k) -> (C) { C(i) = k(i) > 0 ? A(i - 1 + 0 * k(i)) : 0.0 where i in 1:N }",
    ((5,), ((5,), 2)),
    lambda A, k: np.concatenate([[0], np.where(k[1:] > 0, A[:-1], 0)]),
)
program(
    "small types",
    """def f(uint8(N) a, int8(N) b, int16(N) c, uint32(N) d, bool(N) e, half(N) h) -> (C, D, E, F) {
        C(i) = a(i) + b(i)
        D(i) = c(i) * d(i)
        E() +=! e(i)
        F(i) = h(i) * 2
    }""",
    (
        ((4,), 9, np.uint8),
        ((4,), 9, np.int8),
        ((4,), 9, np.int16),
        ((4,), 9, np.uint32),
        ((4,), 2, np.bool_),
        ((4,), 9, np.float16),
    ),
    lambda a, b, c, d, e, h: (a.astype(int) + b, c * d.astype(int), e.sum(), 2 * h),
    differentiable=False,
)
program(
    "a type that several statements give",
    "def f(float(N) A) -> (C) { C() = 0 C() += A(i) }",
    ((4,),),
    lambda A: A.sum(),
)
program(
    "polynomials and stencils",
    "def f(float(N) u) -> (v) { v(i) = u(i) + 0.1 * (u(i - 1) - 2 * u(i) + u(i + 1)) where i in 1:N - 1 }",
    ((6,),),
    lambda u: np.concatenate([[0], u[1:-1] + 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])]),
)
program(
    "several results of a definition",
    """def f(float(N, M) A) -> (lo, hi, w) { lo, hi = ends(A) w(i) = hi(i) - lo(i) }
    def ends(float(N, M) A) -> (lo, hi) { lo(i) min=! A(i, j) hi(i) max=! A(i, j) }""",
    ((3, 4),),
    lambda A: (A.min(1), A.max(1), A.max(1) - A.min(1)),
)
program(
    "a chain of definitions",
    """def scaled(float(N) A, float s) -> (B) { B(i) = s * A(i) }
    def norm(float(N) A) -> (n) { n() +=! A(i) * A(i) n = rsqrt(n()) }
    def f(float(N, M) A) -> (flat, n, B) {
        flat(i) = A(i / M, i % M) where i in 0:N * M
        n = norm(flat)
        B = scaled(flat, n)
    }""",
    ((2, 3),),
    lambda A: (A.ravel(), 1 / np.linalg.norm(A), A.ravel() / np.linalg.norm(A)),
)
