"""Loops and branches that run with one fault each; the golden messages show how users see them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import cd, op

__all__ = ["FAULTS"]

FAULTS: dict[str, Callable[[], Any]] = {}
X = np.arange(1.0, 7.0)
C = np.array(0.5)


def fault(function: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that raises, under its name."""
    FAULTS[function.__name__] = function
    return function


# -- what rounds carry


@fault
def round_that_changes_a_shape() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            x = x[1:]
        return x

    return f(X)


@fault
def round_that_changes_a_shape_in_this_call() -> Any:
    @op
    def f(x: real[N], y: real[M], n: int64):
        for _ in range(n):
            x = 2 * y
        return x

    return f(X, X[:3], np.int64(1))


@fault
def round_that_changes_a_rank() -> Any:
    @op
    def f(x: real[N]):
        for _ in range(N):
            x = sum(x)
        return x

    return f(X)


@fault
def round_that_changes_a_type() -> Any:
    @op
    def f(x: real[N]):
        for _ in range(N):
            x = float32(x)
        return x

    return f(X)


@fault
def round_that_carries_a_local_definition() -> Any:
    @op
    def f(x: real[N]):
        z = 2 * x[i]
        for _ in range(N):
            z = z + x[i]
        y[i] = z
        return y

    return f(X)


@fault
def round_that_adds_up_what_is_not_there() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            q[i] += t * x[i]
        return x

    return f(X)


@fault
def round_that_changes_a_list() -> Any:
    @op
    def f(x: real[N]):
        ys = []
        for t in range(N):
            ys.append(x[t])
        return ys[0]

    return f(X)


@fault
def round_that_changes_an_attribute() -> Any:
    model = SimpleNamespace()

    @op
    def f(x: real[N]):
        for t in range(N):
            model.h = x[t]
        return x

    return f(X)


@fault
def round_that_changes_a_list_around() -> Any:
    seen: list[Any] = []

    @op
    def f(x: real[N]):
        for t in range(N):
            seen.append(x[t])
        return x

    return f(X)


@fault
def round_that_deletes_what_is_bound_before() -> Any:
    @op
    def f(x: real[N]):
        s = 0.0
        for t in range(N):
            s = s + x[t]
            del s
        return x

    return f(X)


@fault
def arm_that_deletes_what_is_bound_before() -> Any:
    @op
    def f(x, c):
        y = 2 * x
        if c > 0:
            del y
        return x

    return f(X, C)


@fault
def round_that_deletes_a_part_of_a_list() -> Any:
    @op
    def f(x: real[N]):
        parts = [x, 2 * x]
        for t in range(N):
            x = x + t
            del parts[0]
        return x

    return f(X)


@fault
def round_that_deletes_a_part_of_a_list_around() -> Any:
    seen = [1, 2]

    @op
    def f(x: real[N]):
        for t in range(N):
            x = x + t
            del seen[0]
        return x

    return f(X)


@fault
def part_of_a_tensor_that_is_deleted() -> Any:
    @op
    def f(x):
        del x[0]
        return x

    return f(X)


@fault
def round_that_changes_an_attribute_in_passing() -> Any:
    model = SimpleNamespace()

    @op
    def f(x: real[N]):
        for t in range(N):
            model.h, y = x[t], t
        return x

    return f(X)


@fault
def round_that_binds_a_global_name() -> Any:
    @op
    def f(x: real[N]):
        global LAST
        for t in range(N):
            LAST = x[t]
        return x

    return f(X)


@fault
def round_whose_number_is_a_global_name() -> Any:
    @op
    def f(x: real[N]):
        global LAST
        for t in range(N):
            for LAST in range(t):
                x = x + t
        return x

    return f(X)


def kept(value: Any) -> Any:
    global LAST
    LAST = value
    return value


@fault
def plain_function_that_binds_a_global_name() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            x = x + kept(x[t])
        return x

    return f(X)


@fault
def round_that_binds_a_name_around() -> Any:
    last = None

    @op
    def f(x: real[N]):
        nonlocal last
        for t in range(N):
            last = x[t]
        return x

    return f(X)


@fault
def parts_of_a_round_that_are_too_many() -> Any:
    @op
    def f(x):
        s = 0.0
        for a, b in x:
            s = s + a * b
        return s

    return f(X.reshape(2, 3))


@fault
def cell_that_is_unpacked() -> Any:
    @op
    def f(x):
        s = 0.0
        for a, b in x:
            s = s + a * b
        return s

    return f(X)


def collected(into: list[Any], value: Any) -> None:
    into.append(value)


@fault
def round_that_has_a_function_change_a_list() -> Any:
    @op
    def f(x: real[N]):
        ys = [x]
        for t in range(N):
            collected(ys, x[t])
        return ys[0]

    return f(X)


@fault
def round_that_adds_to_a_list() -> Any:
    @op
    def f(x: real[N]):
        ys = []
        for t in range(N):
            ys += [x[t]]
        return ys[0]

    return f(X)


@fault
def round_that_sets_an_attribute() -> Any:
    model = SimpleNamespace()

    @op
    def f(x: real[N]):
        for t in range(N):
            setattr(model, "h", x[t])  # noqa: B010  # what is refused
        return x

    return f(X)


@fault
def round_that_prints() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            print(x[t])
        return x

    return f(X)


@fault
def round_as_an_integer_of_python() -> Any:
    @op
    def f(x: real[N], *, weights=(1, 2, 3)):
        for t in range(N):
            x = weights[t] * x
        return x

    return f(X)


# -- after loops


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


# -- branches


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


# -- conditions and numbers of rounds


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


# -- leaving loops


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


# -- checks, and functions that are not decorated


@fault
def assertion_of_a_round() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            assert x[t] < 3, f"too much in round {t}"
        return x

    return f(X)


@fault
def raised_in_a_round_of_a_round() -> Any:
    @op
    def f(x: real[N]):
        s = 0.0
        for t in range(N):
            for k in range(t):
                s = s + x[k]
                if s > 7:
                    raise ValueError("too much")
        return s

    return f(X)


@fault
def nan_of_a_round() -> Any:
    @op
    def f(x: real[N]):
        s = 0.0
        for t in range(N):
            s = s + sqrt(3 - x[t])
        return s

    with tc.config(check="nan,bounds"):
        return f(X)


def halved(x: Any) -> Any:
    """A plain function, whose condition Python asks."""
    while x.sum() > 1:
        x = x / 2
    return x


@fault
def branch_of_a_plain_function() -> Any:
    @op
    def f(x):
        return halved(x)

    return f(X)


@fault
def loop_of_a_plain_function() -> Any:
    def total(x: Any) -> Any:
        s = 0.0
        for t in range(x.shape[0]):
            s = s + x[t]
        return s

    return tc.grad(total)(X)


@fault
def more_rounds_than_python_unrolls() -> Any:
    @op
    def f(x):
        for k in range(10_001):
            x = x + k
        return x

    return f(X)
