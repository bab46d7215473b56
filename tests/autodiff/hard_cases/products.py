"""Products with zeros, repeated factors, quotients and powers."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from tcdsl import op
from tests.autodiff.hard_cases.cases import Table

__all__ = ["TABLE"]

TABLE = case = Table()
ZEROS: tuple[list[Any], ...] = (
    [[2.0, 3.0, 0.5]],
    [[2.0, 0.0, 3.0]],
    [[0.0, 5.0, 0.0, 2.0]],
    [[0.0, 0.0, 0.0]],
    [[0.0]],
    [[1.5]],
    [np.zeros(0)],
    [[-0.0, 0.0, 4.0]],
)


def row_products(xp: Any, x: Any) -> Any:
    return xp.prod(x, 1)


def powers_of_products(xp: Any, w: Any, x: Any) -> Any:
    return w ** xp.prod(x, 1)


# -- products ------------------------------------------------------------------------------------------------


@case.each(ZEROS, oracle=lambda xp, x: xp.prod(x), smooth=True)
@op
def product(x):
    p[()] *= x[i]
    return p


@case([[2.0, 0.0, 3.0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]], oracle=row_products, smooth=True, compiled=True)
@op
def product_of_rows(x):
    y[i] = prod(x[i, j])
    return y


@case.each(ZEROS[:4], oracle=lambda xp, x: xp.prod(x * x), smooth=True)
@op
def product_of_squares(x):
    p[()] *= x[i] * x[i]
    return p


@case.each(
    [[[0.0, 2.0], [0.0, 3.0, 5.0]], [[0.0, 2.0], [1.0, 3.0]], [[1.0], [0.0, 0.0, 5.0]], [[0.0, 1.0], [0.0, 0.0]]],
    oracle=lambda xp, w, x: w * xp.prod(x),
    smooth=True,
)
@op
def product_onto_what_a_target_holds(w, x):
    w[i] *= x[k]
    return w


@case([2.0, 0.0, 0.0], [3.0, 0.0, 5.0], oracle=lambda xp, w, x: w * x, smooth=True)
@op
def elementwise_product_onto_a_target(w, x):
    w[i] *= x[i]
    return w


@case.each(ZEROS[:4], smooth=True)
@op
def cumulative_product(x):
    N = x.shape[0]
    y = output(N)
    y[i] *= x[k], k <= i
    return y


@case.each(ZEROS[1:4], smooth=True)
@op
def product_of_pairs(x):
    p[()] *= x[i] - x[j] + 1.0, i < j
    return p


@case.each(ZEROS[:4], smooth=True)
@op
def products_that_multiply(x):
    y[()] = prod(x[i]) * prod(x[i] + 1.0) + sum(x[i]) * prod(x[i])
    return y


@case([2.0, 0.0, 3.0, 0.0], [0, 1, 0, 1], smooth=True)
@case([2.0, 0.0, 3.0, 0.0], [0, 0, 0, 0], smooth=True, name="one")
@op
def scattered_product(x, ids):
    y = output(2)
    y[ids[i]] *= x[i]
    return y


@case([2.0, 0.0, 3.0], [True, False, True], smooth=True)
@op
def product_where_data_say_so(x, m):
    p[()] *= x[i] * x[i] + 1.0, m[i]
    return p


@case([2.0, 0.0, 0.0], [0.0, 1.0], smooth=True)
@op
def product_with_brackets(x, w):
    y[i] = 2.0 * w[i]
    y[i] *= x[k] * (k >= i), k < x.shape[0]
    return y


# -- repeated factors ----------------------------------------------------------------------------------------


@case([0.0, 2.0, -3.0], oracle=lambda xp, x: x * x, slopes=([0, 4, -6],), smooth=True)
@op
def factor_twice(x):
    y[i] = x[i] * x[i]
    return y


@case([0.0, 2.0, -3.0], oracle=lambda xp, x: x**5, slopes=([0, 80, 405],), smooth=True)
@op
def factor_five_times(x):
    y[i] = x[i] * x[i] * x[i] * x[i] * x[i]
    return y


@case([1.0, 2.0, -3.0], oracle=lambda xp, x: xp.sum(x) ** 2, slopes=([0, 0, 0],), smooth=True, compiled=True)
@op
def every_pair(x):
    s[()] += x[i] * x[j]
    return s


@case([1.0, 2.0, -3.0], oracle=lambda xp, x: xp.sum(x[:-1] * x[1:]) + x[0] * x[2], smooth=True)
@op
def neighbours_and_ends(x):
    s[()] += x[i] * x[i + 1]
    s[()] += x[0] * x[2]
    return s


@case([[1.0, 2.0], [3.0, 4.0]], oracle=lambda xp, A: A @ A @ A, smooth=True)
@op
def cube_of_a_matrix(A):
    return A @ A @ A


@case([[1.0, 2.0], [3.0, 4.0]], oracle=lambda xp, A: A * A.T, slopes=([[2, 6], [4, 8]],), smooth=True)
@op
def matrix_times_its_transpose(A):
    y[i, j] = A[i, j] * A[j, i]
    return y


@case([0.5, -1.0], oracle=lambda xp, x: xp.sin(x) ** 2 * xp.sin(x) + x * xp.sin(x), smooth=True)
@op
def local_definition_used_often(x):
    z = sin(x[i])
    y[i] = z * z * z + x[i] * z
    return y


# -- quotients -----------------------------------------------------------------------------------------------


@case([[2.0, -3.0, 0.5]], oracle=lambda xp, x: 1 / xp.prod(x, 1), smooth=True)
@case(np.ones((2, 0)), oracle=lambda xp, x: 1 / xp.prod(x, 1), name="empty")
@op
def division_by_all(x):
    y[i] /= x[i, k]
    return y


@case([1.0, 0.0], [[2.0, -3.0], [0.5, 4.0]], oracle=lambda xp, w, x: w / xp.prod(x, 1), smooth=True, compiled=True)
@op
def division_of_what_a_target_holds(w, x):
    w[i] /= x[i, k]
    return w


@case([0.0, 2.0], [4.0, 0.5], oracle=lambda xp, w, x: w / x, smooth=True)
@op
def elementwise_division_of_a_target(w, x):
    w[i] /= x[i]
    return w


@case([0.0, 2.0], [1.0, 3.0], oracle=lambda xp, w, x: w - x * x - 3 * x, smooth=True)
@op
def subtraction_from_a_target(w, x):
    w[i] -= x[i] * x[i]
    w[i] -= x[i] * float64(j), j < 3, j >= 0, 2 * x[i] > 0
    return w


# -- powers --------------------------------------------------------------------------------------------------


@case([0.0, 2.0, -3.0], oracle=lambda xp, x: x**0, slopes=([0, 0, 0],), smooth=True)
@op
def power_zero(x):
    y[i] = x[i] ** 0
    return y


@case([0.0, 2.0, -3.0], oracle=lambda xp, x: x**1, slopes=([1, 1, 1],), smooth=True)
@op
def power_one(x):
    y[i] = x[i] ** 1
    return y


@case([0.0, 2.0, -3.0], oracle=lambda xp, x: x**2, slopes=([0, 4, -6],), smooth=True)
@op
def power_two(x):
    y[i] = x[i] ** 2
    return y


@case([0.0, 2.0, -3.0], oracle=lambda xp, x: x**7, slopes=([0, 448, 5103],), smooth=True)
@op
def power_seven(x):
    y[i] = x[i] ** 7.0
    return y


@case([2.0, -3.0], oracle=lambda xp, x: x**-2.0, slopes=([-0.25, 2 / 27],), smooth=True)
@op
def power_minus_two(x):
    y[i] = x[i] ** -2
    return y


@case([4.0, 0.25], oracle=lambda xp, x: x**0.5, slopes=([0.25, 1],), smooth=True)
@case([0.0], slopes=([inf],), name="zero")
@op
def power_half(x):
    y[i] = x[i] ** 0.5
    return y


@case([0.5, 2.0, 3.0], [1.5, 0.0, -1.0], oracle=lambda xp, x, b: x**b, smooth=True, compiled=True, peers=("jax",))
@case([0.0, 0.0, 0.0], [2.0, 1.0, 0.0], slopes=([0, 1, 0], [0, 0, 0]), twice=False, name="base zero")
@case([-2.0, -2.0], [3.0, 2.0], slopes=([12, -4], [0, 0]), twice=False, name="negative base")
@op
def power(x, b):
    y[i] = x[i] ** b[i]
    return y


@case([-2.0, -1.5, 0.0, 0.0], [3, 0, 2, 0], slopes=([12, 0, 0, 0],), smooth=True)
@op
def power_with_integer_exponents(x, n):
    y[i] = x[i] ** n[i]
    return y


@case([0.0, 1.0, 2.0], oracle=lambda xp, b: 2.0**b, slopes=([log(2), 2 * log(2), 4 * log(2)],), smooth=True)
@op
def power_of_two(b):
    y[i] = 2.0 ** b[i]
    return y


@case([0.5, 2.0], [[1.5, 2.0], [-1.0, 0.5]], oracle=powers_of_products, smooth=True)
@case(
    [2.0, 3.0, 1.5],
    [[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]],
    oracle=powers_of_products,
    smooth=True,
    peers=("jax",),
    name="zeros",
)
@op
def powers_of_what_a_target_holds(w, x):
    w[i] **= x[i, k]
    return w


@case([0.5, 2.0], [1.5, 0.0], oracle=lambda xp, w, x: w**x, smooth=True, peers=("jax",))
@op
def elementwise_power_of_a_target(w, x):
    w[i] **= x[i]
    return w
