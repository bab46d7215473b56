"""Gauss-Newton for any residuals written in index notation, without ever forming their Jacobian.

Each step minimizes ``|J move + residuals|²`` over ``move`` by conjugate gradients on the normal equations (the variant
CGLS), which need J only through its products ``J v``, forward mode, and ``Jᵀ u``, reverse mode. One iteration, both
products and the sums between them included, is one compiled program, and costs a small multiple of the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import op

__all__ = ["Solution", "gauss_newton", "iterate", "start"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Solution:
    """Where the steps ended; the energy before the first step and after each; conjugate gradients in each step."""

    state: Array
    energies: list[float]
    iterations: list[int]


@op
def energy(state: Any, *parameters: Any, residuals: Any) -> Any:
    """Half the square of the residuals."""
    outcome = residuals(state, *parameters)
    return 0.5 * (outcome * outcome).sum()


@op
def start(state: Any, *parameters: Any, residuals: Any) -> Any:
    """``-residuals``, its image under Jᵀ, and the square of that."""
    outcome, pullback = tc.vjp(lambda state: residuals(state, *parameters), state)
    (slope,) = pullback(-outcome)
    return -outcome, slope, (slope * slope).sum()


@op
def iterate(
    state: Any, move: Any, remainder: Any, direction: Any, square: Any, *parameters: Any, residuals: Any
) -> Any:
    """One conjugate gradient: the next move, remainder and direction, and the square of the slope there."""

    def near(state: Any) -> Any:
        return residuals(state, *parameters)

    _, image = tc.jvp(near, (state,), (direction,))
    length = square / (image * image).sum()
    remainder = remainder - length * image
    _, pullback = tc.vjp(near, state)
    (slope,) = pullback(remainder)
    after = (slope * slope).sum()
    return move + length * direction, remainder, slope + (after / square) * direction, after


def gauss_newton(
    residuals: Callable[..., Any],
    state: Array,
    parameters: Sequence[Any],
    *,
    steps: int,
    iterations: int,
    tolerance: float = 1e-10,
    small: float = 0.0,
    report: Callable[[int, float], None] = lambda step, energy: None,
) -> Solution:
    """Minimize half the square of ``residuals(state, *parameters)`` in at most so many steps.

    A step takes conjugate gradients until the slope has fallen by the factor ``tolerance``, at most ``iterations`` of
    them, and is halved while it does not lessen the energy. The steps end where the energy is ``small`` or stays.
    """
    energies = [float(energy(state, *parameters, residuals=residuals))]
    taken: list[int] = []
    for step in range(steps):
        if energies[-1] <= small:
            break
        move = np.zeros_like(state)
        remainder, direction, square = start(state, *parameters, residuals=residuals)
        goal = square * tolerance**2
        count = 0
        while count < iterations and square > goal:
            move, remainder, direction, square = iterate(
                state, move, remainder, direction, square, *parameters, residuals=residuals
            )
            count += 1
        length = 1.0
        while (after := float(energy(state + length * move, *parameters, residuals=residuals))) >= energies[-1]:
            length /= 2
            if length < 1e-3:
                return Solution(state, energies, taken)
        state = state + length * move
        energies.append(after)
        taken.append(count)
        report(step, after)
    return Solution(state, energies, taken)
