"""What counts as a change of a function's surroundings, and what does not."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

scale = 2.0
r = 10.0


@op
def shifted_by_globals(A: Any) -> Any:
    B[i] = scale * A[i] + r
    return B


@op
def windowed(x: Any) -> Any:
    y[i] += x[i + k], k < 1
    return y


def test_index_letters_of_the_module_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    windowed(np.ones(3))
    staged = windowed.cache_info().misses
    for number, name in enumerate(["i", "k", "y", "i"]):
        monkeypatch.setitem(globals(), name, number)
        np.testing.assert_array_equal(windowed(np.arange(3.0)), np.arange(3.0))
    assert windowed.cache_info().misses == staged


def test_a_letter_that_is_no_index_of_the_statement_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_array_equal(shifted_by_globals(np.ones(2)), [12.0, 12.0])
    monkeypatch.setitem(globals(), "r", 20.0)
    monkeypatch.setitem(globals(), "scale", 3.0)
    np.testing.assert_array_equal(shifted_by_globals(np.ones(2)), [23.0, 23.0])


def test_arrays_in_a_list_are_inputs_until_replaced() -> None:
    weights = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]

    @op
    def weighted(x: Any) -> Any:
        z[i] = x[i] * 1.0
        for weight in weights:
            z[i] *= weight[i]
        return z

    np.testing.assert_array_equal(weighted(np.ones(2)), [3.0, 8.0])
    staged = weighted.cache_info().misses
    weights[0][:] = 10.0
    np.testing.assert_array_equal(weighted(np.ones(2)), [30.0, 40.0])
    assert weighted.cache_info().misses == staged
    weights[1] = np.array([1.0, 1.0])
    np.testing.assert_array_equal(weighted(np.ones(2)), [10.0, 10.0])
    weights.append(np.array([2.0, 2.0]))
    np.testing.assert_array_equal(weighted(np.ones(2)), [20.0, 20.0])


def test_a_changed_dictionary_stages_again() -> None:
    settings = {"scale": 2.0}

    @op
    def scaled(x: Any) -> Any:
        z[i] = settings["scale"] * x[i]
        return z

    np.testing.assert_array_equal(scaled(np.ones(2)), [2.0, 2.0])
    settings["scale"] = 5.0
    np.testing.assert_array_equal(scaled(np.ones(2)), [5.0, 5.0])


def test_gradients_of_a_lambda_over_a_list_of_arrays() -> None:
    arrays = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]

    @op
    def inner_product(a: Any, b: Any) -> Any:
        t[()] += a[i] * b[i]
        return t

    gradient = tc.grad(lambda x: inner_product(x, arrays[1]))
    np.testing.assert_array_equal(gradient(arrays[0]), arrays[1])
    np.testing.assert_array_equal(gradient(arrays[0]), arrays[1])


gain = 2.0
limits = {"low": 0.0}


class Settings:
    offset = 1.0


settings = Settings()


def amplified(x: Any) -> Any:
    return x * gain + settings.offset


def bounded(x: Any) -> Any:
    return max_of(amplified(x), limits["low"])


def max_of(x: Any, low: float) -> Any:
    def kept(v: Any) -> Any:
        return v * (v > low)

    return kept(x)


@op
def through_functions(x: Any) -> Any:
    return bounded(x)


def loss_through_functions(x: Any) -> Any:
    return bounded(x).sum()


def test_what_plain_functions_read_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1.0, -2.0])
    gradient = tc.grad(loss_through_functions)
    np.testing.assert_array_equal(through_functions(x), [3.0, 0.0])
    np.testing.assert_array_equal(gradient(x), [2.0, 0.0])
    staged = through_functions.cache_info().misses
    np.testing.assert_array_equal(through_functions(2 * x), [5.0, 0.0])
    assert through_functions.cache_info().misses == staged
    monkeypatch.setitem(globals(), "gain", 3.0)
    np.testing.assert_array_equal(through_functions(x), [4.0, 0.0])
    np.testing.assert_array_equal(gradient(x), [3.0, 0.0])
    monkeypatch.setattr(settings, "offset", 5.0, raising=False)
    np.testing.assert_array_equal(through_functions(x), [8.0, 0.0])
    monkeypatch.setitem(limits, "low", -10.0)
    np.testing.assert_array_equal(through_functions(x), [8.0, -1.0])
    np.testing.assert_array_equal(gradient(x), [3.0, 3.0])
    monkeypatch.setitem(globals(), "max_of", lambda x, low: x)
    np.testing.assert_array_equal(through_functions(x - 10), [-22.0, -31.0])
    monkeypatch.setattr(amplified, "__code__", (lambda x: x * 7.0).__code__)
    np.testing.assert_array_equal(through_functions(x), [7.0, -14.0])


def test_what_methods_and_callable_objects_read_is_read() -> None:
    class Scaling:
        def __init__(self) -> None:
            self.factor = 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.factor

        def twice(self, x: Any) -> Any:
            return self(self(x))

    scaling = Scaling()

    @op
    def f(x: Any) -> Any:
        return scaling(x) + scaling.twice(x)

    @op
    def by_configuration(x: Any, *, function: Any) -> Any:
        return function(x)

    np.testing.assert_array_equal(f(np.ones(1)), [6.0])
    np.testing.assert_array_equal(by_configuration(np.ones(1), function=scaling), [2.0])
    np.testing.assert_array_equal(by_configuration(np.ones(1), function=functools.partial(scaling)), [2.0])
    scaling.factor = 3.0
    np.testing.assert_array_equal(f(np.ones(1)), [12.0])
    np.testing.assert_array_equal(by_configuration(np.ones(1), function=scaling), [3.0])


table = np.array([1.0, 2.0])


def looked_up(x: Any) -> Any:
    return x * table


def test_arrays_that_plain_functions_read_are_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    @op
    def f(x: Any) -> Any:
        return looked_up(x)

    monkeypatch.setitem(globals(), "table", np.array([1.0, 2.0]))
    np.testing.assert_array_equal(f(np.ones(2)), [1.0, 2.0])
    table[0] = 5.0
    np.testing.assert_array_equal(f(np.ones(2)), [5.0, 2.0])
    monkeypatch.setitem(globals(), "table", np.array([7.0, 8.0]))
    np.testing.assert_array_equal(f(np.ones(2)), [7.0, 8.0])
    assert f.cache_info().programs == 1  # staged, or from disk


HELD = np.ones(3)


def largest() -> float:
    return HELD.max()


@op
def by_a_method(x):
    return x * HELD.sum()


@op
def by_a_branch(x):
    return x * 10 if HELD[0] > 1 else x


@op
def by_a_view(x):
    return x @ HELD.reshape(1, 3).T


@op
def by_a_helper(x):
    return x * largest()


@op
def by_a_length(x):
    return x * len(HELD)


@op
def by_a_method_and_a_statement(x):
    y[i] = x[i] * HELD[i] / HELD.sum()
    return y


@op
def by_a_statement(x):
    y[i] = x[i] * HELD[i]
    return y


@op
def by_a_function_beside_arithmetic(x):
    return x * HELD + np.mean(HELD)


@op
def by_an_item_beside_arithmetic(x):
    return x * HELD + HELD[1]


@op
def by_an_item_beside_a_statement(x):
    y[i] = x[i] * HELD[i]
    return y + float(HELD[0])


@op
def by_a_branch_beside_arithmetic(x):
    return x * HELD * (2.0 if HELD[0] > 1 else 3.0)


@op
def by_rounds_beside_arithmetic(x):
    s = 0.0
    for held in HELD:
        s = s + held
    return x * HELD + s


def less_mean(x: Any, held: Any) -> Any:
    return (x - held) * np.mean(held)


@op
def by_an_argument_of_a_helper(x):
    return less_mean(x, HELD)


@op
def by_another_name(x):
    held = HELD
    return x * held + held[1]


@op
def by_an_extent(x):
    y: real[len(HELD)]
    y[i] = x[i] * HELD[i]
    return y * HELD


def less(x: Any, held: Any) -> Any:
    return x - held


@op
def by_arithmetic(x):
    return less(x, HELD) * HELD + np.where(x > 2, HELD, 0)


READERS = {
    by_a_function_beside_arithmetic: lambda x, held: x * held + np.mean(held),
    by_an_item_beside_arithmetic: lambda x, held: x * held + held[1],
    by_an_item_beside_a_statement: lambda x, held: x * held + held[0],
    by_a_branch_beside_arithmetic: lambda x, held: x * held * (2.0 if held[0] > 1 else 3.0),
    by_rounds_beside_arithmetic: lambda x, held: x * held + sum(held),
    by_an_argument_of_a_helper: lambda x, held: (x - held) * np.mean(held),
    by_another_name: lambda x, held: x * held + held[1],
    by_an_extent: lambda x, held: x * held * held,
    by_arithmetic: lambda x, held: (x - held) * held + np.where(x > 2, held, 0),
    by_a_method: lambda x, held: x * held.sum(),
    by_a_branch: lambda x, held: x * 10 if held[0] > 1 else x,
    by_a_view: lambda x, held: x @ held.reshape(-1, 1),
    by_a_helper: lambda x, held: x * held.max(),
    by_a_length: lambda x, held: x * len(held),
    by_a_method_and_a_statement: lambda x, held: x * held / held.sum(),
    by_a_statement: lambda x, held: x * held,
}


@pytest.mark.parametrize("function", READERS, ids=lambda function: function.__name__)
def test_what_python_reads_of_an_array_is_what_it_holds_now(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(1.0, 4.0)
    for held in (np.ones(3), np.array([3.0, np.nan, 5.0]), np.array([7.0, 8.0, 9.0])):
        monkeypatch.setitem(globals(), "HELD", held)
        for first in (held[0], 2.0):
            held[0] = first
            for _ in range(2):
                np.testing.assert_array_equal(function.interpret(x), READERS[function](x, held))
    alone = function in (by_a_statement, by_arithmetic)
    assert function.cache_info().programs == (1 if alone else function.cache_info().misses)


def test_two_names_of_one_array_may_become_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ALSO_HELD", HELD)

    @op
    def f(x):
        return x * HELD + ALSO_HELD

    x = np.arange(3.0)
    np.testing.assert_array_equal(f.interpret(x), x * HELD + HELD)
    monkeypatch.setitem(globals(), "ALSO_HELD", HELD + 1)
    np.testing.assert_array_equal(f.interpret(x), x * HELD + (HELD + 1))


def test_globals_of_the_name_of_a_parameter_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(given: Any) -> Any:
        return sum(given * given for _ in range(1)).sum()

    @op
    def f(x):
        return plain(x)

    for held in (np.ones(3), np.zeros(3), 5):
        monkeypatch.setitem(globals(), "given", held)
        assert f.interpret(np.ones(2)) == 2.0
    assert f.cache_info().programs == 1


class Scaling:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @op
    def whole(self, x: Any) -> Any:
        return self.factor * x

    def plain(self, x: Any) -> Any:
        return self.factor * x


class Holder:
    def __init__(self, held: Scaling) -> None:
        self.held = held

    def plain(self, x: Any) -> Any:
        return self.held.plain(x)


def test_the_object_whose_method_a_plain_function_calls_is_read() -> None:
    def gradients(one: Any, holder: Holder) -> list[float]:
        losses = (
            lambda x: one.whole(x).sum(),
            lambda x: one.plain(x).sum(),
            lambda x: holder.plain(x).sum(),
            lambda x: holder.held.whole(x).sum(),
        )
        return [tc.grad(loss)(np.ones(1))[0] for loss in losses]

    first, second = Scaling(2.0), Scaling(0.5)
    holder = Holder(first)
    assert gradients(first, holder) == [2.0] * 4
    holder.held = second
    assert gradients(second, holder) == [0.5] * 4
    assert gradients(first, Holder(first)) == [2.0] * 4
