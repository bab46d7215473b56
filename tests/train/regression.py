"""A small problem to train on, as a graph, as NumPy formulas and for PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

import tcdsl as tc

__all__ = ["Regression"]


class Regression:
    """``loss = mean((w x + b - y)²)`` for 7 points, from 3 to 2 dimensions, in one element type."""

    def __init__(self, dtype: str, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        self.dtype = dtype
        self.x, self.y, self.w0, self.b0 = (
            generator.normal(size=shape).astype(dtype) for shape in ((7, 3), (7, 2), (2, 3), (2,))
        )
        self.w = tc.param("w", o=2, i=3, init=self.w0, dtype=dtype)
        self.b = tc.param("b", o=2, init=self.b0, dtype=dtype)
        prediction = self.w @ tc.tensor(self.x, batch=1, label="x") + self.b
        self.loss = ((prediction - tc.tensor(self.y, batch=1, label="y")) ** 2).mean()

    def gradients(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradients by hand."""
        residual = self.x @ w.T + b - self.y
        scaled = (2 / residual.size * residual).astype(self.dtype)
        return scaled.T @ self.x, scaled.sum(axis=0)

    def trained_by_hand(self, make: Any, steps: int, limit: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The parameters after so many steps of ``make()(p, g)``, one stepper per parameter, in float64."""
        parameters = [self.w0.astype("float64"), self.b0.astype("float64")]
        steppers = [make(), make()]
        for _ in range(steps):
            gradients = self.gradients(*parameters)
            gradients = gradients if limit is None else limit(gradients)
            parameters = [step(p, g) for step, p, g in zip(steppers, parameters, gradients, strict=True)]
        return parameters[0], parameters[1]

    def trained_by_torch(self, torch: Any, make: Any, steps: int, limit: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The parameters after so many steps of PyTorch's optimizer ``make(parameters)``."""
        w, b = (torch.tensor(each, requires_grad=True) for each in (self.w0, self.b0))
        x, y = torch.tensor(self.x), torch.tensor(self.y)
        optimizer = make([w, b])
        for _ in range(steps):
            optimizer.zero_grad()
            ((x @ w.T + b - y) ** 2).mean().backward()
            if limit is not None:
                limit([w, b])
            optimizer.step()
        return w.detach().numpy(), b.detach().numpy()
