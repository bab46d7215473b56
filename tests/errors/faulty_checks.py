"""Checks in rounds, functions that are not decorated, and loops of Python, with one fault each."""

from __future__ import annotations

from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import op
from tests.errors.registry import registry

__all__ = ["FAULTS"]

FAULTS, fault = registry()
X = np.arange(1.0, 7.0)


@fault
def assertion_of_a_round() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            assert x[t] < 3, f"too much in round {t}"
        return x

    return f(X)


@fault
def raised_in_a_round_of_a_round() -> Any:
    @op
    def f(x: real[N]):
        s = 0.0
        for t in range(N):
            for k in range(t):
                s = s + x[k]
                if s > 7:
                    raise ValueError("too much")
        return s

    return f(X)


@fault
def nan_of_a_round() -> Any:
    @op
    def f(x: real[N]):
        s = 0.0
        for t in range(N):
            s = s + sqrt(3 - x[t])
        return s

    with tc.config(check="nan,bounds"):
        return f(X)


def halved(x: Any) -> Any:
    """A plain function, whose condition Python asks."""
    while x.sum() > 1:
        x = x / 2
    return x


@fault
def branch_of_a_plain_function() -> Any:
    @op
    def f(x):
        return halved(x)

    return f(X)


@fault
def loop_of_a_plain_function() -> Any:
    def total(x: Any) -> Any:
        s = 0.0
        for t in range(x.shape[0]):
            s = s + x[t]
        return s

    return tc.grad(total)(X)


@fault
def more_rounds_than_python_unrolls() -> Any:
    @op
    def f(x):
        steps = []
        for k in range(10_001):
            x = x + k
            steps.append(k)
        return x

    return f(X)
