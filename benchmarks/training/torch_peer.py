"""The step in PyTorch, operation by operation, with its own optimizer; weight decay is the optimizer's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.training.problem import WEIGHT_DECAY, Contender, Problem

__all__ = ["CONTENDERS"]


def _eager(start: Problem) -> Contender:
    parameters = [torch.tensor(p, requires_grad=True) for p in start.parameters]
    w1, b1, w2, b2, w3, b3 = parameters
    x, y = torch.tensor(start.x), torch.tensor(start.y)
    optimizer = torch.optim.SGD(parameters, lr=0.0, weight_decay=WEIGHT_DECAY)

    def run(steps: int, learning_rate: float) -> None:
        optimizer.param_groups[0]["lr"] = learning_rate
        for _ in range(steps):
            h1 = torch.relu(torch.addmm(b1, x, w1))
            h2 = torch.relu(torch.addmm(b2, h1, w2))
            loss = torch.relu(1 - y * (h2 @ w3 + b3)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return Contender(run, lambda: [np.asarray(p.detach()) for p in parameters])


CONTENDERS: dict[str, Callable[[Problem], Contender]] = {"torch": _eager}
