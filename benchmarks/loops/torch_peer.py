"""The loops of networks for PyTorch, as its users write them: round by round."""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["lstm_gradient", "wave_gradient"]


def lstm_gradient(U, W, x, h):
    """A training step."""
    parameters = [torch.tensor(each, requires_grad=True) for each in (U, W)]
    x, h = torch.from_numpy(x), torch.from_numpy(h)
    c, size = 0 * h, h.shape[1]
    for row in x:
        z = row @ parameters[1] + h @ parameters[0]
        c = (
            torch.sigmoid(z[:, :size]) * torch.tanh(z[:, size : 2 * size])
            + torch.sigmoid(z[:, 2 * size : 3 * size]) * c
        )
        h = torch.sigmoid(z[:, 3 * size :]) * torch.tanh(c)
    (h * h).sum().backward()
    return np.asarray(parameters[0].grad)


def wave_gradient(c, u, v, steps):
    """The derivative of what the wave holds at the end by the velocities of the medium."""
    c = torch.tensor(c, requires_grad=True)
    u, v = torch.from_numpy(u), torch.from_numpy(v)
    for _ in range(steps):
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        u, v = 2 * u - v + torch.nn.functional.pad(c[1:-1, 1:-1] * inner, (1, 1, 1, 1)), u
    (u * u).sum().backward()
    return np.asarray(c.grad)
