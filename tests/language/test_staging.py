"""Staging: what runs once, what is part of the key, what one program serves."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

# What a notebook may have left behind: values of index letters, and an array of the target's name.
i = 3
j = "text"
C = np.full((2, 2), 7.0)
offset = 2
weights = np.array([1.0, 2.0, 3.0])
SETTINGS = {"power": 2}


def helper(x: Any) -> Any:
    return 3 * x


@op
def product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def weighted(x):
    y[i] = x[i] * weights[i]
    return y


@op
def with_settings(x):
    return x ** SETTINGS["power"]


@op
def tripled(x):
    return helper(x)


# -- staging runs ordinary Python once -----------------------------------------------------------------------


def test_the_function_runs_once_per_key() -> None:
    runs: list[str] = []

    @op
    def f(x, *, mode: str = "a"):
        runs.append(mode)
        return 2 * x

    for n in (3, 5, 0, 3):
        f.interpret(np.ones(n))
    f.interpret(np.ones(3), mode="b")
    f.interpret(np.ones(3, np.float32))
    f.interpret(np.ones((2, 2)))
    assert runs == ["a", "b", "a", "a"]


def test_python_conditions_loops_and_helpers_run_while_staging() -> None:
    def scale(x: Any, factor: float) -> Any:
        return x * factor

    @op
    def f(x, *, layers: int, squared: bool):
        parts = []
        for layer in range(layers):
            x = scale(x, 2.0)
            if squared:
                x = x * x
            else:
                y[n] = x[n] + layer
                x = y
                del y
            parts.append(x)
        while len(parts) < 4:
            parts.append(x)
        return tuple(parts)

    found = f.interpret(np.ones(2), layers=2, squared=True)
    assert [part[0] for part in found] == [4, 64, 64, 64]


def test_ops_of_ops_become_one_program() -> None:
    @op
    def twice(x):
        y[i] = 2 * x[i]
        return y

    @op
    def f(x):
        z[i] = twice(x)[i] + twice(twice(x))[i]
        return z

    x = np.arange(3.0)
    np.testing.assert_array_equal(f(x), 6 * x)
    assert f.cache_info().kernels == 1
    assert twice.cache_info().programs == 0


@pytest.mark.usefixtures("own_cache")
def test_sizes_stay_symbolic_so_one_kernel_serves_every_shape() -> None:
    @op
    def f(A, B):
        D[i, j] += A[i, k] * B[k, j]
        return D

    for n, k, m in ((2, 3, 4), (1, 1, 1), (0, 2, 3), (3, 0, 2), (7, 5, 6)):
        A, B = np.random.default_rng(n).random((n, k)), np.random.default_rng(m).random((k, m))
        np.testing.assert_allclose(f(A, B), A @ B)
    info = f.cache_info()
    assert (info.programs, info.kernels, info.hits, info.misses) == (1, 1, 4, 1)


def test_python_control_flow_on_a_symbolic_size_is_an_error_that_says_so() -> None:
    @op
    def f(x):
        return [1, 2, 3][x.shape[0]] * x

    with pytest.raises(tc.TcdslError, match="not known while the function is staged"):
        f.interpret(np.ones(3))


def test_stores_into_dictionaries_and_lists_are_ordinary_python() -> None:
    seen: dict[str, int] = {}
    items = [0, 0]

    @op
    def f(x):
        seen["runs"] = seen.get("runs", 0) + 1
        items[1] = seen["runs"]
        items[0] += 2
        cells = [None] * 2
        cells[0] = x
        cells[1] = x + 1
        return cells[0] + cells[1]

    np.testing.assert_array_equal(f.interpret(np.ones(2)), [3, 3])
    assert seen == {"runs": 1}
    assert items == [2, 1]


def test_arrays_and_letters_of_the_notebook_do_not_matter_to_targets_and_indices() -> None:
    global C
    A = np.arange(4.0).reshape(2, 2)
    kept = C.copy()
    np.testing.assert_array_equal(product.interpret(A, A), A @ A)
    np.testing.assert_array_equal(product(A, A), A @ A)
    np.testing.assert_array_equal(C, kept)
    programs = product.cache_info().programs
    try:
        C = "another value"
        np.testing.assert_array_equal(product.interpret(A, A), A @ A)
        # The name is no part of the key.
        assert product.cache_info().programs == programs
    finally:
        C = kept


def test_an_array_of_the_targets_name_in_an_enclosing_function_does_not_matter() -> None:
    y = np.full(3, 100.0)
    k = 5

    @op
    def f(x):
        y[k] += x[k]
        return y

    np.testing.assert_array_equal(f.interpret(np.ones(3)), [1, 1, 1])
    assert y.tolist() == [100] * 3
    assert k == 5


# -- the key -------------------------------------------------------------------------------------------------


def test_configuration_is_part_of_the_key_by_type_and_value() -> None:
    @op
    def f(x, *, flag=None):
        return x + (10 if flag is True else 20 if flag == 1 else 30)

    x = np.zeros(1)
    assert [f.interpret(x, flag=flag)[0] for flag in (True, 1, "1", True)] == [10, 20, 30, 10]
    assert f.cache_info().programs == 3


def test_ranks_and_types_are_part_of_the_key() -> None:
    @op
    def f(x):
        return x + 1

    for array in (np.ones(2), np.ones((2, 2)), np.ones((2, 2), np.float32), np.ones(2, np.int8), 1.0, 1, True):
        f.interpret(array)
    assert f.cache_info().programs == 7


def test_globals_that_staging_read_are_part_of_the_key() -> None:
    global helper
    original = helper
    try:
        assert tripled.interpret(np.ones(1))[0] == 3

        def helper(x: Any) -> Any:
            return 4 * x

        # What a re-run notebook cell does: the name holds another function now.
        assert tripled.interpret(np.ones(1))[0] == 4
    finally:
        helper = original
    assert tripled.interpret(np.ones(1))[0] == 3


def test_a_changed_dictionary_of_the_module_takes_effect() -> None:
    try:
        assert with_settings.interpret(np.full(1, 3.0))[0] == 9
        SETTINGS["power"] = 3
        assert with_settings.interpret(np.full(1, 3.0))[0] == 27
    finally:
        SETTINGS["power"] = 2


def test_a_changed_helper_of_a_helper_takes_effect() -> None:
    def inner(x: Any) -> Any:
        return 2 * x

    @op
    def called(x):
        return inner(x)

    @op
    def f(x):
        return called(x) + 1

    assert f.interpret(np.ones(1))[0] == 3

    def inner(x: Any) -> Any:  # noqa: F811
        return 5 * x

    assert f.interpret(np.ones(1))[0] == 6


def test_closure_values_are_part_of_the_key() -> None:
    def make(factor: Any) -> Any:
        @op
        def f(x):
            return factor * x

        return f

    double, triple = make(2.0), make(3)
    assert (double.interpret(np.ones(1))[0], triple.interpret(np.ones(1))[0]) == (2, 3)
    factor = 2

    @op
    def g(x):
        y[i] = factor * x[i]
        return y

    for factor in (2, 3, 2):
        assert g.interpret(np.ones(1))[0] == factor
    assert g.cache_info().programs == 2


def test_a_global_array_is_an_input_and_no_constant() -> None:
    global weights
    kept = weights
    x = np.ones(3)
    try:
        np.testing.assert_array_equal(weighted(x), [1, 2, 3])
        weights[0] = 10
        np.testing.assert_array_equal(weighted(x), [10, 2, 3])
        weights = np.array([4.0, 5.0, 6.0, 7.0])
        np.testing.assert_array_equal(weighted(np.ones(4)), [4, 5, 6, 7])
        assert weighted.cache_info().programs == 1
        weights = np.array([4, 5, 6])
        np.testing.assert_array_equal(weighted(x), [4, 5, 6])
        assert weighted.cache_info().programs == 2
    finally:
        weights = kept
        weights[0] = 1


class Mode(Enum):
    PLUS = 1
    MINUS = -1


@dataclass(frozen=True)
class Options:
    power: int
    mode: Mode = Mode.PLUS


def test_any_hashable_configuration_is_taken() -> None:
    @op
    def f(x, *, options, names=()):
        return options.mode.value * x**options.power + len(names)

    x = np.full(1, 3.0)
    assert f.interpret(x, options=Options(2))[0] == 9
    assert f.interpret(x, options=Options(2), names=("a", "b"))[0] == 11
    assert f.interpret(x, options=Options(2, Mode.MINUS))[0] == -9
    assert f.interpret(x, options=Options(2))[0] == 9
    assert f.cache_info().programs == 3


# -- numbers: run-time values or part of the key -------------------------------------------------------------


@pytest.mark.usefixtures("own_cache")
def test_a_schedule_of_floats_compiles_once() -> None:
    @op
    def positional(p, rate):
        return p - rate * p

    @op
    def keyword(p, *, rate=0.5):
        return p - rate * p

    for rate in (0.0, 0.25, 0.5, 1e-3, float("inf")):
        with np.errstate(invalid="ignore"):
            wanted = np.ones(2) - rate
        np.testing.assert_array_equal(positional(np.ones(2), rate), wanted)
        np.testing.assert_array_equal(keyword(np.ones(2), rate=rate), wanted)
    np.testing.assert_array_equal(keyword(np.ones(2)), [0.5, 0.5])
    for function in (positional, keyword):
        assert (function.cache_info().programs, function.cache_info().kernels) == (1, 1)


def test_a_float_that_python_branches_on_becomes_part_of_the_key() -> None:
    @op
    def f(x, momentum, *, decay=0.0):
        y = x * momentum if momentum else x
        return y - decay * y if decay > 0 else y

    for momentum, decay in ((0.5, 0.0), (0.0, 0.5), (0.5, 0.25), (0.5, 0.0)):
        wanted = (momentum or 1) * (1 - decay)
        assert f.interpret(np.ones(1), momentum, decay=decay)[0] == wanted
    assert f.cache_info().programs == 3


@pytest.mark.parametrize("place", ["index", "size", "range", "branch", "loop"])
def test_an_integer_used_in_an_index_a_size_or_a_range_becomes_part_of_the_key(place: str) -> None:
    @op
    def f(x, n, *, place):
        if place == "index":
            y[i] = x[n * i]
        elif place == "size":
            y = tc.output(n)
            y[i] = x[i]
        elif place == "range":
            y[i] = sum(x[i + k] for k in range(n))
        elif place == "branch":
            y = x if n > 2 else 2 * x
        else:
            y = x
            for _ in range(n):
                y = y + 1
        return y

    x = np.arange(6.0)
    for n in (1, 3, 1):
        wanted = {
            "index": x[::n],
            "size": x[:n],
            "range": np.convolve(x, np.ones(n), "valid"),
            "branch": x if n > 2 else 2 * x,
            "loop": x + n,
        }[place]
        np.testing.assert_array_equal(f.interpret(x, n, place=place), wanted)
    assert f.cache_info().programs == (1 if place in ("branch", "loop") else 2)  # these run


def test_an_integer_used_in_arithmetic_alone_is_a_run_time_number() -> None:
    @op
    def f(x, n, *, m):
        y[i] = n * x[i] + m
        return y

    for n in range(1, 5):
        assert f(np.ones(1), n, m=2 * n)[0] == 3 * n
    assert (f.cache_info().programs, f.cache_info().kernels) == (1, 1)


def test_calls_from_several_threads_share_one_program() -> None:
    @op
    def f(x):
        y[i] = 2 * x[i]
        return y

    found: list[Any] = []
    start = threading.Barrier(4)

    def call(n: int) -> None:
        start.wait()
        found.extend(np.array_equal(f(np.full(n, float(n))), np.full(n, 2.0 * n)) for _ in range(20))

    workers = [threading.Thread(target=call, args=(n,)) for n in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 80
    assert (f.cache_info().programs, f.cache_info().kernels) == (1, 1)


def test_cache_info_counts_programs_kernels_and_calls() -> None:
    @op
    def f(x, *, mode="a"):
        return x + 1

    f.interpret(np.ones(2))
    f.interpret(np.ones(3))
    f.interpret(np.ones(3), mode="b")
    info = f.cache_info()
    assert (info.programs, info.kernels, info.hits, info.misses) == (2, 0, 1, 2)
    assert info.keys == ("f(x: float64[_], mode='a')", "f(x: float64[_], mode='b')")
    assert str(info).splitlines()[0] == "programs=2 kernels=0 (from disk: 0) hits=1 misses=2"
    assert [line.split("  ")[0] for line in str(info).splitlines()[3:]] == list(info.keys)


def test_cache_info_shows_what_each_program_depends_on() -> None:
    @op
    def g(x, count, rate):
        y[i] = x[i * count] * rate
        return y

    g.interpret(np.ones((4,), np.float32), 2, 0.5)
    assert g.cache_info().keys == ("g(x: float32[_], count=2, rate: float)",)


def test_the_form_for_tools_imports_index_letters_and_declares_targets_by_calls() -> None:
    from tcdsl import output
    from tcdsl.indices import i, j, k

    @op
    def matmul(A, B):
        C = output()
        C[i, j] += A[i, k] * B[k, j]
        return C

    @op
    def padded(A):
        N, M = A.shape
        C = output(N + 1, M)
        C[i, j] = A[i, j]
        return C

    A = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(matmul.interpret(A, A.T), A @ A.T)
    np.testing.assert_array_equal(padded.interpret(A), np.vstack([A, np.zeros(3)]))


def test_the_free_form_and_the_form_for_tools_are_one_program() -> None:
    from tcdsl import output
    from tcdsl.indices import i, j

    @op
    def f(A):
        y = output()
        y[i] += A[i, j]
        return y

    first = f.explain("ir", np.ones((2, 2)))

    @op
    def f(A):
        y[i] += A[i, j]
        return y

    assert f.explain("ir", np.ones((2, 2))) == first


def test_a_truth_value_that_python_looks_at_becomes_part_of_the_key() -> None:
    @op
    def f(x, flag):
        return (2 * x, x)[flag]

    assert [f.interpret(np.ones(1), flag)[0] for flag in (True, False, True)] == [1, 2, 1]
    assert f.cache_info().programs == 2
