"""Schedules: functions from the number of a step, which counts from 0, to a learning rate or any other number.

::

    rate = tc.train.cosine(0.1, steps=1000, warmup=100)
    step.run(learning_rate=rate(k))                                      # a number for each run

    count = tc.tensor(0, label="count")                                  # or counted inside of the compiled step
    step = tc.compile(
        tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=rate(count)), tc.train.advance(count)
    )

On a number a schedule gives a float. On a tensor, such as a static index or a counter, it gives a tensor. Either way
the routine is compiled once. After its last step a schedule keeps its last value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError
from tcdsl.primitives import cos, floor, min, where  # noqa: A004  # the language's
from tcdsl.tensors.functions.decorators import cd
from tcdsl.tensors.graphs.location import fault
from tcdsl.tracebacks import user_facing

__all__ = ["Schedule", "advance", "constant", "cosine", "exponential", "linear", "stepwise"]

Schedule = Callable[[Any], Any]


@cd
def advance(count: Any) -> None:
    """Count a step: ``tc.compile(..., advance(count))`` adds 1 to the tensor ``count`` at each run."""
    count += 1


def _rate(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise fault(ConfigurationError, f"`{name}` is a number, not {value!r}")
    return float(value)


def _steps(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise fault(ConfigurationError, f"`{name}` is a number of steps, {least} or more, not {value!r}")
    return int(value)


def _schedule(formula: Callable[[Any], Any]) -> Schedule:
    def schedule(step: Any) -> Any:
        value = formula(step)
        return float(value) if isinstance(step, int | float | np.generic) else value

    return schedule


@user_facing
def constant(rate: float) -> Schedule:
    """``constant(0.1)``: always 0.1."""
    rate = _rate("rate", rate)
    return _schedule(lambda step: rate + 0.0 * step)


@user_facing
def linear(rate: float, steps: int, *, end: float = 0.0) -> Schedule:
    """``linear(0.1, steps=1000)``: from 0.1 at step 0 along a line to ``end`` at step 1000."""
    rate, end, steps = _rate("rate", rate), _rate("end", end), _steps("steps", steps, 1)
    return _schedule(lambda step: rate + (end - rate) * min(step / steps, 1.0))


@user_facing
def cosine(rate: float, steps: int, *, warmup: int = 0, end: float = 0.0) -> Schedule:
    """``cosine(0.1, steps=1000, warmup=100)``: a line up to 0.1, then half a period of the cosine down to ``end``.

    Step ``k`` of the warm-up takes ``(k + 1) / warmup`` of the rate. ``end`` is reached at ``steps``, which counts the
    warm-up in (Loshchilov and Hutter, 2017, without restarts).
    """
    rate, end = _rate("rate", rate), _rate("end", end)
    warmup = _steps("warmup", warmup, 0)
    steps = _steps("steps", steps, warmup + 1)

    def formula(step: Any) -> Any:
        done = min((step - warmup) / (steps - warmup), 1.0)
        falling = end + (rate - end) * 0.5 * (1.0 + cos(math.pi * done))
        return where(step < warmup, rate * (step + 1.0) / warmup, falling) if warmup else falling

    return _schedule(formula)


@user_facing
def stepwise(rate: float, every: int, *, factor: float = 0.1) -> Schedule:
    """``stepwise(0.1, every=30)``: times ``factor`` after every 30 steps."""
    rate, factor, every = _rate("rate", rate), _rate("factor", factor), _steps("every", every, 1)
    return _schedule(lambda step: rate * factor ** floor(step / every))


@user_facing
def exponential(rate: float, *, factor: float) -> Schedule:
    """``exponential(0.1, factor=0.99)``: times 0.99 at every step."""
    rate, factor = _rate("rate", rate), _rate("factor", factor)
    return _schedule(lambda step: rate * factor**step)
