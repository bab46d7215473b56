"""The programs of Tile's tutorial, and what NumPy says they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.tile import *  # as users write it

__all__ = ["PROGRAMS", "Program"]


def sum_over_axis(I):
    M, N = TensorDims(2)
    m, n = TensorIndexes(2)
    I.bind_dims(M, N)
    O = TensorOutput(N)
    # contraction
    O[n] += I[m, n]
    return O


def max_over_axis(I):
    M, N = TensorDims(2)
    m, n = TensorIndexes(2)
    I.bind_dims(M, N)
    O = TensorOutput(N)
    O[n] >= I[m, n]
    return O


def matmul(A, B):
    I, J, K = TensorDims(3)
    i, j, k = TensorIndexes(3)
    A.bind_dims(I, K)
    B.bind_dims(K, J)
    C = TensorOutput(I, J)
    C[i, j] += A[i, k] * B[k, j]
    return C


def global_min(I):
    i, j, k = TensorIndexes(3)
    Neg = -I
    O_Neg = TensorOutput()
    O_Neg[()] >= Neg[i, j, k]
    O = -O_Neg
    return O


def avg(I):
    X, Y = TensorDims(2)
    x, y = TensorIndexes(2)
    I.bind_dims(X, Y)
    Sum = TensorOutput(Y)  # the tutorial forgets the size
    Sum[y] += I[x, y]
    return Sum / X


def avg_stages(I):
    X, Y = TensorDims(2)
    x, y = TensorIndexes(2)
    I.bind_dims(X, Y)
    Sum = TensorOutput()
    Sum[()] += I[x, y]
    PartialMean = Sum / X
    return PartialMean / Y


def avg_merge(I):
    X, Y = TensorDims(2)
    x, y = TensorIndexes(2)
    I.bind_dims(X, Y)
    Sum = TensorOutput()
    Sum[()] += I[x, y]
    return Sum / (X * Y)


def wrong_max_pool_1d(I):
    N = TensorDim()
    i, j = TensorIndexes(2)
    I.bind_dims(N)
    O = TensorOutput(N // 2)
    O[i] >= I[2 * i + j]
    return O


def max_pool_1d(I):
    N = TensorDim()
    i, j = TensorIndexes(2)
    I.bind_dims(N)
    O = TensorOutput((N + 1) // 2)
    O[i] >= I[2 * i + j]
    O.add_constraint(j < 2)
    return O


def skip(I):
    M, N = TensorDims(2)
    i, j = TensorIndexes(2)
    I.bind_dims(M, N)
    O = TensorOutput(N)
    O[2 * i] += I[2 * i, j]
    return O


def csum(I):
    N = TensorDim()
    i, k = TensorIndexes(2)
    I.bind_dims(N)
    O = TensorOutput(N)
    O[i] += I[k]
    O.add_constraint(i - k < N)
    return O


def conv_1d(I, K):
    N, X, KX, CI, CO = TensorDims(5)
    n, x, k, ci, co = TensorIndexes(5)
    I.bind_dims(N, X, CI)
    K.bind_dims(KX, CI, CO)
    O = TensorOutput(N, X - KX + 1, CO)
    O[n, x, co] += I[n, x + k, ci] * K[k, ci, co]
    return O


def conv_2d_dilated(I, K):
    N, X, Y, KX, KY, CI, CO = TensorDims(7)
    n, x, y, kx, ky, ci, co = TensorIndexes(7)
    I.bind_dims(N, X, Y, CI)
    K.bind_dims(KX, KY, CI, CO)
    O = TensorOutput(N, X - 2 * (KX - 1), Y - 3 * (KY - 1), CO)
    O[n, x, y, co] += I[n, x + 2 * kx, y + 3 * ky, ci] * K[kx, ky, ci, co]
    return O


def complex_conv_2d(
    I,
    K,
    s0,
    s1,  # stride coeffs
    d0,
    d1,  # dilation coeffs
):
    # "same-lower" autopadding will be applied
    N, G, GCI, GCO = TensorDims(4)
    X0, X1 = TensorDims(2)
    K0, K1 = TensorDims(2)
    n, g, gci, gco = TensorIndexes(4)
    x0, x1 = TensorIndexes(2)
    k0, k1 = TensorIndexes(2)
    I.bind_dims(N, X0, X1, G, GCI)
    K.bind_dims(K0, K1, G, GCI, GCO)

    # Compute output spatial dimensions
    Y0, Y1 = TensorDims(2)
    Y0 = (X0 + s0 - 1) // s0
    Y1 = (X1 + s1 - 1) // s1

    # Compute the effective kernel size after dilation
    EK0, EK1 = TensorDims(2)
    EK0 = d0 * (K0 - 1) + 1
    EK1 = d1 * (K1 - 1) + 1

    # Compute the padding offset
    P0, P1 = TensorDims(2)
    P0 = ((Y0 - 1) * s0 + EK0 - X0) // 2
    P1 = ((Y1 - 1) * s1 + EK1 - X1) // 2

    # Specify the output size
    O = TensorOutput(N, Y0, Y1, G, GCO)

    # Compute the convolution
    O[n, x0, x1, g, gco] += I[n, s0 * x1 + d0 * k0 - P0, s1 * x1 + d1 * k1 - P1, g, gci] * K[k0, k1, g, gci, gco]
    return O


def corrected_complex_conv_2d(I, K, s0, s1, d0, d1):
    N, G, GCI, GCO = TensorDims(4)
    X0, X1 = TensorDims(2)
    K0, K1 = TensorDims(2)
    n, g, gci, gco = TensorIndexes(4)
    x0, x1 = TensorIndexes(2)
    k0, k1 = TensorIndexes(2)
    I.bind_dims(N, X0, X1, G, GCI)
    K.bind_dims(K0, K1, G, GCI, GCO)
    Y0 = (X0 + s0 - 1) // s0
    Y1 = (X1 + s1 - 1) // s1
    EK0 = d0 * (K0 - 1) + 1
    EK1 = d1 * (K1 - 1) + 1
    P0 = ((Y0 - 1) * s0 + EK0 - X0) // 2
    P1 = ((Y1 - 1) * s1 + EK1 - X1) // 2
    O = TensorOutput(N, Y0, Y1, G, GCO)
    O[n, x0, x1, g, gco] += I[n, s0 * x0 + d0 * k0 - P0, s1 * x1 + d1 * k1 - P1, g, gci] * K[k0, k1, g, gci, gco]
    return O


def _convolved(image: np.ndarray, kernel: np.ndarray, *coefficients: int, first: int = 0) -> np.ndarray:
    # With loops over cells; `first` is the output's axis that the rows of the image follow.
    strides, dilations = coefficients[:2], coefficients[2:]
    sizes = [-(-size // stride) for size, stride in zip(image.shape[1:3], strides, strict=False)]
    pads = [
        ((size - 1) * stride + dilation * (width - 1) + 1 - extent) // 2
        for size, stride, dilation, width, extent in zip(
            sizes, strides, dilations, kernel.shape, image.shape[1:], strict=False
        )
    ]
    made = np.zeros((image.shape[0], *sizes, image.shape[3], kernel.shape[4]))
    for place in np.ndindex(*sizes):
        for taps in np.ndindex(*kernel.shape[:2]):
            row = strides[0] * place[first] + dilations[0] * taps[0] - pads[0]
            column = strides[1] * place[1] + dilations[1] * taps[1] - pads[1]
            if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
                made[:, place[0], place[1]] += np.einsum("ngi,gio->ngo", image[:, row, column], kernel[taps])
    return made


@dataclass(frozen=True)
class Program:
    """A program, arrays and numbers for it, and what it computes by NumPy."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    reference: Callable[..., Any]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.function.__name__

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays among the arguments, which come first."""
        return tuple(each for each in self.arguments if isinstance(each, np.ndarray))

    def of_arrays(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` with the numbers among the arguments."""
        return lambda *arrays: function(*arrays, *self.arguments[len(self.arrays) :])


