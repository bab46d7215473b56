"""The computations in PyTorch, eager, on tensors that share memory with the NumPy arrays."""

from __future__ import annotations

import math
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


def _quick_gelu(X: Any) -> Any:
    return X * torch.sigmoid(1.702 * X)


def _mish(X: Any) -> Any:
    return torch.nn.functional.mish(X)


def _log_sum_exp(X: Any) -> Any:
    return torch.logsumexp(X, dim=1)


def _black_scholes(A: Any, B: Any, C: Any) -> Any:
    price, strike, time = torch.exp(0.2 * A), torch.exp(0.2 * B), torch.exp(0.5 * C)
    spread = 0.3 * torch.sqrt(time)
    d = (torch.log(price / strike) + 0.065 * time) / spread
    half = math.sqrt(0.5)
    above = 0.5 * price * (1 + torch.erf(half * d))
    below = 0.5 * strike * (1 + torch.erf(half * (d - spread)))
    return above - below * torch.exp(-0.02 * time)


def _n_body(X: Any) -> Any:
    between = X[:, None, :] - X[:, :, None]
    inverse = torch.rsqrt((between * between).sum(dim=0) + 0.01)
    return torch.einsum("cij,ij->ci", between, inverse**3)


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
    "quick gelu": _quick_gelu,
    "mish": _mish,
    "log-sum-exp": _log_sum_exp,
    "Black-Scholes": _black_scholes,
    "n-body": _n_body,
    "quick gelu gradient": _gradient(_quick_gelu, 1),
    "mish gradient": _gradient(_mish, 1),
    "log-sum-exp gradient": _gradient(_log_sum_exp, 1),
    "Black-Scholes gradient": _gradient(_black_scholes, 3),
    "n-body gradient": _gradient(_n_body, 1),
}
