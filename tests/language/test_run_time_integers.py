"""Run-time integers as offsets of indices: one program for many of them, which does what constants do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import refusal

x, table, ids, w = np.arange(1.0, 6.0), np.arange(15.0).reshape(3, 5), np.array([3, 0, 2]), np.array([2.0, -1.0, 0.5])


# Each takes the integer, and gives the function with this integer as a constant.
def shifted(shift):
    @op
    def function(x):
        y[i] = x[i + shift]
        return y

    return function


def declared(shift):
    @op
    def function(x):
        (N,) = x.shape
        y = tc.output(N)
        y[i] = x[i + shift] * shift
        return y

    return function


def stored(shift):
    @op
    def function(x):
        (N,) = x.shape
        y = tc.output(N)
        y[2 * i - shift + 1] += x[i]
        return y

    return function


def row(shift):
    @op
    def function(x):
        y[i] = table[shift, i]
        return y * x

    return function


def before(shift):
    @op
    def function(x):
        y[i] = table[shift - 1, i]
        return y * x

    return function


def backwards(shift):
    @op
    def function(x):
        (N,) = x.shape
        y[()] = x[-shift] + x[N - 1 - shift]
        return y

    return function


def placed(shift):
    @op
    def function(x):
        (N,) = x.shape
        y = tc.output(3, N)
        y[shift, i] = x[i]
        return y

    return function


def bordered(shift):
    @op
    def function(x):
        y[i] = get(x[i + shift], -1.0) + x[clamp(i - shift)] + x[wrap(i + shift)] * x[reflect(i + shift - 2)], i < 5
        return y

    return function


def correlated(shift):
    @op
    def function(x):
        (N,) = x.shape
        y = tc.output(N)
        y[i] = sum(x[i + k - shift] * w[k])
        return y

    return function


def gathered(shift):
    @op
    def function(x):
        y[i] = get(x[ids[i] + shift], 0.5)
        return y

    return function


def divided(shift):
    @op
    def function(x):
        (N,) = x.shape
        y = tc.output(N)
        y[i] = x[(i + shift) // 2] + get(x[shift * i], 0.0)
        return y

    return function


def added(shift):
    @cd
    def function(x):
        x[i + shift] += w[i]

    return function


PROGRAMS = [
    shifted,
    declared,
    stored,
    row,
    before,
    backwards,
    placed,
    bordered,
    correlated,
    gathered,
    divided,
    added,
]
# A coefficient, a dividend, and what counts from the end for some of the integers only.
CONSTANTS = (before, backwards, divided)


def at_run_time(program: Callable[[Any], Any], keyword: bool) -> Any:
    """The function of ``program`` with the integer as a parameter."""

    def positional(x, shift):
        return program(shift)(x)

    def by_keyword(x, *, shift):
        return program(shift)(x)

    return (cd if program is added else op)(by_keyword if keyword else positional)


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the kind of error that it raises."""
    try:
        return call()
    except (tc.ShapeError, tc.DataIndexError) as error:
        return type(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_run_time_integer_does_what_a_constant_does(program: Any) -> None:
    keyword = program.__name__ < "d"
    function = at_run_time(program, keyword)
    # A constant 0 leaves a bare index, whose extents have to agree.
    for shift in (4 if program is added else 0, 1, -1, 2, -5, 7, -7, 3):
        given: dict[str, Any] = {"shift": shift} if keyword else {}
        found = outcome(lambda: function.interpret(x, *([] if keyword else [shift]), **given))  # noqa: B023
        np.testing.assert_equal(found, outcome(lambda: program(shift).interpret(x)), err_msg=f"shift={shift}")  # noqa: B023
    assert program in CONSTANTS or function.cache_info().programs <= 2


def test_one_kernel_serves_all_integers_of_a_sign() -> None:
    function, accumulated = at_run_time(declared, keyword=True), at_run_time(added, keyword=False)
    for _ in range(2):
        for shift in (3, 1, 0, 2, 9, 2**39, -1, -4, -(2**39)):
            expected = np.zeros(5)
            kept = slice(min(max(0, shift), 5), max(0, 5 + min(0, shift)))
            expected[: max(0, 5 - shift)][max(0, -shift) :] = x[kept] * shift
            np.testing.assert_array_equal(function(x, shift=shift), expected)
            cells, steps = x.copy(), np.zeros(5)
            for k in range(3):
                if 0 <= k + shift < 5:
                    steps[k + shift] = w[k]
            accumulated(cells, shift)
            np.testing.assert_array_equal(cells, x + steps)
    assert function.cache_info().kernels == accumulated.cache_info().kernels == 2


def test_integers_at_the_ends_of_their_range() -> None:
    function = at_run_time(declared, keyword=False)
    for shift in (2**40, -(2**40), 2**62, -(2**62), 2**63 - 1, -(2**63)):
        np.testing.assert_array_equal(function.interpret(x, shift), np.zeros(5))


def test_the_place_of_an_offset_is_shown_with_its_value() -> None:
    function = at_run_time(shifted, keyword=False)
    assert function.interpret(x, 0).tolist() == x.tolist()
    with pytest.raises(tc.ShapeError, match=r"would begin at -shift, below 0: shift = 3"):
        function(x, 3)
    assert "y[i] = x[i + -minus_shift]" in str(function.explain("ir", x, -2))


def test_gradients_take_run_time_integers() -> None:
    @op
    def loss(x, shift):
        s[()] = sum(x[i + shift] * x[i])
        return s

    slope = tc.grad(loss)
    for shift in (1, 2, 3):
        expected = np.zeros(5)
        expected[: 5 - shift] += x[shift:]
        expected[shift:] += x[: 5 - shift]
        np.testing.assert_array_equal(slope(x, shift), expected)
    assert slope.cache_info().kernels == 1


@op
def bounded(x, *, count, first):
    y[i] = sum(x[k] * (i + 1) for k in range(first, count)), i < count
    return y


@op
def extended(x, count):
    y = tc.output(count)
    y[i] = x[i] * count
    return y


@op
def windowed(x, count):
    y[i] = sum(x[i + k] for k in range(count))
    return y


def test_bounds_and_extents_are_run_time_numbers_unless_they_are_small() -> None:
    long = np.arange(1.0, 101.0)
    for count in (17, 40, 100, 99):
        for first in (17, 20, 30):
            expected = np.arange(1.0, count + 1) * long[first:count].sum()
            np.testing.assert_allclose(bounded(long, count=count, first=first), expected)
        np.testing.assert_array_equal(extended(long, count), long[:count] * count)
        np.testing.assert_allclose(windowed(long, count), np.convolve(long, np.ones(count), "valid"))
    infos = [function.cache_info() for function in (bounded, extended, windowed)]
    assert [info.kernels for info in infos] == [1, 1, 1]
    for count in (3, 16, 2):
        np.testing.assert_allclose(windowed.interpret(long, count), np.convolve(long, np.ones(count), "valid"))
        np.testing.assert_array_equal(extended.interpret(long, count), long[:count] * count)
    assert windowed.cache_info().programs == extended.cache_info().programs == 4
    with pytest.raises(tc.ShapeError, match="an extent of -3"):
        extended(long, -3)
    np.testing.assert_allclose(bounded.interpret(long, count=20, first=-2), np.arange(1.0, 21.0) * long[:20].sum())


# -- in definitions, functions, and as NumPy's numbers -------------------------------------------------------


def cell_of(a, j):
    return a[j]


def far_cell_of(a, j, n):
    return a[j + 2 * n]


@op
def offsets(x, n):
    (N,) = x.shape
    a = output(N)
    b = output(N)
    c = output(N)
    d = output(N)
    e = output(N)
    q = i + n
    far = i + 2 * n
    a[i] = x[i + n]
    b[i] = x[q]
    c[i] = cell_of(x, i + n)
    d[i] = far_cell_of(x, i, n)
    e[i] = x[far]
    return a, b, c, d, e


NUMBERS = (1, -1, True, np.int64(1), np.int64(-1), np.int8(2), np.uint64(1), np.bool_(True))


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_are_terms_of_indices_wherever_they_stand(number: Any) -> None:
    x = np.arange(1.0, 6.0)
    near, far = ([x[k] if 0 <= k < 5 else 0.0 for k in np.arange(5) + by * int(number)] for by in (1, 2))
    found = [each.tolist() for each in offsets.interpret(x, number)]
    assert found == [near, near, near, far, far]


def test_numbers_of_numpy_keep_their_type_as_values_and_compile_once() -> None:
    @op
    def f(b, n):
        (N,) = b.shape
        y: int64[N]
        y[i] = b[i + n]
        z[i] = b[i] + n
        return y, z

    b = np.array([1, 2, 3], np.int8)
    for number in (np.int16(1), np.int16(2), np.int16(0)):
        y, z = f(b, number)
        assert y.tolist() == [*b[int(number) :].tolist(), *[0] * int(number)]
        assert (z.tolist(), z.dtype) == ((b + number).tolist(), np.int16)
    assert f.cache_info().programs == 1
    assert f(b, 1)[1].dtype == np.int8
    with pytest.raises(tc.DataIndexError, match="index 3 is out of range for axis 0 of `b`"):
        f(b, np.array(1, np.int16))  # an array is data


@pytest.mark.parametrize("number", [-(2**62), -(2**63), np.int64(-(2**63))], ids=repr)
def test_extents_that_no_array_has_are_errors(number: Any) -> None:
    @op
    def f(x, s):
        y[i] = x[i + s]
        return y

    @op
    def g(x, s):
        (N,) = x.shape
        y: real[N]
        y[i] = x[i + s]
        return y

    assert "which is larger than an array can be" in refusal(tc.ShapeError, f, np.ones(3), number)
    assert g(np.ones(3), number).tolist() == [0, 0, 0]


def test_numbers_beyond_64_bits_beside_data() -> None:
    @op
    def f(x, a, s):
        q = a[i] + 2**62 * s
        y[i] = get(x[q], -1.0) + x[clamp(a[i] - 2**62 * s)]
        z[i] = x[a[i] + 2**62 * s]
        return y, z

    x, a = np.arange(3.0), np.array([1, 0])
    assert [each.tolist() for each in f(x, a, 0)] == [[2, 0], [1, 0]]
    text = refusal(tc.DataIndexError, f, x, a, 3)
    assert f"index {3 * 2**62 + 1} is out of range for axis 0 of `x`, which has extent 3" in text


@pytest.mark.parametrize("n", [3, np.array(3)])
def test_a_choice_by_the_number_of_a_round_converts(n: Any) -> None:
    @op
    def chosen(x, n):
        for t in range(n):
            x[i] = x[i] + np.uint64(t if t % 2 == 0 else n)
        return x

    np.testing.assert_array_equal(chosen(np.array([1, 2], np.uint64), n), np.array([6, 7], np.uint64))
