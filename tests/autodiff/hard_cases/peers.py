"""The same derivatives by PyTorch and by JAX, of functions written against the names that both have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.autodiff.hard_cases.compositions import Point
from tests.jax_functions import compiled

__all__ = ["PEERS", "Expected"]


@dataclass(frozen=True)
class Expected:
    """J^T dy, J v and H v by a peer."""

    reverse: list[np.ndarray]
    forward: list[np.ndarray]
    product: list[np.ndarray]


def _floating(arrays: Sequence[np.ndarray]) -> list[int]:
    return [k for k, array in enumerate(arrays) if array.dtype.kind == "f"]


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, tuple | list) else [values]


def by_jax(oracle: Callable[..., Any], point: Point) -> Expected:
    """With `jax.vjp`, `jax.jvp`, and forward over reverse."""
    jax = pytest.importorskip("jax")
    places = _floating(point.arguments)

    def function(*smooth: Any) -> list[Any]:
        given = list(point.arguments)
        for place, value in zip(places, smooth, strict=True):
            given[place] = value
        return _listed(oracle(jax.numpy, *given))

    def derivatives(x: tuple[Any, ...], dy: list[Any], v: tuple[Any, ...]) -> tuple[Any, ...]:
        _, pull = jax.vjp(function, *x)
        _, pushed = jax.jvp(function, x, v)
        _, product = jax.jvp(lambda *at: jax.vjp(function, *at)[1](dy), x, v)
        return pull(dy), pushed, product

    with jax.enable_x64(True):
        found = compiled(derivatives)(tuple(point.arguments[k] for k in places), list(point.dy), tuple(point.v))
        return Expected(*([np.asarray(part) for part in parts] for parts in found))


def by_torch(oracle: Callable[..., Any], point: Point) -> Expected:
    """With `torch.autograd.grad`, twice; J v is the derivative of J^T s by s."""
    torch = pytest.importorskip("torch")
    places = _floating(point.arguments)
    given = [torch.tensor(array, requires_grad=array.dtype.kind == "f") for array in point.arguments]
    x = [given[k] for k in places]
    values = _listed(oracle(torch, *given))
    dy = [torch.tensor(array) for array in point.dy]
    v = [torch.tensor(array) for array in point.v]

    def grad(outputs: Any, by: Any, seeds: Any) -> list[Any]:
        pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
        if not pairs:
            return [torch.zeros_like(leaf) for leaf in by]
        outs, given = zip(*pairs, strict=True)
        found = torch.autograd.grad(outs, by, given, create_graph=True, allow_unused=True)
        return [torch.zeros_like(leaf) if part is None else part for part, leaf in zip(found, by, strict=True)]

    seeds = [torch.zeros_like(seed, requires_grad=True) for seed in dy]
    reverse = grad(values, x, dy)
    forward = grad(grad(values, x, seeds), seeds, v)
    product = grad(reverse, x, v)
    return Expected(*([part.detach().numpy(force=True) for part in parts] for parts in (reverse, forward, product)))


PEERS: dict[str, Callable[[Callable[..., Any], Point], Expected]] = {"torch": by_torch, "jax": by_jax}
