"""What rounds carry, change and hand out, with one fault each; the golden messages show how users see them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import op
from tests.errors.registry import registry

__all__ = ["FAULTS"]

FAULTS, fault = registry()
X = np.arange(1.0, 7.0)
C = np.array(0.5)


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
def round_that_changes_which_axes_are_input() -> Any:
    @op
    def f(h: real[N, M], w):
        for _ in range(N):
            h = h @ w
        return h

    return f(tc.tensor(np.ones((2, 3))), tc.param("w", o=3, i=3))


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


@fault
def round_that_stores_by_a_mask() -> Any:
    @op
    def f(x: real[N], n: int64):
        y = 2 * x
        for _ in range(n):
            y[(y > 0.5) & (x > 0)] = x
        return y

    return f(X, np.int64(2))


@fault
def round_that_calls_a_plain_function_with_a_loop() -> Any:
    @op
    def f(x: real[N], n: int64):
        def inner(k):
            r = 0.0
            for u in range(k):
                r = r + x[u]
            return r

        s = 0.0
        for t in range(n):
            s = s + inner(t)
        return s

    return f(X, np.int64(2))


@fault
def round_that_slices_up_to_data() -> Any:
    @op
    def f(x: real[N], p: int64[N]):
        s = 0.0
        for t in range(N):
            k = p[t]
            s = s + sum(x[:k])
        return s

    return f(X, np.arange(6))


@fault
def round_that_stores_into_a_list_of_a_list() -> Any:
    @op
    def f(x: real[N], n: int64):
        s = [[x[0], x[1]], [x[2], x[3]]]
        for _ in range(n):
            s[0][1] = s[1][0] + s[0][1]
        return s[0][1]

    return f(X, np.int64(2))


@fault
def loop_at_points_that_a_condition_chooses() -> Any:
    @op
    def root(a):
        x = a
        while x * x - a > 1e-9:
            x = 0.5 * (x + a / x)
        return x

    @op
    def f(x):
        y[n] = root(x[n]) if x[n] > 0 else 0.0
        return y

    return f(X)


@fault
def loop_at_points_that_gives_a_tensor() -> Any:
    @op
    def powers(a):
        found: real[3]
        for k in tc.loop(3):
            found[k] = a**k
        return found

    @op
    def f(x):
        y[n] = powers(x[n])
        return y

    return f(X)


@fault
def round_with_an_integer_power_of_a_negated_number() -> Any:
    @op
    def f(x: real[N]):
        for t in range(N):
            x = x + 2**-t
        return x

    return f(X)


@fault
def open_extent_at_a_carried_number() -> Any:
    @op
    def f(x: real[N]):
        kept: real[K]
        k = 0
        for t in range(N):
            if x[t] > 0:
                kept[k] = x[t]
                k += 1
        return kept

    return f(X)
