"""The computations in JAX, compiled by ``jit``; each call waits for its result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["FUNCTIONS", "convert"]

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def convert(array: Any) -> Any:
    return jnp.asarray(array)


def _stencil(X: Any) -> Any:
    return 0.25 * (X[:-2, 1:-1] + X[2:, 1:-1] + X[1:-1, :-2] + X[1:-1, 2:]) - X[1:-1, 1:-1]


def _softmax(X: Any) -> Any:
    return jax.nn.softmax(X, axis=1)


def _quick_gelu(X: Any) -> Any:
    return X * jax.nn.sigmoid(1.702 * X)


def _mish(X: Any) -> Any:
    return X * jnp.tanh(jax.nn.softplus(X))


def _log_sum_exp(X: Any) -> Any:
    return jax.nn.logsumexp(X, axis=1)


def _black_scholes(A: Any, B: Any, C: Any) -> Any:
    price, strike, time = jnp.exp(0.2 * A), jnp.exp(0.2 * B), jnp.exp(0.5 * C)
    spread = 0.3 * jnp.sqrt(time)
    d = (jnp.log(price / strike) + 0.065 * time) / spread
    half = math.sqrt(0.5)
    above = 0.5 * price * (1 + jax.scipy.special.erf(half * d))
    below = 0.5 * strike * (1 + jax.scipy.special.erf(half * (d - spread)))
    return above - below * jnp.exp(-0.02 * time)


def _n_body(X: Any) -> Any:
    between = X[:, None, :] - X[:, :, None]
    inverse = jax.lax.rsqrt((between * between).sum(axis=0) + 0.01)
    return jnp.einsum("cij,ij->ci", between, inverse**3)


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled = jax.jit(function)
    return lambda *arguments: jax.block_until_ready(compiled(*arguments))


def _gradient(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        gradients = jax.vjp(function, *arguments[:count])[1](arguments[count])
        return gradients if count > 1 else gradients[0]

    return _waiting(run)


FUNCTIONS = {
    "matmul": _waiting(jnp.matmul),
    "matmul gradient": _gradient(jnp.matmul, 2),
    "softmax": _waiting(_softmax),
    "softmax gradient": _gradient(_softmax, 1),
    "stencil": _waiting(_stencil),
    "stencil gradient": _gradient(_stencil, 1),
    "quick gelu": _waiting(_quick_gelu),
    "mish": _waiting(_mish),
    "log-sum-exp": _waiting(_log_sum_exp),
    "Black-Scholes": _waiting(_black_scholes),
    "n-body": _waiting(_n_body),
    "quick gelu gradient": _gradient(_quick_gelu, 1),
    "mish gradient": _gradient(_mish, 1),
    "log-sum-exp gradient": _gradient(_log_sum_exp, 1),
    "Black-Scholes gradient": _gradient(_black_scholes, 3),
    "n-body gradient": _gradient(_n_body, 1),
}
