"""Ties and NaN in maxima and minima, kinks, gates, and which position wins."""

from __future__ import annotations

from math import inf, nan

import numpy as np

from tcdsl import op
from tests.autodiff.hard_cases.cases import Table

__all__ = ["TABLE"]

TABLE = case = Table()


# -- reductions ----------------------------------------------------------------------------------------------


@case([3.0, 1.0, 3.0, 3.0], oracle=lambda xp, x: xp.amax(x, 0), slopes=([1 / 3, 0, 1 / 3, 1 / 3],), name="three")
@case([2.0, 2.0], oracle=lambda xp, x: xp.amax(x, 0), slopes=([0.5, 0.5],), name="all")
@case([1.0, 4.0, 2.0], oracle=lambda xp, x: xp.amax(x, 0), slopes=([0, 1, 0],), smooth=True, name="one")
@case([-inf, -inf], slopes=([0.5, 0.5],), name="equal to the neutral element")
@case([0.0, -0.0], slopes=([0.5, 0.5],), name="signed zeros")
@case([1.0, nan, 2.0], slopes=([0, 0, 0],), name="NaN")
@case(np.zeros(0), slopes=(np.zeros(0),), name="empty")
@op
def maximum(x):
    m[()] >>= x[i]
    return m


@case([[3.0, 1.0, 1.0], [2.0, 2.0, 2.0], [0.0, 5.0, nan]], slopes=([[0, 0.5, 0.5], [1 / 3] * 3, [0, 0, 0]],))
@case([[3.0, 1.0, 1.0], [2.0, 2.0, 2.0]], oracle=lambda xp, x: xp.amin(x, 1), compiled=True, name="finite")
@case(np.zeros((2, 0)), slopes=(np.zeros((2, 0)),), name="empty rows")
@op
def minimum_of_rows(x):
    y[i] = min(x[i, j])
    return y


@case([1.0, 3.0, 3.0], [3.0, 0.0], slopes=([0, 1 / 3 + 1 / 2, 1 / 3 + 1 / 2], [1 / 3, 0]))
@case(np.zeros(0), [3.0, 0.0], slopes=([], [1, 1]), name="empty")
@op
def maximum_onto_a_target(x, w):
    w[i] >>= x[k]
    return w


@case([1.0, 3.0, 0.0], [1.0, 2.0, 3.0], slopes=([0.5, 0, 1], [0.5, 1, 0]))
@op
def elementwise_minimum_onto_a_target(x, w):
    w[i] <<= x[i]
    return w


@case([1.0, -1.0, 0.5], oracle=lambda xp, x: xp.amax(x * x, 0), slopes=([1, -1, 0],))
@op
def maximum_of_squares(x):
    m[()] >>= x[i] * x[i]
    return m


@case([0.5, 0.5, -2.0], oracle=lambda xp, x: xp.exp(xp.amax(x, 0)) * xp.sum(x))
@case([0.5, 1.5, -2.0], oracle=lambda xp, x: xp.exp(xp.amax(x, 0)) * xp.sum(x), smooth=True, name="one")
@op
def function_of_a_maximum(x):
    y[()] = exp(max(x[i])) * sum(x[i])
    return y


@case([0.3, 0.9, -0.7], oracle=lambda xp, x: xp.amax(xp.sin(x) * x + 1, 0), smooth=True, compiled=True)
@op
def maximum_of_computed_values(x):
    m[()] >>= sin(x[i]) * x[i] + 1.0
    return m


@case([1.0, 3.0, 3.0, 2.0, 3.0], slopes=([0, 0.5 + 1 / 3, 0.5 + 1 / 3, 0, 1 / 3],))
@op
def overlapping_windows(x):
    y[i] = max(x[i + k] for k in range(3)) if i != 1 else max(x[i + k] for k in range(4))
    return y


@case([1.0, 3.0, 3.0, 2.0], [0, 1, 1, 0], slopes=([0, 0.5, 0.5, 1],))
@op
def scattered_maximum(x, ids):
    y = output(2)
    y[ids[i]] >>= x[i]
    return y


@case([1.0, 3.0, 3.0, 2.0], [True, True, False, True], slopes=([0, 1, 0, 0],), smooth=True)
@op
def maximum_where_data_say_so(x, m):
    y[()] >>= x[i], m[i]
    return y


@case([-1.0, -3.0, -2.0], slopes=([0, 0, 0],), smooth=True)
@op
def maximum_with_brackets(x):
    y[()] >>= x[i] * (i != 1)
    return y


