"""The sparse programs in JAX, their gradients compiled by ``jit``; each call waits for its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["gradient"]

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def _traces(x: Any, count: int) -> Any:
    A = jnp.diag(x)
    return sum(jnp.trace(A) for _ in range(count))


def _row_times_column(x: Any) -> Any:
    A = jnp.diag(x)
    return jnp.dot(A[:, 0], A[0, :])


def _trace_of_identity(x: Any, like: Any) -> Any:
    return jnp.trace(jnp.eye(like.shape[0]) * x)


def _chosen_cells(x: Any, count: int) -> Any:
    return sum((x[cell] for cell in range(2, count + 1)), x[0])


def _deconvolution(x: Any, c: Any, z: Any) -> Any:
    return jnp.sum((jnp.convolve(x, c)[: x.shape[0]] - z) ** 2)


def _batched_deconvolution(x: Any, c: Any, z: Any) -> Any:
    return jnp.sum((jax.vmap(lambda row: jnp.convolve(row, c)[: row.shape[0]])(x) - z) ** 2)


def _product_of_cells(x: Any, count: int) -> Any:
    product = x[0]
    for cell in range(1, count):
        product = product * x[cell]
    return product


_FUNCTIONS = {
    "traces": _traces,
    "row_times_column": _row_times_column,
    "trace_of_identity": _trace_of_identity,
    "chosen_cells": _chosen_cells,
    "deconvolution": _deconvolution,
    "batched_deconvolution": _batched_deconvolution,
    "product_of_cells": _product_of_cells,
}


def gradient(name: str, argnum: int, arguments: tuple[Any, ...], configuration: dict[str, Any]) -> Callable[[], Any]:
    """A call of the gradient of the program ``name`` by one argument."""
    function = _FUNCTIONS[name]
    compiled = jax.jit(jax.grad(lambda *given: function(*given, **configuration), argnums=argnum))
    converted = tuple(map(jnp.asarray, arguments))
    return lambda: jax.block_until_ready(compiled(*converted))
