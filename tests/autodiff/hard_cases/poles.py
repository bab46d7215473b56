"""Every primitive with a kink, a pole or an end of its domain: the derivative there, by hand."""

from __future__ import annotations

from math import inf, log, pi, sqrt

from tcdsl import op
from tests.autodiff.hard_cases.cases import Table

__all__ = ["TABLE"]

TABLE = case = Table()


@case([0.0, 4.0], slopes=([inf, 0.25],), twice=False)
@op
def root(x):
    y[i] = sqrt(x[i])
    return y


@case([0.0, 2.0, -0.0], slopes=([inf, 0.5, -inf],), twice=False)
@op
def logarithm(x):
    y[i] = log(x[i])
    return y


@case([0.0, 2.0], slopes=([inf, 0.5 / log(2)],), twice=False)
@op
def logarithm_to_base_two(x):
    y[i] = log2(x[i])
    return y


@case([-1.0, 0.0, 1e-300], slopes=([inf, 1, 1],), twice=False)
@op
def logarithm_of_one_more(x):
    y[i] = log1p(x[i])
    return y


@case([-1.0, 0.0, 1.0], slopes=([inf, 1, inf],), twice=False)
@op
def arc_sine(x):
    y[i] = asin(x[i])
    return y


@case([-1.0, 0.0, 1.0], slopes=([-inf, -1, -inf],), twice=False)
@op
def arc_cosine(x):
    y[i] = acos(x[i])
    return y


@case([1.0, 2.0], slopes=([inf, 1 / sqrt(3)],), twice=False)
@op
def area_cosine(x):
    y[i] = acosh(x[i])
    return y


@case([-1.0, 0.0, 1.0], slopes=([inf, 1, inf],), twice=False)
@op
def area_tangent(x):
    y[i] = atanh(x[i])
    return y


@case([0.0, 2.0], slopes=([-inf, -0.25],), twice=False)
@op
def reciprocal(x):
    y[i] = recip(x[i])
    return y


@case([0.0, 4.0], slopes=([-inf, -1 / 16],), twice=False)
@op
def reciprocal_root(x):
    y[i] = recip_sqrt(x[i])
    return y


@case([1.0, 3.0], [0.0, 2.0], slopes=([inf, 0.5], [-inf, -0.75]), twice=False)
@op
def quotient(a, b):
    y[i] = a[i] / b[i]
    return y


@case([-1000.0, -40.0, 0.0, 40.0, 700.0], slopes=([0, 4.248354255291589e-18, 0.25, 0, 0],), oracle=None)
@op
def logistic(x):
    y[i] = sigmoid(x[i])
    return y


@case([-1000.0, 0.0, 1000.0], slopes=([0, 0.5, 1],))
@op
def soft_plus(x):
    y[i] = softplus(x[i])
    return y


@case([-1000.0, 0.0, 1000.0], slopes=([0, 1 / 2, 1],))
@op
def sigmoid_linear_unit(x):
    y[i] = silu(x[i])
    return y


@case([-1000.0, 0.0, 1000.0], slopes=([0, 1 / 2, 1],))
@op
def gaussian_linear_unit(x):
    y[i] = gelu(x[i])
    return y


@case([-1000.0, 0.0, 1000.0], slopes=([0, 2 / sqrt(pi), 0],))
@op
def error_function(x):
    y[i] = erf(x[i])
    return y


@case([-400.0, 0.0, 400.0], slopes=([0, 1, 0],))
@op
def hyperbolic_tangent(x):
    y[i] = tanh(x[i])
    return y


@case([-inf, -800.0, 0.0], slopes=([0, 0, 1],))
@op
def exponential(x):
    y[i] = exp(x[i])
    return y


@case([-inf, 0.0, 1e-300], slopes=([0, 1, 1],))
@op
def exponential_less_one(x):
    y[i] = expm1(x[i])
    return y


@case([-1.0, 0.0, 1.0], slopes=([log(2) / 2, log(2), 2 * log(2)],), smooth=True)
@op
def exponential_to_base_two(x):
    y[i] = exp2(x[i])
    return y


@case([0.0, -2.0], [0.0, 1.0], slopes=([2, 2], [2, 2]), smooth=True)
@op
def identities(a, b):
    y[i] = id(a[i]) + id(id(a[i])) - neg(b[i]) - -b[i]
    return y


@case([-1.0, 0.0, 3.0], slopes=([-2, 0, 6],), smooth=True)
@op
def squares(x):
    y[i] = square(x[i])
    return y
