"""Names after loops and branches, and arms that do not fit, with one fault each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl import op
from tests.errors.registry import registry

__all__ = ["FAULTS"]

FAULTS, fault = registry()
X = np.arange(1.0, 7.0)
C = np.array(0.5)


@fault
def name_of_a_round_after_its_loop() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            h = t * x
        return h

    return f(X)


@fault
def name_of_a_round_in_a_statement_after_its_loop() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            h[i] = t * x[i]
        y[i] = 2 * h[i]
        return y

    return f(X)


@fault
def name_of_a_round_in_a_function_after_its_loop() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            h = t * x
        return tanh(h)

    return f(X)


@fault
def number_of_the_round_after_its_loop() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            x = x + t
        return x + t

    return f(X)


@fault
def number_of_the_round_as_an_index_after_its_loop() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            x = x + t
        y[t] = 2 * x[t]
        return y

    return f(X)


@fault
def name_of_one_arm_after_its_branch() -> Any:
    @op
    def f(x, c):
        if c > 0:
            h = 2 * x
        return h

    return f(X, C)


@fault
def name_of_one_arm_in_a_statement_after_its_branch() -> Any:
    @op
    def f(x, c):
        if c > 0:
            h[i] = 2 * x[i]
        y[i] = h[i]
        return y

    return f(X, C)


@fault
def arms_of_two_types() -> Any:
    @op
    def f(x, c):
        if c > 0:
            y = x
        else:
            y = float32(x)
        return y

    return f(X, C)


@fault
def arms_of_two_ranks() -> Any:
    @op
    def f(x, c):
        if c > 0:
            y = x
        else:
            y = x[0]
        return y

    return f(X, C)


@fault
def arms_of_two_shapes_in_this_call() -> Any:
    @op
    def f(x, z, c):
        if c > 0:
            y = x
        else:
            y = z
        return y

    return f(X, X[:2], -C)


@fault
def arm_that_changes_a_type() -> Any:
    @op
    def f(x, c):
        if c > 0:
            x = float32(x)
        return x

    return f(X, C)


@fault
def returns_of_two_kinds() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            if x[t] > 2:
                return x
        return x[0]

    return f(X)
