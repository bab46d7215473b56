"""The sparse programs in PyTorch, eager, on tensors that share memory with the NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["gradient"]


def _traces(x: Any, count: int) -> Any:
    A = torch.diag(x)
    return sum(torch.trace(A) for _ in range(count))


def _row_times_column(x: Any) -> Any:
    A = torch.diag(x)
    return torch.dot(A[:, 0], A[0, :])


def _trace_of_identity(x: Any, like: Any) -> Any:
    return torch.trace(torch.eye(like.shape[0], dtype=like.dtype) * x)


def _chosen_cells(x: Any, count: int) -> Any:
    return sum((x[cell] for cell in range(2, count + 1)), x[0])


def _convolved(x: Any, c: Any) -> Any:
    # conv1d correlates: the kernel goes in backwards, behind zeros.
    padded = torch.nn.functional.pad(x, (c.shape[0] - 1, 0))
    return torch.nn.functional.conv1d(padded[:, None, :], c.flip(0)[None, None, :])[:, 0, :]


def _deconvolution(x: Any, c: Any, z: Any) -> Any:
    return ((_convolved(x[None, :], c)[0] - z) ** 2).sum()


def _batched_deconvolution(x: Any, c: Any, z: Any) -> Any:
    return ((_convolved(x, c) - z) ** 2).sum()


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
    converted = [torch.as_tensor(argument) for argument in arguments]
    converted[argnum] = converted[argnum].detach().clone().requires_grad_()

    def run() -> Any:
        [found] = torch.autograd.grad(function(*converted, **configuration), converted[argnum])
        return found

    return run
