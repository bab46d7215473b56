"""The computations in PyTorch, eager, on tensors that share memory with the NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["FUNCTIONS", "convert"]


def convert(array: Any) -> Any:
    return torch.from_numpy(array)


def _stencil(X: Any) -> Any:
    return 0.25 * (X[:-2, 1:-1] + X[2:, 1:-1] + X[1:-1, :-2] + X[1:-1, 2:]) - X[1:-1, 1:-1]


def _softmax(X: Any) -> Any:
    return torch.softmax(X, dim=1)


def _gradient(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        inputs = [argument.detach().requires_grad_() for argument in arguments[:count]]
        gradients = torch.autograd.grad(function(*inputs), inputs, arguments[count])
        return gradients if count > 1 else gradients[0]

    return run


FUNCTIONS = {
    "matmul": torch.matmul,
    "matmul gradient": _gradient(torch.matmul, 2),
    "softmax": _softmax,
    "softmax gradient": _gradient(_softmax, 1),
    "stencil": _stencil,
    "stencil gradient": _gradient(_stencil, 1),
}