_RANDOM = np.random.default_rng(7)


def cells(*shape: int) -> np.ndarray:
    """Different numbers in random order, so that a maximum is one cell's."""
    size = int(np.prod(shape))
    return (_RANDOM.permutation(size) / size - 0.45).reshape(shape)


def _convolution(image: np.ndarray, kernel: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    sizes = [n - step * (k - 1) for n, step, k in zip(image.shape[1:], steps, kernel.shape, strict=False)]
    made = np.zeros((image.shape[0], *sizes, kernel.shape[-1]))
    for taps in np.ndindex(*kernel.shape[: len(steps)]):
        part = tuple(slice(step * tap, step * tap + size) for step, tap, size in zip(steps, taps, sizes, strict=False))
        made += image[(slice(None), *part)] @ kernel[taps]
    return made


M, V, T = cells(5, 6), cells(7), cells(2, 3, 4)
IMAGE, KERNEL = cells(1, 5, 6, 2, 2), cells(3, 2, 2, 2, 1)

PROGRAMS = (
    Program(sum_over_axis, (M,), lambda I: I.sum(0)),
    Program(max_over_axis, (M,), lambda I: I.max(0)),
    Program(matmul, (M, cells(6, 3)), lambda A, B: A @ B),
    Program(global_min, (T,), lambda I: I.min()),
    Program(avg, (M,), lambda I: I.mean(0)),
    Program(avg_stages, (M,), lambda I: I.mean()),
    Program(avg_merge, (M,), lambda I: I.mean()),
    Program(wrong_max_pool_1d, (V,), lambda I: np.full(len(I) // 2, I.max())),
    Program(max_pool_1d, (V,), lambda I: np.array([I[k : k + 2].max() for k in range(0, len(I), 2)])),
    Program(skip, (M,), lambda I: np.array([I[k].sum() * (k % 2 == 0) if k < 5 else 0.0 for k in range(6)])),
    Program(csum, (V,), np.cumsum),
    Program(conv_1d, (cells(2, 6, 2), cells(3, 2, 2)), lambda I, K: _convolution(I, K, (1,))),
    Program(conv_2d_dilated, (cells(1, 5, 7, 2), cells(2, 3, 2, 1)), lambda I, K: _convolution(I, K, (2, 3))),
    Program(complex_conv_2d, (IMAGE, KERNEL, 2, 1, 1, 2), lambda *given: _convolved(*given, first=1)),
    Program(corrected_complex_conv_2d, (IMAGE, KERNEL, 2, 1, 1, 2), _convolved),
)
