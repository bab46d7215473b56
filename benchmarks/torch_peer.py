"""The computations in PyTorch, eager, on tensors that share memory with the NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.slices import blur, distances, five_points, seven_points

__all__ = ["FUNCTIONS", "adjoints", "convert"]


def convert(array: Any) -> Any:
    return torch.from_numpy(array)


def _normal(X: Any, axes: tuple[int, ...]) -> Any:
    return (X - X.mean(axes, keepdim=True)) / torch.sqrt(X.var(axes, unbiased=False, keepdim=True) + 1e-5)


def _black_scholes(A: Any, B: Any, C: Any) -> Any:
    price, strike, time = torch.exp(0.2 * A), torch.exp(0.2 * B), torch.exp(0.5 * C)
    spread = 0.3 * torch.sqrt(time)
    d = (torch.log(price / strike) + 0.065 * time) / spread
    half = math.sqrt(0.5)
    below = 0.5 * strike * (1 + torch.erf(half * (d - spread)))
    return 0.5 * price * (1 + torch.erf(half * d)) - below * torch.exp(-0.02 * time)


def _n_body(X: Any) -> Any:
    between = X[:, None, :] - X[:, :, None]
    inverse = torch.rsqrt((between * between).sum(dim=0) + 0.01)
    return torch.einsum("cij,ij->ci", between, inverse**3)


def _grouped(I: Any, K: Any) -> Any:  # an image
    n, g, d, y, x = I.shape
    made = functional.conv2d(I.reshape(n, g * d, y, x), K.reshape(-1, d, *K.shape[3:]), groups=g)
    return made.reshape(n, g, -1, *made.shape[2:])


FUNCTIONS = {
    "matmul": torch.matmul,
    "matmul transposed": lambda A, B: A @ B.T,
    "matvec": torch.matmul,
    "batched first": torch.matmul,
    "batched middle": lambda A, B: torch.einsum("ibk,kbj->ibj", A, B),
    "batched last": lambda A, B: torch.einsum("ikb,kjb->ijb", A, B),
    "tensordot": lambda A, B: torch.einsum("abcde,acfde->bf", A, B),
    "three matrices": lambda A, B, C: A @ B @ C,
    "kronecker": lambda X, A, B, C: torch.einsum("nabc,ia,jb,kc->nijk", X, A, B, C),
    "layer": lambda X, W, b: torch.relu(functional.linear(X, W, b)),
    "convolution": lambda I, K: functional.conv2d(I, K, padding=1),
    "channels last": lambda I, K: functional.conv2d(I.permute(0, 3, 1, 2), K.permute(3, 2, 0, 1), padding=1).permute(
        0, 2, 3, 1
    ),
    "strided": lambda I, K: functional.conv2d(I, K, stride=2),
    "grouped": _grouped,
    "depthwise": lambda I, K: functional.conv2d(I, K[:, None], groups=len(K)),
    "max pool": lambda X: functional.max_pool2d(X, 2),
    "softmax": lambda X: torch.softmax(X, dim=1),
    "column softmax": lambda X: torch.softmax(X, dim=0),
    "log sum exp": lambda X: torch.logsumexp(X, dim=1),
    "layer norm": lambda X: functional.layer_norm(X, X.shape[1:]),
    "group norm": lambda X: functional.group_norm(X.flatten(1, 2), X.shape[1]).reshape(X.shape),
    "moments": lambda X: (X.mean(1), (X * X).mean(1)),
    "row sums": lambda X: X.sum(1),
    "column sums": lambda X: X.sum(0),
    "row maxima": lambda X: X.argmax(1),
    "cumulative sum": lambda X: X.cumsum(1),
    "quick gelu": lambda X: X * torch.sigmoid(1.702 * X),
    "mish": functional.mish,
    "black scholes": _black_scholes,
    "five points": five_points,
    "seven points": seven_points,
    "blur": blur,
    "added transposed": lambda A: A + A.T,
    "heads first": lambda X: X.transpose(1, 2).contiguous(),
    "distances": distances,
    "n body": _n_body,
    "attention": lambda Q, K, V: functional.scaled_dot_product_attention(Q, K, V, scale=0.125),
    "embedding": lambda W, ids: functional.embedding(ids, W),
}


def adjoints(computation: str, wrt: tuple[int, ...]) -> Callable[..., Any]:
    """The function of the arguments, and of a cotangent behind them, that gives the values and the adjoints of the
    ``wrt``.
    """
    function = FUNCTIONS[computation]

    def run(*arguments: Any) -> Any:
        given = [a.detach().requires_grad_() if k in wrt else a for k, a in enumerate(arguments[:-1])]
        values = function(*given)
        return values.detach(), *torch.autograd.grad(values, [given[k] for k in wrt], arguments[-1])

    return run