@case([1.0, 3.0, 3.0], [2.0, 5.0, 7.0], slopes=([0, 0, 0], [0, 1, 0]))
@op
def position_of_a_maximum_as_index(x, w):
    y[()] = w[argmax(x[i])]
    return y


@case([[1.0, 3.0], [4.0, 4.0], [7.0, 2.0]], slopes=([[0, 1], [1, 0], [1, 0]],))
@op
def value_at_the_position_of_the_maximum(x):
    y[i] = x[i, argmax(x[i, j])]
    return y


@case([[1.0, 3.0], [4.0, 4.5], [7.0, 2.0]], oracle=lambda xp, x: xp.amin(xp.amax(x, 1), 0), smooth=True)
@case([[1.0, 3.0], [3.0, 3.0], [7.0, 2.0]], slopes=([[0, 0.5], [0.25, 0.25], [0, 0]],), name="ties")
@op
def smallest_of_the_largest(x):
    r[i] = max(x[i, j])
    y[()] = min(r[i])
    return y


# -- elementwise ---------------------------------------------------------------------------------------------


@case([1.0, 3.0, 2.0], [1.0, 2.0, 5.0], oracle=lambda xp, x, y: xp.maximum(x, y) - 2 * xp.minimum(x, y))
@case([nan, 1.0], [1.0, nan], slopes=([0, 0], [0, 0]), name="NaN")
@op
def two_arguments(x, y):
    z[i] = max(x[i], y[i]) - 2 * min(x[i], y[i])
    return z


@case([1.0, 3.0, 0.0], [2.0, 3.0, 0.0], [2.5, 1.0, -1.0], slopes=([0, 0.5, 0.5], [0, 0.5, 0.5], [1, 0, 0]))
@op
def three_arguments(x, y, z):
    w[i] = max(x[i], y[i], z[i])
    return w


@case([-0.5, 0.0, 0.5, 1.0, 1.5], slopes=([0, 0.5, 1, 0.5, 0],))
@op
def clamped(x):
    y[i] = min(max(x[i], 0.0), 1.0)
    return y


@case([-0.5, 0.25, 0.5, 1.5], oracle=lambda xp, x: xp.clip(x * x, 0.1, 1.0), smooth=True, compiled=True)
@op
def square_clamped(x):
    y[i] = min(max(x[i] * x[i], 0.1), 1.0)
    return y


@case([-1.5, 0.0, 2.0], oracle=lambda xp, x: xp.abs(x), slopes=([-1, 0, 1],), peers=("torch",))
@op
def absolute_value(x):
    y[i] = abs(x[i])
    return y


@case([-1.5, 0.0, 2.0], slopes=([0, 0, 4],))
@op
def rectified(x):
    y[i] = relu(x[i]) * relu(x[i])
    return y


@case([-1.5, 0.0, 0.5, 1.0, 2.0], slopes=([0, 0, 1, 0, 0],))
@op
def saturated(x):
    y[i] = sat01(x[i])
    return y


@case([-1.5, 0.0, 0.5, 1.0], [1.0, 2.0, 3.0, 4.0], slopes=([0, 0, 0, 0], [0, 0, 2, 1]))
@op
def gated(a, b):
    y[i] = relu_gate(a[i], b[i]) + sat01_gate(a[i], b[i])
    return y


@case([1.0, -2.0, 0.5], [3.0, 4.0, 5.0], oracle=lambda xp, a, b: a * a + b**3, smooth=True)
@op
def first_and_second(a, b):
    y[i] = fst(a[i], b[i]) * fst(a[i], exp(b[i])) + snd(a[i], b[i]) ** 3
    return y


@case([0.5, 1.5, -0.5], slopes=([0, 0, 0],))
@op
def steps(x):
    y[i] = floor(x[i]) + ceil(x[i]) + round(x[i]) + sign(x[i]) + x[i] // 2.0
    return y


@case([2.0, -3.0, 0.0], oracle=None, slopes=([0, 0, 0],))
@op
def comparisons(x):
    y[i] = 1.0 * (x[i] > 0) + 2.0 * (x[i] == 0) + where(x[i] < 1, 3.0, 4.0)
    return y


@case([3.0, -1.0, 2.0], [True, False, True], slopes=([2, 0, 2],))
@op
def any_and_all_have_no_gradient(x, b):
    a[()] |= x[i] > 0
    c[()] &= b[i] or x[i] > 5
    y[i] = x[i] * (a[()] and b[i]) * 2 + 7.0 * c[()]
    return y
