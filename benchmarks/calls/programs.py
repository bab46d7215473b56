"""Small functions, and the ways to call them that are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, cycle

import numpy as np

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.indices import i
from tcdsl.runtime.calling.execution import Executable

__all__ = ["CALLS"]

Call = Callable[[], object]


@op
def added(a, b):
    y = tc.output()
    y[i] = a[i] + b[i]
    return y


@op
def shifted(x, *, by):
    y = tc.output(8)
    y[i] = x[i + by]
    return y


@cd
def accumulated(p, g):
    p[i] += g[i]


@cd
def descended(p, g, *, rate):
    p -= rate * g


@op
def product(w, x):
    s = tc.output()
    s[()] = sum(w[i] * x[i])
    return s


def _vector(length: int = 8) -> np.ndarray:
    return np.ones(length, np.float32)


def _pairs(lengths: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    # Beginnings of two vectors: thousands of arrays of their own would fill the memory.
    one, other = _vector(max(lengths)), _vector(max(lengths))
    return [(one[:length], other[:length]) for length in lengths]


def _repeated() -> Call:
    a, b = _vector(), _vector()
    return lambda: added(a, b)


def _update() -> Call:
    p, g = _vector(), _vector()
    return lambda: descended(p, g, rate=0.1)


def _columns() -> Call:
    table = np.ones((8, 8), np.float32)
    p, g = table[:, 0], table[:, 1]
    return lambda: accumulated(p, g)


def _routine() -> Call:
    w = tc.tensor(_vector())
    step = tc.compile(descended(w, w * 0.5, rate=0.1))
    return step.run


def _routine_with_number() -> Call:
    w = tc.tensor(_vector())
    step = tc.compile(descended(w, w * 0.5, rate=0.1))
    return lambda: step.run(rate=0.1)


def _bound() -> Call:
    a, b = _vector(), _vector()
    return Executable(added.program(a, b)).bind([a, b])


def _new_shape() -> Call:
    # The arrays are made before, so that a call is all that is timed.
    remaining = iter(_pairs(range(100, 100_000, 7)))
    return lambda: added(*next(remaining))


def _alternating(shapes: int) -> Call:
    pairs = cycle(_pairs(range(1, shapes + 1)))
    return lambda: added(*next(pairs))


def _slope_made_outside() -> Call:
    w, x = _vector(), _vector()
    slope = tc.value_and_grad(product)
    return lambda: slope(w, x)


def _slope_made_inside() -> Call:
    w, x = _vector(), _vector()
    return lambda: tc.value_and_grad(product)(w, x)


def _slope_of_lambda() -> Call:
    w, x = _vector(), _vector()
    return lambda: tc.value_and_grad(lambda v: product(v, x))(w)


def _offsets() -> Call:
    x, numbers = _vector(), count()
    return lambda: shifted(x, by=next(numbers) % 1000)


CALLS: dict[str, tuple[Callable[[], Call], int]] = {
    "two arrays": (_repeated, 1000),
    "two arrays and a number, in place": (_update, 1000),
    "two columns of a table, in place": (_columns, 1000),
    "the same kernel, bound": (_bound, 1000),
    "a routine": (_routine, 1000),
    "a routine, with a number": (_routine_with_number, 1000),
    "a new shape each time": (_new_shape, 100),
    "50 shapes in turn": (lambda: _alternating(50), 1000),
    "500 shapes in turn": (lambda: _alternating(500), 1000),
    "1000 offsets in turn": (_offsets, 1000),
    "value_and_grad, made outside": (_slope_made_outside, 1000),
    "value_and_grad, made at each call": (_slope_made_inside, 1000),
    "value_and_grad of a new lambda": (_slope_of_lambda, 50),
}
"""For each name, what makes the call, and how many calls a sample has."""
