"""The programs whose first calls are timed: for each, how every library makes and calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["CASES", "Call"]

Call = Callable[[], Any]
"""Makes a function, calls it, and waits for the result."""


def _array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# -- a layer: relu(x @ w + b), and in its place tanh as the second program ---------------------------------------------


def _layer_tcdsl() -> tuple[Call, Call]:
    from benchmarks.first_calls.programs import another, layer

    x, w, b = _array(32, 20), _array(10, 20), _array(10)
    return lambda: layer(x, w, b), lambda: another(x, w, b)


def _layer_jax() -> tuple[Call, Call]:
    import jax
    import jax.numpy as jnp

    x, w, b = _array(32, 20), _array(10, 20), _array(10)
    layer = jax.jit(lambda x, w, b: jnp.maximum(x @ w.T + b, 0))
    another = jax.jit(lambda x, w, b: jnp.tanh(x @ w.T + b))
    return lambda: layer(x, w, b).block_until_ready(), lambda: another(x, w, b).block_until_ready()


def _layer_numba() -> tuple[Call, Call]:
    import math

    from numba import njit

    @njit(cache=True, fastmath={"contract", "nsz", "reassoc"})
    def layer(x, w, b):
        h = np.empty((x.shape[0], w.shape[0]), x.dtype)
        for n in range(x.shape[0]):
            for k in range(w.shape[0]):
                total = b[k]
                for d in range(w.shape[1]):
                    total += w[k, d] * x[n, d]
                h[n, k] = max(total, np.float32(0))
        return h

    @njit(cache=True, fastmath={"contract", "nsz", "reassoc"})
    def another(x, w, b):
        h = np.empty((x.shape[0], w.shape[0]), x.dtype)
        for n in range(x.shape[0]):
            for k in range(w.shape[0]):
                total = b[k]
                for d in range(w.shape[1]):
                    total += w[k, d] * x[n, d]
                h[n, k] = math.tanh(total)
        return h

    x, w, b = _array(32, 20), _array(10, 20), _array(10)
    return lambda: layer(x, w, b), lambda: another(x, w, b)


# -- a transformer block's value and gradient, and its value as the second program -------------------------------------


def _block_arrays() -> list[np.ndarray]:
    batch, length, size, heads, width = 2, 16, 32, 4, 64
    head = size // heads
    shapes = [(batch, length, size), (3, heads, head, size), (3, heads, head), (size, heads, head), (size,)]
    shapes += [(width, size), (width,), (size, width), *[(size,)] * 5]
    return [0.1 * _array(*shape) for shape in shapes]


def _block_tcdsl() -> tuple[Call, Call]:
    import tcdsl as tc
    from examples.transformer import block_of_arrays

    arrays = _block_arrays()
    slope = tc.value_and_grad(lambda *a: block_of_arrays(*a).sum(), argnums=tuple(range(len(arrays))))
    return lambda: slope(*arrays), lambda: block_of_arrays(*arrays)


def _block_jax() -> tuple[Call, Call]:
    import jax
    import jax.numpy as jnp

    def standardized(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    def block(x, w_qkv, b_qkv, w_o, b_o, w_1, b_1, w_2, b_2, scale_1, shift_1, scale_2, shift_2):
        y = scale_1 * standardized(x) + shift_1
        q, k, v = jnp.moveaxis(jnp.einsum("phed,ntd->ntphe", w_qkv, y) + b_qkv, 2, 0)
        scores = jnp.einsum("nthe,nshe->nths", q, k) / np.sqrt(q.shape[-1])
        seen = np.tril(np.ones((x.shape[1], x.shape[1]), bool))
        weights = jax.nn.softmax(jnp.where(seen[:, None], scores, -jnp.inf))
        x = x + jnp.einsum("dhe,nths,nshe->ntd", w_o, weights, v) + b_o
        y = scale_2 * standardized(x) + shift_2
        return x + jax.nn.gelu(y @ w_1.T + b_1, approximate=False) @ w_2.T + b_2

    arrays = _block_arrays()
    slope = jax.jit(jax.value_and_grad(lambda *a: block(*a).sum(), argnums=tuple(range(len(arrays)))))
    value = jax.jit(block)
    return lambda: jax.block_until_ready(slope(*arrays)), lambda: jax.block_until_ready(value(*arrays))


# -- a training step of a small network, compiled with its updates; in its place another rate as the second program ----


def _training_tcdsl() -> tuple[Call, Call]:
    from benchmarks.training import network
    from benchmarks.training.problem import problem

    start = problem()
    return lambda: network.routine(start).run(1, 0.5), lambda: network.routine(start).run(1, 0.25)


CASES: Mapping[str, Mapping[str, Callable[[], tuple[Call, Call]]]] = {
    "a layer": {"tcdsl": _layer_tcdsl, "jax": _layer_jax, "numba": _layer_numba},
    "a transformer block's gradient": {"tcdsl": _block_tcdsl, "jax": _block_jax},
    "a training step": {"tcdsl": _training_tcdsl},
}
"""For each case and library what imports the library and makes two programs: the second shares parts with the first."""
