"""Gathers, scatters, nested indirection, integers beside floats, casts, what stops derivatives."""

from __future__ import annotations

import numpy as np

from tcdsl import op
from tests.autodiff.hard_cases.cases import Table

__all__ = ["TABLE"]

TABLE = case = Table()
RNG = np.random.default_rng(13)


def some(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


@case(some(4, 2), [1, 3, 1, 1], oracle=lambda xp, t, ids: t[ids] * t[ids], smooth=True, compiled=True)
@case(some(4, 2), np.zeros(0, int), oracle=lambda xp, t, ids: t[ids] * t[ids], smooth=True, name="nothing")
@case(some(1, 1), [0, 0], oracle=lambda xp, t, ids: t[ids] * t[ids], smooth=True, name="one")
@op
def gathered(t, ids):
    y[n, d] = t[ids[n], d] * t[ids[n], d]
    return y


@case(some(4), [1, 3, 1, 1], slopes=([3, 3, 3, 3],), smooth=True, name="ids")
@op
def gathered_rows_and_columns(x, ids):
    y[i, j] = x[ids[i]] * x[ids[j]]
    z[i] = 3.0 * x[i] + sum(y[i, j]) - sum(x[ids[j]] * x[ids[i]] for j in range(4))
    return z


@case(some(4), [1, 0, 1, 1], smooth=True, compiled=True)
@op
def scattered(x, bins):
    H = output(3)
    H[bins[i]] += x[i] * x[i]
    y[i] = H[bins[i]] * x[i]
    return y


@case(some(3), some(4), [1, 7, 1, -2], smooth=True)
@op(oob="skip")
def scattered_and_skipped(w, x, bins):
    w[bins[i]] += x[i] * x[i]
    w[bins[i]] *= x[i] + 2.0
    return w


@case(some(3), some(4), [1, 7, 1, -2], smooth=True)
@op(oob="clamp")
def scattered_and_clamped(w, x, bins):
    w[bins[i]] -= x[i] * w[bins[i]]
    return w


@case(some(3), [3, 3, 0, 1], [2, 0, 1, 1], smooth=True)
@op
def nested_indirection(x, a, b):
    y[i] = sin(x[b[a[i]]]) * x[b[i]]
    return y


@case(some(3), some(3), [2, 0, 1], smooth=True)
@op
def stored_by_a_permutation(w, x, p):
    w[i] *= x[i]
    assign(w[p[i]], "=:", x[i] * x[i], unique=True)
    return w


@case(some(4), [0, 2, 1, 2], [True, False, True, True], smooth=True)
@op
def sums_where_data_say_so(x, n, m):
    y[i] = sum(x[k] * x[i] for k in range(4) if m[k] and n[k] > 0) + mean(x[k] ** 2 for k in range(4) if n[k] == n[i])
    return y


@case([1.5, -2.5, 3.0], [2, -1, 4], slopes=([4, -4, 11],))
@op
def integers_beside_floats(x, n):
    k[i] = int64(x[i])
    y[i] = x[i] * n[i] * 2 + x[i] * where(n[i] == 4, k[i], 0 * k[i]) + x[i] * min(k[i], 0)
    return y


@case([1.5, -2.0], [1.0, 2.0], slopes=([1.5, -2.0], [0, 0]))
@op
def stopped(x, w):
    y[i] = x[i] * stop_gradient(x[i]) + stop_gradient(w[i] * x[i])
    return y


@case([0.5, -1.0], slopes=([1, 1],))
@op
def straight_through(x):
    y[i] = x[i] + stop_gradient(round(x[i]) - x[i])
    return y


@case(some(3), oracle=lambda xp, x: x * x * x, name="64 to 32 to 64")
@op
def cast_there_and_back(x):
    z = float64(float32(x[i]))
    y[i] = z * z * float64(float32(x[i]))
    return y


@case([0.5, 1.5, -2.0], slopes=([1, 3, -4],))
@op
def through_half_precision(x):
    h: float16[3]
    h[i] = x[i]
    y[i] = float64(h[i]) * float64(h[i])
    return y


@case([3.0, 7.0, -4.5], [2.0, -3.0, 2.0], slopes=([1, 1, 1], [-1, 3, 3]), smooth=True)
@op
def remainder(a, b):
    y[i] = a[i] % b[i]
    return y


@case([1.0, 0.0, -2.0], [0.0, 3.0, 0.0], slopes=([0, 1 / 3, 0], [-1, 0, 0.5]), oracle=lambda xp, a, b: xp.arctan2(a, b))
@op
def angle_on_axes(a, b):
    y[i] = atan2(a[i], b[i])
    return y


@case([1.0, 0.0], [0.0, 3.0], [5.0, -1.0], oracle=lambda xp, a, b, c: a * b + c, smooth=True)
@op
def multiplied_and_added(a, b, c):
    y[i] = fma(a[i], b[i], c[i])
    return y
