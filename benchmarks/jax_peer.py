"""The computations in JAX, compiled by ``jit``; each call waits for its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.slices import blur, distances, five_points, seven_points

__all__ = ["FUNCTIONS", "adjoints", "convert"]

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def convert(array: Any) -> Any:
    return jnp.asarray(array)


def _convolution(order: str, **options: Any) -> Callable[..., Any]:
    images, kernels = order.split()
    return lambda I, K: jax.lax.conv_general_dilated(
        I, K, dimension_numbers=(images, kernels, images), **{"window_strides": (1, 1), "padding": "VALID", **options}
    )


def _grouped(I: Any, K: Any) -> Any:  # an image
    n, g, d, y, x = I.shape
    one = _convolution("NCHW OIHW", feature_group_count=g)
    made = one(I.reshape(n, g * d, y, x), K.reshape(-1, d, *K.shape[3:]))
    return made.reshape(n, g, -1, *made.shape[2:])


def _normal(X: Any, axes: tuple[int, ...]) -> Any:
    return (X - X.mean(axes, keepdims=True)) / jnp.sqrt(X.var(axes, keepdims=True) + 1e-5)


def _max_pool(X: Any) -> Any:
    return jax.lax.reduce_window(X, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def _black_scholes(A: Any, B: Any, C: Any) -> Any:
    price, strike, time = jnp.exp(0.2 * A), jnp.exp(0.2 * B), jnp.exp(0.5 * C)
    spread = 0.3 * jnp.sqrt(time)
    d = (jnp.log(price / strike) + 0.065 * time) / spread
    half, erf = math.sqrt(0.5), jax.scipy.special.erf
    return 0.5 * price * (1 + erf(half * d)) - 0.5 * strike * (1 + erf(half * (d - spread))) * jnp.exp(-0.02 * time)


def _n_body(X: Any) -> Any:
    between = X[:, None, :] - X[:, :, None]
    inverse = jax.lax.rsqrt((between * between).sum(axis=0) + 0.01)
    return jnp.einsum("cij,ij->ci", between, inverse**3)


def _attention(Q: Any, K: Any, V: Any) -> Any:
    return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(0.125 * jnp.einsum("bhid,bhjd->bhij", Q, K)), V)


_COMPUTATIONS: dict[str, Callable[..., Any]] = {
    "matmul": jnp.matmul,
    "matmul transposed": lambda A, B: A @ B.T,
    "matvec": jnp.matmul,
    "batched first": jnp.matmul,
    "batched middle": lambda A, B: jnp.einsum("ibk,kbj->ibj", A, B),
    "batched last": lambda A, B: jnp.einsum("ikb,kjb->ijb", A, B),
    "tensordot": lambda A, B: jnp.einsum("abcde,acfde->bf", A, B),
    "three matrices": lambda A, B, C: A @ B @ C,
    "kronecker": lambda X, A, B, C: jnp.einsum("nabc,ia,jb,kc->nijk", X, A, B, C),
    "layer": lambda X, W, b: jax.nn.relu(X @ W.T + b),
    "convolution": _convolution("NCHW OIHW", padding=((1, 1), (1, 1))),
    "channels last": _convolution("NHWC HWIO", padding=((1, 1), (1, 1))),
    "strided": _convolution("NCHW OIHW", window_strides=(2, 2)),
    "grouped": _grouped,
    "depthwise": lambda I, K: _convolution("NCHW OIHW", feature_group_count=len(K))(I, K[:, None]),
    "max pool": _max_pool,
    "softmax": lambda X: jax.nn.softmax(X, axis=1),
    "column softmax": lambda X: jax.nn.softmax(X, axis=0),
    "log sum exp": lambda X: jax.nn.logsumexp(X, axis=1),
    "layer norm": lambda X: _normal(X, (1,)),
    "group norm": lambda X: _normal(X, (2, 3, 4)),
    "moments": lambda X: (X.mean(1), (X * X).mean(1)),
    "row sums": lambda X: X.sum(1),
    "column sums": lambda X: X.sum(0),
    "row maxima": lambda X: X.argmax(1),
    "cumulative sum": lambda X: X.cumsum(1),
    "quick gelu": lambda X: X * jax.nn.sigmoid(1.702 * X),
    "mish": lambda X: X * jnp.tanh(jax.nn.softplus(X)),
    "black scholes": _black_scholes,
    "five points": five_points,
    "seven points": seven_points,
    "blur": blur,
    "added transposed": lambda A: A + A.T,
    "heads first": lambda X: X.transpose(0, 2, 1, 3),
    "distances": distances,
    "n body": _n_body,
    "attention": _attention,
    "embedding": lambda W, ids: W[ids],
}


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled = jax.jit(function)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


FUNCTIONS = {computation: _waiting(function) for computation, function in _COMPUTATIONS.items()}


def adjoints(computation: str, wrt: tuple[int, ...]) -> Callable[..., Any]:
    """The function of the arguments, and of a cotangent behind them, that gives the values and the adjoints of the
    ``wrt``.
    """

    def run(*arguments: Any) -> Any:
        def of_given(*given: Any) -> Any:
            filled = list(arguments[:-1])
            for k, each in zip(wrt, given, strict=True):
                filled[k] = each
            return _COMPUTATIONS[computation](*filled)

        values, back = jax.vjp(of_given, *(arguments[k] for k in wrt))
        return values, *back(arguments[-1])

    return _waiting(run)
