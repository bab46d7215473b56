"""Boundaries, fills and branches, where border and interior coincide, and what must not be touched."""

from __future__ import annotations

from math import inf, nan

import numpy as np

from tcdsl import op
from tests.autodiff.hard_cases.cases import Table

__all__ = ["TABLE"]

TABLE = case = Table()
RNG = np.random.default_rng(12)
LINES = [[RNG.uniform(0.5, 1.5, n)] for n in (5, 3, 2, 1, 0)]
SHAPES = ((4, 3), (1, 2), (0, 2))
SQUARES = [[RNG.uniform(-1, 1, shape), RNG.uniform(-1, 1, (3, 3))] for shape in SHAPES]


@case.each(LINES, smooth=True)
@op
def clamped_reads(x):
    N = x.shape[0]
    y = output(N)
    y[i] = x[clamp(i - 1)] * x[clamp(i + 1)] + x[clamp(i + 9)] * x[clamp(2 * i - 3)]
    return y


@case([1.0, 2.0, 3.0], [1.0, 10.0, 100.0], slopes=([11, 100, 0], [1, 1, 2]), name="by hand")
@case([2.0], [3.0], slopes=([3], [2]), name="one")
@op
def clamped_by_one(x, w):
    N = x.shape[0]
    t[()] += x[clamp(i - 1)] * w[i], i < N
    return t


@case.each(LINES, smooth=True, compiled=False)
@op
def wrapped_reads(x):
    N = x.shape[0]
    y = output(N)
    y[i] = x[wrap(i - 1)] * x[wrap(i + 1)] + x[wrap(i + 9)] * x[wrap(2 * i - 3)]
    return y


@case.each(LINES, smooth=True)
@op
def reflected_reads(x):
    N = x.shape[0]
    y = output(N)
    y[i] = x[reflect(i - 1)] * x[reflect(i + 1)] + x[reflect(i + 9)] * x[reflect(2 * i - 3)]
    return y


@case.each(LINES, smooth=True)
@op
def symmetric_reads(x):
    N = x.shape[0]
    y = output(N)
    y[i] = x[symmetric(i - 1)] * x[symmetric(i + 1)] + x[symmetric(i + 9)] * x[symmetric(2 * i - 3)]
    return y


@case.each(SQUARES, smooth=True)
@op
def window_with_boundaries(x, w):
    N, M = x.shape
    y = output(N, M)
    y[i, j] += x[reflect(i + k - 1), wrap(j + l - 1)] * w[k, l] * x[clamp(i + k), symmetric(j - l)]
    return y


@case.each([[line, 0.5] for [line] in LINES], smooth=True)
@op
def filled_reads(x, c):
    N = x.shape[0]
    y = output(N)
    y[i] = get(x[i - 1], c * c) * get(x[i + 2], x[i]) + get(x[i - 9], get(x[i + 1], c))
    return y


@case([1.0, 2.0], [[1, -1, 0], [5, 0, 1]], 3.0, slopes=([2, 2], [2]), smooth=True)
@op
def filled_data_reads(x, ids, c):
    y[i, j] = get(x[ids[i, j]], c)
    return y


@case([4.0, 0.0, -1.0], slopes=([0.25, 0, 0],))
@op
def root_of_positive(x):
    y[i] = sqrt(x[i]) if x[i] > 0 else 0.0
    return y


@case([4.0, 0.0, inf, nan], slopes=([-1 / 16, 0, -0.0, nan],))
@op
def quotient_where_it_is_defined(x):
    y[i] = where(x[i] == 0, 0.0, 1 / x[i])
    return y


@case([2.0, 0.0, -1.0], [nan, 5.0, inf], slopes=([0.5, 0, 0], [0, 1, 1]))
@op
def untaken_branches_of_both_kinds(x, w):
    y[i] = log(x[i]) if x[i] > 0 else w[i]
    return y


@case([2.0, 0.0, -1.0], slopes=([0.5, 0, 0],))
@op
def bracket_before_a_pole(x):
    s[()] += log(x[i]) * (x[i] > 0)
    return s


@case([1.0, 4.0, 9.0], slopes=([0, 0, 1],), smooth=True)
@op
def differences(x):
    N = x.shape[0]
    y = output(N)
    y[i] = x[i] - (x[i - 1] if i > 0 else 0.0)
    return y


@case.each(LINES, smooth=True)
@op
def nested_branches(x):
    N = x.shape[0]
    y = output(N)
    y[i] = (x[i - 2] * x[i] if i > 2 else x[i - 1] if i > 0 else x[i] ** 2) if x[i] < 1.2 else sin(x[clamp(i + 1)])
    return y


@case([0.5, -0.5, 2.0], [1.0, 2.0, 3.0], smooth=True)
@op
def conditions_on_data(x, w):
    s[()] += w[i] * w[j] * x[j], x[i] > 0, i <= j
    y[i] = s[()] * w[i]
    y[i] = x[i] * x[i], x[i] < 0
    return y


@case([0.5, 1.0], [nan, 3.0], [True, False], slopes=([0, 0], [0, 1]))
@op
def chosen_by_data(x, w, m):
    y[i] = where(m[i], 7.0, w[i])
    return y


@case([nan, 2.0], [1.0, 3.0], [False, True], slopes=([0, 3], [0, 2]))
@op
def conditions_and_brackets(x, w, m):
    y[i] = 1.0 * w[i] - w[i]
    y[i] += x[i] * w[i], m[i]
    y[i] += (m[i] and x[i] > 5) * exp(x[i] * 1000)
    return y
