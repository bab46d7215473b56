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
