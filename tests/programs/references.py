"""The same programs in array operations; ``xp`` is numpy or jax.numpy."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def matmul(xp: Any, a: Any, b: Any) -> Any:
    return a @ b


def transpose(xp: Any, a: Any) -> Any:
    return a.T


def trace(xp: Any, a: Any) -> Any:
    return xp.trace(a)


def diagonal(xp: Any, a: Any) -> Any:
    return xp.diagonal(a)


def average(xp: Any, a: Any) -> Any:
    return xp.mean(a, axis=0)


def cumulative_sum(xp: Any, x: Any) -> Any:
    return xp.cumsum(x)


def skipping(xp: Any, x: Any) -> Any:
    return xp.sum(x, axis=1) * (xp.arange(x.shape[0]) % 2 == 0)


def valid_convolution(xp: Any, x: Any, k: Any) -> Any:
    width = x.shape[1] - k.shape[0] + 1
    return sum(xp.einsum("nxd,dc->nxc", x[:, p : p + width], k[p]) for p in range(k.shape[0]))


def padded_convolution(xp: Any, x: Any, k: Any) -> Any:
    left = k.shape[0] // 2
    return valid_convolution(xp, xp.pad(x, ((0, 0), (left, k.shape[0] - 1 - left), (0, 0))), k)


def full_convolution(xp: Any, x: Any, c: Any) -> Any:
    return xp.convolve(x, c)


def _windows(x: Any, k: Any, stride: tuple[int, int], dilation: tuple[int, int]) -> Any:
    # (p, q, the inputs that meet the tap (p, q)), for x of shape n x y ..., k of shape p q ...
    counts = [(x.shape[1 + a] - dilation[a] * (k.shape[a] - 1) - 1) // stride[a] + 1 for a in (0, 1)]
    for p in range(k.shape[0]):
        for q in range(k.shape[1]):
            rows = slice(dilation[0] * p, dilation[0] * p + stride[0] * (counts[0] - 1) + 1, stride[0])
            columns = slice(dilation[1] * q, dilation[1] * q + stride[1] * (counts[1] - 1) + 1, stride[1])
            yield p, q, x[:, rows, columns]


def strided_convolution_2d(xp: Any, x: Any, k: Any) -> Any:
    return sum(xp.einsum("nxyd,dc->nxyc", part, k[p, q]) for p, q, part in _windows(x, k, (2, 2), (1, 1)))


def dilated_convolution_2d(xp: Any, x: Any, k: Any) -> Any:
    return sum(xp.einsum("nxyd,dc->nxyc", part, k[p, q]) for p, q, part in _windows(x, k, (1, 1), (2, 3)))


def padded_convolution_2d(xp: Any, x: Any, k: Any) -> Any:
    taps = xp.transpose(k, (2, 3, 1, 0))
    pads = [(0, 0), *((w // 2, w - 1 - w // 2) for w in taps.shape[:2]), (0, 0)]
    padded = xp.pad(xp.transpose(x, (0, 2, 3, 1)), pads)
    out = sum(xp.einsum("nxyd,dc->nxyc", part, taps[p, q]) for p, q, part in _windows(padded, taps, (1, 1), (1, 1)))
    return xp.transpose(out, (0, 3, 1, 2))


def complex_convolution(xp: Any, x: Any, k: Any, *, stride: Any, dilation: Any) -> Any:
    counts = [-(-x.shape[1 + a] // stride[a]) for a in (0, 1)]
    pads = []
    for a in (0, 1):
        reach = (counts[a] - 1) * stride[a] + dilation[a] * (k.shape[a] - 1) + 1
        left = (reach - x.shape[1 + a]) // 2
        pads.append((left, reach - x.shape[1 + a] - left))
    padded = xp.pad(x, [(0, 0), *pads, (0, 0), (0, 0)])
    return sum(xp.einsum("nxygd,gdc->nxygc", part, k[p, q]) for p, q, part in _windows(padded, k, stride, dilation))


def max_pool(xp: Any, x: Any) -> Any:
    half = x.shape[0] // 2
    return xp.max(xp.reshape(x[: 2 * half], (half, 2)), axis=1)


def max_pool_up(xp: Any, x: Any) -> Any:
    half = -(-x.shape[0] // 2)
    padded = xp.pad(x, (0, 2 * half - x.shape[0]), constant_values=-xp.inf)
    return xp.max(xp.reshape(padded, (half, 2)), axis=1)


def upsample(xp: Any, x: Any) -> Any:
    return xp.repeat(xp.repeat(x, 2, axis=0), 3, axis=1)


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def log_sum_exp(xp: Any, x: Any) -> Any:
    m = xp.max(x, axis=1)
    return m + xp.log(xp.sum(xp.exp(x - m[:, None]), axis=1))


def layer_norm(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    mu = xp.mean(x, axis=1, keepdims=True)
    var = xp.mean((x - mu) ** 2, axis=1, keepdims=True)
    return (x - mu) / xp.sqrt(var + 1e-5) * scale + shift


def gather_rows(xp: Any, table: Any, ids: Any) -> Any:
    return table[ids]


def scatter_add(xp: Any, rows: Any, ids: Any, values: Any) -> Any:
    return rows + (ids[None, :] == xp.arange(rows.shape[0])[:, None]).astype(values.dtype) @ values


def histogram(xp: Any, bins: Any, weights: Any, edges: Any) -> Any:
    return (bins[None, :] == xp.arange(edges.shape[0])[:, None]).astype(weights.dtype) @ weights


def blur_reflect(xp: Any, x: Any) -> Any:
    padded = xp.pad(x, 1, mode="reflect")
    n, m = x.shape
    taps = [0.5, 1.0, 0.5]
    return sum(taps[p] * taps[q] * padded[p : p + n, q : q + m] for p in range(3) for q in range(3))


def argmax_rows(xp: Any, x: Any) -> Any:
    return xp.argmax(x, axis=1)


def outer_difference(xp: Any, x: Any, y: Any) -> Any:
    return x[:, None] - y[None, :]


def pairwise_distance(xp: Any, x: Any, y: Any) -> Any:
    return xp.sqrt(xp.sum((x[:, None] - y[None]) ** 2, axis=2))


def attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    return softmax(xp, q @ k.T) @ v
