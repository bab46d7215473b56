"""The step as somebody would write it for Numba: every loop by hand, every array allocated beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.training.problem import WEIGHT_DECAY, Contender, Problem

__all__ = ["contender"]


_compiled = njit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
_inlined = njit(fastmath={"contract", "nsz", "reassoc"}, error_model="numpy", inline="always")


@_inlined
def _layer(x, w, b, h):
    # h = relu(x @ w + b) for one point.
    zero = np.float32(0)
    for j in range(len(h)):
        h[j] = b[j]
    for k in range(len(x)):
        for j in range(len(h)):
            h[j] += x[k] * w[k, j]
    for j in range(len(h)):
        h[j] = max(h[j], zero)


@_inlined
def _hidden_gradient(h, w, e_out, e, g_w, g_b):
    # From the adjoint e_out of the layer above to this one's, and to its parameters'.
    zero = np.float32(0)
    for k in range(len(h)):
        total = zero
        for j in range(len(e_out)):
            g_w[k, j] += h[k] * e_out[j]
            total += w[k, j] * e_out[j]
        e[k] = total if h[k] > zero else zero
        g_b[k] += e[k]


@_inlined
def _top_gradient(d_score, h, w, e, g_w, g_b):
    zero = np.float32(0)
    for j in range(len(h)):
        g_w[j] += d_score * h[j]
        e[j] = d_score * w[j] if h[j] > zero else zero
        g_b[j] += e[j]


@_inlined
def _updated(p, g, rate, decay):
    for k in range(len(p)):
        p[k] -= rate * (g[k] + decay * p[k])


@_compiled
def _step(w1, b1, w2, b2, w3, b3, x, y, h1, h2, e1, e2, g1, g2, g_b1, g_b2, g_w3, rate, decay):
    one, zero = np.float32(1), np.float32(0)
    scale = one / np.float32(len(x))
    loss = d_b3 = zero
    g1[:], g2[:], g_b1[:], g_b2[:], g_w3[:] = zero, zero, zero, zero, zero
    for a in range(len(x)):
        _layer(x[a], w1, b1, h1)
        _layer(h1, w2, b2, h2)
        score = b3[0]
        for j in range(len(h2)):
            score += h2[j] * w3[j]
        margin = one - y[a] * score
        if margin > zero:
            loss += margin * scale
            d_score = -y[a] * scale
            d_b3 += d_score
            _top_gradient(d_score, h2, w3, e2, g_w3, g_b2)
            _hidden_gradient(h1, w2, e2, e1, g2, g_b1)
            for k in range(x.shape[1]):
                for j in range(len(e1)):
                    g1[k, j] += x[a, k] * e1[j]
    for k in range(len(w1)):
        _updated(w1[k], g1[k], rate, decay)
    for k in range(len(w2)):
        _updated(w2[k], g2[k], rate, decay)
    _updated(b1, g_b1, rate, decay)
    _updated(b2, g_b2, rate, decay)
    _updated(w3, g_w3, rate, decay)
    b3[0] -= rate * (d_b3 + decay * b3[0])
    return loss


def contender(start: Problem) -> Contender:
    parameters = [np.atleast_1d(p.copy()) for p in start.parameters]
    m = len(parameters[1])
    buffers = [np.zeros(shape, np.float32) for shape in ((m,), (m,), (m,), (m,), (2, m), (m, m), (m,), (m,), (m,))]
    decay = np.float32(WEIGHT_DECAY)
    arguments: list[Any] = [*parameters, start.x, start.y, *buffers]

    def run(steps: int, learning_rate: float) -> None:
        rate = np.float32(learning_rate)
        for _ in range(steps):
            _step(*arguments, rate, decay)

    return Contender(run, lambda: [*parameters[:5], parameters[5][0]])
