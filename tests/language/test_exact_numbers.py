"""Sizes and numbers of Python of any size in indices, and divisions by 0."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, outcome, refusal
from tests.language.test_exact_indices import HIGH, LOW, TYPES, moved

# -- sizes and numbers ---------------------------------------------------------------------------------------


@op
def shifted(x, z, *, shift):
    N = z.shape[0]
    filled[i] = get(x[i + shift + 4 * N], -1.0), i < 6
    wrapped[i] = x[wrap(i + shift + 4 * N)], i < 6
    reflected[i] = x[reflect(2 * i - shift + N * 3)], i < 6
    skipped: real[6]
    skipped[i] = x[i + 4 * N - shift]
    guarded[i] = (x[i + N] if i * 4 + N * 3 < 9 else -2.0), i < 3
    return filled, wrapped, reflected, skipped, guarded


@pytest.mark.parametrize("size", [0, 1, 2**48 + 1, 2**61, 2**62 - 1, 2**63 - 1])
@pytest.mark.parametrize("shift", [0, HIGH, LOW])
def test_huge_sizes_and_numbers(size: int, shift: int) -> None:
    x = np.arange(10.0, 15.0)
    filled = [i + shift + 4 * size for i in range(6)]
    reflected = [2 * i - shift + 3 * size for i in range(6)]
    skipped = [i + 4 * size - shift for i in range(6)]
    wanted = (
        [x[p] if 0 <= p < 5 else -1.0 for p in filled],
        [x[p % 5] for p in filled],
        [x[moved(p, 5, "reflect")] for p in reflected],
        [x[p] if 0 <= p < 5 else 0.0 for p in skipped],
        [x[i + size] if i * 4 + size * 3 < 9 else -2.0 for i in range(3)],
    )
    assert_gives(shifted, x, np.empty((size, 0), np.int8), shift=shift, wanted=wanted)


def test_a_bound_far_below_0() -> None:
    @op
    def f(x, z):
        y[i] = x[i] * (4 * z.shape[0] - 3 * z.shape[0]), i < x.shape[0] - 4 * z.shape[0]
        return y

    assert_gives(f, np.arange(9.0), np.empty((1, 0)), wanted=np.arange(5.0))
    assert_gives(f, np.arange(9.0), np.empty((2**62, 0), np.int8), wanted=np.zeros(0))


def test_gradients_with_huge_sizes() -> None:
    @op
    def f(x, z):
        N = z.shape[0]
        total[()] += x[wrap(i + 4 * N)] ** 2 + get(x[i - N], 2.0) ** 3, i < 7, i >= 0
        return total

    x = np.arange(1.0, 4.0)
    for size in (1, 2**62 + 3):
        wanted = np.zeros(3)
        for i in range(7):
            cell = (i + 4 * size) % 3
            wanted[cell] += 2 * x[cell]
            if 0 <= i - size < 3:
                wanted[i - size] += 3 * x[i - size] ** 2
        assert tc.grad(f)(x, np.empty((size, 0), np.int8)).tolist() == wanted.tolist()


# -- Python's integers among the arguments ---------------------------------------------------------------------


@op
def with_numbers(x, b, s):
    cell = s + b[i]
    first[i] = x[wrap(cell)]
    apart = s + i
    second[i] = x[wrap(apart + b[i])]
    third[i] = x[wrap(b[i] - apart)]
    together = b[i] + (s + i)
    fourth[i] = x[wrap(together)]
    chosen = max(b[i], (apart if b[i] < 1 else s)) + (s + i) ** 3
    fifth[i] = x[wrap(chosen)]
    return first, second, third, fourth, fifth


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_and_data_make_indices_of_any_size(dtype: str) -> None:
    x, count = np.arange(521.0), 300
    b = np.resize(np.array([0, 1], dtype), count)
    pairs = list(enumerate(b.tolist()))
    for s in (1, 200, 2**32, -(2**34)):
        wanted = (
            [s + cell for i, cell in pairs],
            [s + i + cell for i, cell in pairs],
            [cell - s - i for i, cell in pairs],
            [cell + s + i for i, cell in pairs],
        )
        chosen = [max(cell, s + i if cell < 1 else s) + (s + i) ** 3 for i, cell in pairs]
        found = with_numbers.interpret(x, b, s)
        for one, indices in zip(found, (*wanted, chosen), strict=True):
            assert one.tolist() == [x[index % 521] for index in indices], s


def test_numbers_and_data_as_places() -> None:
    @cd
    def f(x, b, *, s):
        place = (s + i) + b[i]
        x[place] += 1.0

    b = np.zeros(300, np.uint8)
    wanted = np.zeros(401)
    wanted[1:301] = 1
    assert changed(f, np.zeros(401), b, s=1)[0].tolist() == wanted.tolist()
    wanted = np.roll(wanted, 100)
    assert changed(f, np.zeros(401), b, s=101)[0].tolist() == wanted.tolist()


def test_numbers_and_data_in_rules_and_graphs() -> None:
    @op
    def f(x, b, s):
        q = b[i] + (s + i)
        y[i] = x[q]
        return y

    @f.defvjp
    def pullback(x, b, s, y, d_y):
        q = b[i] + (s + i)
        d: real[x.shape[0]]
        d[q] += 3 * d_y[i]
        return d, None, None

    @cd
    def code(x, b, *, s):
        q = b[i] + (s + i)
        x[q] += 1.0

    x, b = np.arange(400.0), np.array([3, 0], np.int8)
    wanted = np.zeros(400)
    wanted[[203, 201]] = 3
    assert tc.vjp(f, x, b, 200)[1](np.ones(2))[0].tolist() == wanted.tolist()
    cells = tc.tensor(np.zeros(400))
    tc.compile(code(cells, tc.tensor(np.zeros(300, np.uint8)), s=1))()
    assert np.flatnonzero(np.asarray(cells)).tolist() == list(range(1, 301))


def test_values_of_numbers_must_fit() -> None:
    @op
    def f(x, b, s):
        q = s + b[i]
        y[i] = x[q] + q
        return y

    x, b = np.arange(300.0), np.array([1, 3], np.int8)
    assert_gives(f, x, b, 4, wanted=[10.0, 14.0])
    assert "the integer 200 does not fit in int8\n    q = s + b[i]" in refusal(tc.DtypeError, f, x, b, 200)


def test_constants_in_indices_of_data_are_computed() -> None:
    @op
    def f(x, b):
        y[i] = x[(b[i] - b[i]) // 2 + 1] + x[(b[i] - b[i] - 3) % 7]
        return y

    for dtype in ("int64", "uint8"):
        assert_gives(f, np.arange(9.0), np.array([1, 5], dtype), wanted=[5.0, 5.0])


# -- division by 0 -------------------------------------------------------------------------------------------


def test_division_by_the_number_0() -> None:
    @op
    def index(x, *, k):
        y[i] = x[i // k], i < 3
        return y

    @op
    def rest(x, b):
        y[i] = x[b[i] % 0]
        return y

    @op
    def condition(x):
        y[i] = x[i], i % 0 == 0
        return y

    @op
    def value(x, *, k):
        y[i] = x[i] * (i // k)
        return y

    x = np.arange(4.0)
    assert "`//` by 0\n    y[i] = x[i // k], i < 3\n             ^^^^^^" in refusal(tc.DslSyntaxError, index, x, k=0)
    assert "an index that is `%` by 0" in refusal(tc.DslSyntaxError, rest, x, np.array([1]))
    assert "`%` by 0" in refusal(tc.DslSyntaxError, condition, x)
    assert "`//` by 0" in refusal(tc.DslSyntaxError, value, x, k=0)
    assert outcome(value, x, k=2).tolist() == [0, 0, 2, 3]


def test_division_by_a_size_that_is_0() -> None:
    @op
    def f(x, z):
        M = z.shape[0]
        y[i] = x[i // M], i < 3
        guarded[i] = (i % M if M > 0 else -1), i < 2
        return y, guarded

    x = np.arange(4.0)
    assert_gives(f, x, np.zeros(2), wanted=([0, 0, 1], [0, 1]))
    assert "`i // M` divides by 0\n    y[i] = x[i // M], i < 3" in refusal(tc.ShapeError, f, x, np.zeros(0))


# -- numbers that no int64 holds -----------------------------------------------------------------------------


def test_numbers_beyond_64_bits_are_refused_where_they_stand() -> None:
    @op
    def index(x):
        y[i] = x[i + 10**400], i < 2
        return y

    @op
    def bound(x):
        y[()] = sum(x[i] for i in range(10**30))
        return y

    @op
    def extent(x):
        y = output(2**63)
        y[i] = x[i]
        return y

    @op
    def value(x):
        y[i] = x[i] * 10**400
        return y

    @op
    def position(x):
        y[()] = x[-(2**64)]
        return y

    x = np.arange(4.0)
    assert "the integer 100000... (about 400 digits) does not fit in int64" in refusal(tc.DtypeError, index, x)
    message = refusal(tc.DtypeError, bound, x)
    assert f"the integer {10**30} does not fit in int64" in message
    assert "range(10**30))\n                                    ^^^^^^" in message
    assert f"int64 holds {LOW} to {HIGH}" in refusal(tc.DtypeError, extent, x)
    assert "(about 400 digits) does not fit in float64" in refusal(tc.DtypeError, value, x)
    assert f"the integer {-(2**64)} does not fit" in refusal(tc.DtypeError, position, x)


def test_slices_beyond_64_bits_are_cut_as_in_python() -> None:
    @op
    def f(x):
        return x[2**64 :] + 1, x[: 2**64] + 1

    assert_gives(f, np.arange(3.0), wanted=([], [1.0, 2.0, 3.0]))


def test_coefficients_that_add_up_beyond_64_bits() -> None:
    @op
    def f(x):
        y[i] = get(x[2**62 * i + 2**62 * i + 2**62 * i - 2**62 - 2**62 - 2**62], -1.0), i < 3
        return y

    assert_gives(f, np.arange(1.0, 3.0), wanted=[-1.0, 1.0, -1.0])
