"""Programs with one fault each; the golden messages show how users see them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import cd, op

__all__ = ["FAULTS"]

stride = 2
FAULTS: dict[str, Callable[[], Any]] = {}


def fault(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that raises, under its name."""
    FAULTS[function.__name__] = function
    return function


def ones(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.ones(shape, dtype)


@fault
def undefined_name() -> Any:
    @op
    def f(x):
        y[i] = x[i] * Scale
        return y

    return f(ones(3))


@fault
def name_bound_later() -> Any:
    @op
    def f(x):
        h = w * x
        w = param("w", init=2.0)
        return h

    return f(ones(3))


@fault
def name_bound_in_no_round() -> Any:
    @op
    def f(x, *, n=0):
        for k in range(n):
            last = k * x
        return last

    return f(ones(3))


@fault
def new_target_at_a_winner() -> Any:
    @op
    def f(x):
        y[argmax(x[i])] = x[0]
        return y

    return f(ones(3))


@fault
def undefined_function() -> Any:
    @op
    def f(x):
        y[i] = gelo(x[i])
        return y

    return f(ones(3))


@fault
def upper_case_letters_as_indices() -> Any:
    @op
    def f(x):
        y[I] = x[I]
        return y

    return f(ones(3))


@fault
def undefined_letter() -> Any:
    @op
    def f(x):
        y[i] = x[i] + z[i]
        return y

    return f(ones(3))


@fault
def code_without_effect() -> Any:
    @cd
    def f(x):
        TOTAL[i] += x[i]

    return f(ones(3))


@fault
def operation_without_result() -> Any:
    @op
    def f(x):
        y[i] = 2 * x[i]

    return f(ones(3))


@fault
def configuration_by_position() -> Any:
    @op
    def f(x, *, stride):
        y[i] = x[stride * i]
        return y

    return f(ones(3), 2)


@fault
def annotation_that_cannot_be_read() -> Any:
    @op
    def f(A: "float32[N K]"):
        y[i] += A[i, k]
        return y

    return f(ones(3, 2))


@fault
def type_that_does_not_exist() -> Any:
    @op
    def f(A):
        y: flaot32[N]
        y[i] += A[i, k]
        return y

    return f(ones(3, 2))


@fault
def extent_that_is_a_float() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        y: real[N / 2]
        y[i] = x[2 * i]
        return y

    return f(ones(3))


@fault
def module_global_number_as_index() -> Any:
    @op
    def f(x):
        y[i] = x[i * stride]
        return y

    return f(ones(6))


@fault
def rank_mismatch() -> Any:
    @op
    def matvec(A, x):
        y[i] += A[i, k, 0] * x[k]
        return y

    return matvec(ones(3, 4), ones(4))


@fault
def extent_mismatch() -> Any:
    @op
    def matmul(A, B):
        C[i, j] += A[i, k] * B[k, j]
        return C

    return matmul(ones(3, 4), ones(5, 6))


@fault
def recurrence() -> Any:
    @op
    def filtered(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[t] = s[t - 1] * 2 + x[t], t >= 1
        return s

    return filtered(ones(5))


@fault
def recurrence_for_some_sizes() -> Any:
    @op
    def delayed(x, delay):
        (N,) = x.shape
        (K,) = delay.shape
        s: real[N]
        s[i] = x[i], i < K
        s[i] = s[i - K] + x[i], i >= K
        return s

    return delayed(ones(5), ones(2))


@fault
def target_that_is_too_small() -> Any:
    @op
    def sums(x):
        s[0] = x[0]
        s[i + 1] = s[i] + x[i + 1]
        return s

    return sums(ones(5))


@fault
def missing_reduction() -> Any:
    @op
    def matmul(A, B):
        C[i, j] = A[i, k] * B[k, j]
        return C

    return matmul(ones(3, 4), ones(4, 6))


@fault
def reduction_that_binds_nothing() -> Any:
    @op
    def f(x):
        y[i] = x[i] / sum(x[i])
        return y

    return f(ones(3))


@fault
def assignment_that_is_not_one_to_one() -> Any:
    @op
    def f(x):
        y[i // 2] = x[i]
        return y

    return f(ones(4))


@fault
def assignment_that_is_not_one_to_one_for_these_sizes() -> Any:
    @op
    def f(x, width):
        N, M = x.shape
        W = width.shape[0]
        y = output(N * W + M)
        y[W * i + j] = x[i, j]
        return y

    return f(ones(3, 4), ones(2))


@fault
def unbounded_range() -> Any:
    @op
    def f(x):
        y[i] = x[i + j]
        return y

    return f(ones(4))


@fault
def negative_index() -> Any:
    @op
    def f(x):
        y[i - 2] = x[i]
        return y

    return f(ones(4))


@fault
def negative_extent() -> Any:
    @op
    def conv1d(x, w):
        y[i] += x[i + k] * w[k]
        return y

    return conv1d(ones(3), ones(6))


@fault
def condition_beside_a_reduction() -> Any:
    @op
    def f(E):
        Y[i, j] = E[i, j] / sum(E[i, l]), l <= i
        return Y

    return f(ones(4, 4))


@fault
def name_reused_in_a_loop() -> Any:
    @op
    def layers(x, first, second):
        for w in (first, second):
            h[n, o] += x[n, i] * w[i, o]
            x = h
        return x

    return layers(ones(5, 4), ones(4, 3), ones(3, 2))


@fault
def list_by_a_symbolic_size() -> Any:
    @op
    def f(x):
        return [1, 2, 3][x.shape[0]] * x

    return f(ones(4))


@fault
def unhashable_configuration() -> Any:
    @op
    def f(x, *, widths):
        return x

    return f(ones(4), widths=[1, 2])


@fault
def unsupported_dtype() -> Any:
    @op
    def f(x):
        return 2 * x

    return f(np.ones(3, complex))


@fault
def gradient_of_integers() -> Any:
    @op
    def f(n):
        y[()] += n[i]
        return float64(y)

    return tc.grad(f)(np.arange(3))


@fault
def data_index_out_of_range() -> Any:
    @op
    def lookup(table, ids):
        rows[n, d] = table[ids[n], d]
        return rows

    return lookup(ones(4, 2), np.array([0, 3, 7]))


@fault
def overlapping_arguments() -> Any:
    @cd
    def step(p, g):
        p -= g

    x = ones(4)
    return step(x[1:], x[:3])


@fault
def read_only_argument() -> Any:
    @cd
    def step(p, g):
        p -= g

    x = ones(3)
    x.flags.writeable = False
    return step(x, ones(3))


def wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*arguments: Any) -> Any:
        return function(*arguments)

    return inner


@fault
def decorator_not_directly_above_def() -> Any:
    @op
    @wrapping
    def f(x):
        return x

    return f(ones(3))


@fault
def source_not_available() -> Any:
    namespace: dict[str, Any] = {"op": op}
    exec("@op\ndef f(x):\n    return x\n", namespace)
    return namespace["f"](ones(3))


@fault
def several_faults_together() -> Any:
    @op
    def f(x, w):
        y[i] = x[i, 0]
        z[i] = w[i, j]
        t[i] = y[i] + Unknown
        return z, t

    return f(ones(4), ones(4, 3))


@fault
def stored_type() -> Any:
    @cd
    def accumulate(counts, x):
        counts[i] += x[i]

    return accumulate(np.zeros(3, np.int64), ones(3))


@fault
def product_of_index_variables() -> Any:
    @op
    def f(x):
        y[i] += x[i * j], j < 3
        return y

    return f(ones(4))


@fault
def index_of_a_floating_type() -> Any:
    @op
    def f(x, p):
        y[i] = x[p[i]]
        return y

    return f(ones(4), ones(4))


@fault
def gradient_of_several_elements() -> Any:
    @op
    def f(x):
        return 2 * x

    return tc.grad(f)(ones(4))


@fault
def gradient_of_code_in_place() -> Any:
    @cd
    def step(p, g):
        p -= g

    return tc.grad(step)(ones(4), ones(4))
