"""Conditions, numbers of rounds, indices in rounds and ways to leave a loop, with one fault each."""

from __future__ import annotations

from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import cd, op
from tests.errors.registry import registry

__all__ = ["FAULTS"]

FAULTS, fault = registry()
X = np.arange(1.0, 7.0)
C = np.array(0.5)


@fault
def condition_of_rank_1() -> Any:
    @op
    def f(x):
        while x > 0:
            x = x - 1
        return x

    return f(X)


@fault
def condition_that_differs_from_point_to_point() -> Any:
    @op
    def f(x):
        if x[i] > 0:
            x = x - 1
        return x

    return f(X)


@fault
def data_that_python_matches() -> Any:
    @op
    def f(x, c):
        match c > 0:
            case True:
                return x
        return -x

    return f(X, C)


@fault
def break_in_a_case_of_python() -> Any:
    @op
    def f(x: real[N], *, mode="first"):
        for t in range(N):
            x = x + t
            match mode:
                case "first":
                    break
        return x

    return f(X)


@fault
def condition_that_no_round_changes() -> Any:
    @op
    def f(x, c):
        while c > 0:
            x = 2 * x
        return x

    return f(X, C)


@fault
def rounds_by_a_float() -> Any:
    @op
    def f(x, c):
        for _ in range(c):
            x = 2 * x
        return x

    return f(X, C)


@fault
def more_rounds_than_64_bits_count() -> Any:
    @op
    def f(x, n):
        for _ in range(n):
            x = x + 1
        return x

    return f(X, 2**70)


@fault
def rounds_by_an_array() -> Any:
    @op
    def f(x):
        for _ in range(x):
            x = 2 * x
        return x

    return f(X)


@fault
def rounds_by_steps_of_none() -> Any:
    @op
    def f(x: real[N]):
        for _ in range(0, N, 0):
            x = 2 * x
        return x

    return f(X)


@fault
def rounds_over_tensors_of_two_lengths() -> Any:
    @op
    def f(x, y):
        s = 0.0
        for a, b in zip(x, y, strict=True):
            s = s + a * b
        return s

    return f(X, X[:3])


@fault
def rounds_over_a_list_and_a_tensor() -> Any:
    @op
    def f(x, *, weights=(1, 2)):
        s = 0.0
        for w, a in zip(weights, x, strict=True):
            s = s + w * a
        return s

    return f(X)


@fault
def index_of_a_round_out_of_range() -> Any:
    @op
    def f(x: real[N]):
        s = 0.0
        for t in range(N):
            s = s + x[t + 1]
        return s

    return f(X)


@fault
def index_of_a_round_out_of_range_in_this_call() -> Any:
    @op
    def f(x: real[N], n):
        s = 0.0
        for t in range(n):
            s = s + x[t]
        return s

    return f(X, 8)


@fault
def index_of_a_round_that_data_know_out_of_range() -> Any:
    @op
    def f(x: real[N], n: int64):
        s = 0.0
        for t in range(n):
            s = s + x[t]
        return s

    return f(X, np.int64(8))


@fault
def data_index_of_a_round_out_of_range() -> Any:
    @cd
    def f(x: real[N], k: int64[M]):
        for t in range(M):
            x[k[t]] += 1

    return f(X.copy(), np.array([0, 5, 6]))


@op
def of_chosen(x: real[N], k):
    s = 0.0
    for t in range(1, N):
        s = s + x[k[t]] * x[k[t]]
    return s


BAD = np.array([9, 0, 1, 6, 2, 6])


@fault
def data_index_of_a_round_that_does_not_count_from_0() -> Any:
    return of_chosen(X, BAD)


@fault
def data_index_on_the_way_back() -> Any:
    return tc.grad(of_chosen)(X, BAD)


@fault
def data_index_on_the_way_back_inside_another_function() -> Any:
    @op
    def f(x, k):
        return tc.grad(of_chosen)(x, k) * 2

    return f(X, BAD)


@fault
def data_index_of_a_round_of_a_segment() -> Any:
    @op
    def f(x, k):
        s = 1.0
        for t in tc.loop(6, checkpoint_every=2):
            s = s * x[k[t]]
        return s

    return tc.grad(f)(X, np.roll(BAD, -1))


@fault
def break_in_another_block() -> Any:
    @op
    def f(x: real[N]):
        for _ in range(N):
            with tc.config():
                break
        return x

    return f(X)


@fault
def return_in_another_block() -> Any:
    @op
    def f(x: real[N]):
        for _ in range(N):
            with tc.config():
                return x
        return x

    return f(X)


@fault
def break_by_data_of_a_loop_of_python() -> Any:
    @op
    def f(x):
        for k in (1, 2):
            if x[0] > 0:
                break
            x = x + k
        return x

    return f(X)


@fault
def else_of_a_loop() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            if x[t] > 3:
                break
        else:
            x = 0 * x
        return x

    return f(X)


@fault
def number_of_a_round_for_two_names() -> Any:
    @op
    def f(x):
        s = x[0]
        for a, b in tc.loop(0):
            s = s + a * b
        return s

    return f(X)


@fault
def rounds_over_a_part_that_ends_where_a_loop_says() -> Any:
    @op
    def f(x, n):
        while n > 3:
            n -= 1
        s = 0.0
        for a in x[:n]:
            s = s + a
        return s

    return f(X, 5)


@fault
def largest_of_a_part_that_a_mask_chooses() -> Any:
    @op
    def f(x):
        return max(x[x > 0.5])

    return f(X)


@fault
def rounds_over_a_list_and_a_shorter_tensor() -> Any:
    @op
    def f(x):
        s = 0.0
        for w, a in zip([1.0, 2.0], x, strict=False):
            s = s + w * a
        return s

    return f(X[:1])
