"""Derivatives asked for in a wrong way; the golden messages show how users see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import cd, op

__all__ = ["FAULTS"]

FAULTS: dict[str, Callable[[], Any]] = {}
X = np.ones(3)


def fault(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that raises, under its name."""
    FAULTS[function.__name__] = function
    return function


@op
def squares(x):
    y[i] = x[i] * x[i]
    return y


@op
def dot(x, w):
    t[()] += x[i] * w[i]
    return t


@op
def looked_up(table, ids):
    y[i] = table[ids[i]]
    return y


@cd
def doubled(x):
    x *= 2


@fault
def jvp_of_code_in_place() -> Any:
    return tc.jvp(doubled, (X,), (X,))


@fault
def jacobian_of_an_array() -> Any:
    return tc.jacobian(X)


@fault
def primals_that_are_no_tuple() -> Any:
    return tc.jvp(squares, X, X)


@fault
def one_tangent_for_two_arguments() -> Any:
    return tc.jvp(dot, (X, X), (X,))


@fault
def tangent_of_another_shape() -> Any:
    return tc.jvp(dot, (X, X), (X, np.ones(4)))


@fault
def tangent_of_another_rank_inside_an_op() -> Any:
    @op
    def f(x):
        _, t = tc.jvp(squares, (x,), (x[0],))
        return t

    return f(X)


@fault
def tangent_of_another_extent_inside_an_op() -> Any:
    @op
    def f(x, v):
        _, t = tc.jvp(squares, (x,), (v,))
        return t

    return f(X, np.ones(4))


@fault
def tangent_of_another_type() -> Any:
    return tc.jvp(squares, (X,), (X.astype(complex),))


@fault
def tangent_for_integers() -> Any:
    return tc.jvp(looked_up, (X, np.array([2, 0])), (X, np.array([1, 1])))


@fault
def too_few_tangents_for_a_linearization() -> Any:
    return tc.linearize(dot, X, X)[1](X)


@fault
def cotangent_of_another_structure() -> Any:
    return tc.vjp(lambda x: {"y": squares(x), "sum": [x.sum()]}, X)[1]({"y": X, "sum": 1.0})


@fault
def cotangent_of_another_shape() -> Any:
    return tc.vjp(lambda x: {"y": squares(x), "sum": [x.sum()]}, X)[1]({"y": X, "sum": [X]})


@fault
def cotangent_that_is_missing() -> Any:
    return tc.vjp(squares, X)[1](None)


@fault
def argument_that_there_is_not() -> Any:
    return tc.jacobian(dot, argnums=2)(X, X)


@fault
def argument_named_twice() -> Any:
    return tc.hessian(dot, argnums=(0, -2))(X, X)


@fault
def argnums_that_are_no_positions() -> Any:
    return tc.grad(dot, argnums="x")


@fault
def unknown_mode_of_a_jacobian() -> Any:
    return tc.jacobian(dot, mode="backward")


@fault
def jacobian_of_integer_results() -> Any:
    return tc.jacobian(lambda x: {"above": x > 0})(X)


@fault
def hessian_of_several_results() -> Any:
    return tc.hessian(lambda x: (x, x.sum()))(X)


@fault
def aux_that_is_missing() -> Any:
    return tc.jvp(squares, (X,), (X,), has_aux=True)


@fault
def derivative_by_a_number_that_python_needs() -> Any:
    def power(x: Any, exponent: Any) -> Any:
        return (x**exponent).sum() if exponent > 1 else x.sum()

    return tc.grad(power, argnums=1)(X, 2.0)


@fault
def result_that_leaves_a_differentiated_function() -> Any:
    kept: list[Any] = []

    @op
    def f(x):
        def loss(v):
            kept.append(v)
            return (v * v).sum()

        slope = tc.grad(loss)(x)
        return slope + kept.pop()

    return f(X)


@fault
def pullback_that_leaves_its_op() -> Any:
    kept: list[Any] = []

    @op
    def f(x):
        y, pullback = tc.vjp(squares, x)
        kept.append(pullback)
        return y

    f(X)
    return kept.pop()(X)
