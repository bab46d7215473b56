"""JAX as an oracle: a whole function compiled at once, where each of its operations would be compiled alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as one program of XLA, which runs once and so is not worth much optimization."""
    jax = pytest.importorskip("jax")
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(function, compiler_options=options)
