"""Indices never wrap around: what is computed from data, sizes and numbers at the ends of all types, against Python."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.differential.loading import loaded
from tests.language.outcomes import assert_gives, changed, outcome, refusal

LOW, HIGH = -(2**63), 2**63 - 1
TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def ends(dtype: str) -> list[int]:
    """Numbers at which arithmetic of a type goes wrong, and small ones."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    candidates = (low, low + 1, low // 2, low // 2 - 1, -3, -1, 0, 1, 2, 3, high // 2, high // 2 + 1, high - 1, high)
    return sorted({number for number in candidates if low <= number <= high})


def moved(index: int, extent: int, boundary: str) -> int:
    """Where a boundary moves an index, in Python's integers."""
    match boundary:
        case "clamp":
            return min(max(index, 0), extent - 1)
        case "wrap":
            return index % extent
        case "reflect":
            inside = index % max(1, 2 * (extent - 1))
            return min(inside, 2 * (extent - 1) - inside)
    inside = index % (2 * extent)
    return min(inside, 2 * extent - 1 - inside)


BOUNDARIES = ("clamp", "wrap", "reflect", "symmetric")


@op
def all_reads(x, a, b, c):
    filled[n] = get(x[a[n] * b[n] + c[n]], -1.0)
    clamped[n] = x[clamp(a[n] * b[n] + c[n])]
    wrapped[n] = x[wrap(a[n] * b[n] + c[n])]
    reflected[n] = x[reflect(a[n] * b[n] + c[n])]
    mirrored[n] = x[symmetric(a[n] * b[n] + c[n])]
    divided[n] = x[wrap((a[n] * b[n] * a[n] + c[n]) // b[n])]
    return filled, clamped, wrapped, reflected, mirrored, divided


def wanted_reads(x: np.ndarray, columns: list[list[int]]) -> tuple[list[float], ...]:
    indices = [a * b + c for a, b, c in zip(*columns, strict=True)]
    quotients = [(a * b * a + c) // b if b else 0 for a, b, c in zip(*columns, strict=True)]
    return (
        [x[p] if 0 <= p < len(x) else -1.0 for p in indices],
        *([x[moved(p, len(x), boundary)] for p in indices] for boundary in BOUNDARIES),
        [x[p % len(x)] for p in quotients],
    )


def triples(dtypes: tuple[str, str, str], count: int | None = None) -> list[np.ndarray]:
    rows = list(itertools.product(*map(ends, dtypes)))
    if count is not None:
        rows = [rows[k] for k in np.random.default_rng(0).choice(len(rows), count, replace=False)]
    return [np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), dtypes, strict=True)]


@pytest.mark.parametrize("dtypes", [("int64", "int64", "int64"), ("uint64", "int8", "int64")])
def test_reads_at_the_ends_of_types(dtypes: tuple[str, str, str]) -> None:
    x = np.arange(5.0)
    columns = triples(dtypes)
    with tc.config(check="bounds"):
        found = all_reads(x, *columns)
    for one, wanted in zip(found, wanted_reads(x, [c.tolist() for c in columns]), strict=True):
        assert one.tolist() == wanted


@pytest.mark.parametrize("dtypes", [("int64", "uint64", "int64"), ("int16", "uint8", "int32")])
def test_the_interpreter_at_the_ends_of_types(dtypes: tuple[str, str, str]) -> None:
    x = np.arange(3.0)
    columns = triples(dtypes, 60)
    found = all_reads.interpret(x, *columns)
    for one, wanted in zip(found, wanted_reads(x, [c.tolist() for c in columns]), strict=True):
        assert one.tolist() == wanted


@op
def all_squares(x, a, b, c):
    total[()] += get(x[a[n] * b[n] + c[n]], 3.0) ** 2
    total[()] += x[wrap(a[n] * b[n] + c[n])] ** 2
    total[()] += x[reflect(a[n] * b[n] - c[n])] ** 2
    total[()] += x[clamp(a[n] * b[n] - c[n])] ** 2
    return total


def test_gradients_at_the_ends_of_types() -> None:
    x = np.arange(1.0, 6.0)
    columns = triples(("int64", "int64", "int64"), 600)
    wanted = np.zeros(5)
    for a, b, c in zip(*(column.tolist() for column in columns), strict=True):
        sum_, difference = a * b + c, a * b - c
        cells = [moved(sum_, 5, "wrap"), moved(difference, 5, "reflect"), moved(difference, 5, "clamp")]
        for cell in [sum_, *cells] if 0 <= sum_ < 5 else cells:
            wanted[cell] += 2 * x[cell]
    with tc.config(check="bounds"):
        assert tc.grad(all_squares)(x, *columns).tolist() == wanted.tolist()


@pytest.mark.long
def test_random_indices() -> None:
    for seed in range(4):
        command = [sys.executable, "-m", "tests.language.index_sweep", str(seed), "40"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]


# -- errors show the true index ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value", "index"),
    [
        ("int64", 2**62 + 1, 2**63 + 3),
        ("int64", 2**62 + 10**9, 2**63 + 2 * 10**9 + 1),
        ("int64", LOW, 2 * LOW + 1),
        ("uint64", 2**64 - 1, 2**65 - 1),
        ("int8", 100, 201),
    ],
)
def test_the_error_names_the_true_index(dtype: str, value: int, index: int) -> None:
    b = np.array([0, value], dtype)
    text = f"index {index} is out of range for axis 0 of `x`, which has extent 3"
    assert text in refusal(tc.DataIndexError, doubled, np.zeros(3), b)
    assert text in refusal(tc.DataIndexError, doubled_by_name, np.zeros(3), b)
    x = np.zeros(3)
    assert text in refusal(tc.DataIndexError, scattered, x, b)
    assert x.tolist() == [0, 0, 0]


@op
def doubled(x, b):
    y[i] = x[2 * b[i] + 1]
    return y


@op
def doubled_by_name(x, b):
    k = 2 * b[i]
    y[i] = x[k + 1] + 0 * k
    return y


@cd
def scattered(x, b):
    x[2 * b[i] + 1] += 1.0


def twice_and_one(value: Any) -> Any:
    return 2 * value + 1


def test_names_and_helpers_are_the_same_program() -> None:
    @op
    def by_helper(x, b):
        y[i] = x[twice_and_one(b[i])]
        return y

    x, b = np.arange(256.0), np.array([100, 1, 127], np.int8)
    for f in (doubled, doubled_by_name, by_helper):
        assert_gives(f, x, b, wanted=[201, 3, 255])


def test_values_wrap_as_in_numpy() -> None:
    @op
    def f(x, b):
        k[i] = 2 * b[i]  # a tensor of b's type
        y[i] = x[k[i] + 4]
        return k, y

    b = np.array([127, -128], np.int8)
    assert_gives(f, np.arange(6.0), b, wanted=(2 * b, [2.0, 4.0]))


def test_scatters_skip_and_clamp() -> None:
    @cd(oob="skip")
    def skipping(x, b):
        x[2 * b[i] + 1] += 1.0

    @cd(oob="clamp")
    def clamping(x, b):
        x[2 * b[i] + 1] += 1.0

    b = np.array([0, 2**63 + 1, 2**64 - 1, 1, 2**63], np.uint64)
    assert changed(skipping, np.zeros(4), b)[0].tolist() == [0, 1, 0, 1]
    assert changed(clamping, np.zeros(4), b)[0].tolist() == [0, 1, 0, 4]
    b = np.array([LOW, HIGH, 2**62], np.int64)
    assert changed(skipping, np.zeros(4), b)[0].tolist() == [0, 0, 0, 0]
    assert changed(clamping, np.zeros(4), b)[0].tolist() == [1, 0, 0, 2]


def test_products_of_index_variables() -> None:
    @op
    def f(x, *, low):
        total[()] += x[i * j], i >= low, i < low + 2, j >= low, j < low + 2
        return total

    assert float(f(np.arange(2.0), low=0)) == 1
    assert f"index {2**64} is out of range" in refusal(tc.DataIndexError, f, np.arange(2.0), low=2**32)
    # Its gradient does not compute f first: it is what has to look, and says what f would.
    with pytest.raises(tc.DataIndexError, match=f"index {2**64} is out of range for axis 0 of `x`"):
        tc.grad(f)(np.arange(2.0), low=2**32)


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


# -- what it costs -------------------------------------------------------------------------------------------


def source_of(f: Callable[..., Any], *arguments: Any) -> str:
    return str(f.explain("python", *arguments))  # type: ignore[attr-defined]


def test_ordinary_indices_are_computed_in_64_bits() -> None:
    @op
    def f(x, b, c):
        y[i] = x[b[i]] + x[3 * b[i] - c[i] + i] + get(x[b[i] // 2 + 1], 0.0) + x[wrap(b[i] * c[i])]
        return y

    x, small = np.zeros(4), np.zeros(2, np.int32)
    assert "int128" not in source_of(f, x, small, small)
    assert "int128" in source_of(f, x, small.astype(np.int64), small)


def test_checked_indices_near_data_are_computed_in_64_bits() -> None:
    @op
    def f(x, b, c):
        y[i] = x[b[i] - 1] + x[3 - c[i]]
        return y

    @op
    def doubled(x, b):
        y[i] = x[2 * b[i]] + x[b[i] - 2**63] + x[-b[i] - 2**63]
        return y

    x, ones = np.arange(4.0), np.ones(1, np.int64)
    lines = [line for line in source_of(f, x, ones, ones).splitlines() if "int128" in line]
    assert all("fail(" in line or "import" in line for line in lines)
    assert_gives(f, x, ones, 2 * ones, wanted=[0.0 + 1.0])
    for b, c in itertools.product(ends("int64"), repeat=2):
        if not (1 <= b <= 4 and 0 <= c <= 3):
            wrong = 3 - c if 1 <= b <= 4 else b - 1
            assert f"index {wrong} is out of range" in refusal(tc.DataIndexError, f, x, b * ones, c * ones)
    # 2**64 is congruent to 0: what can be as far as that is computed as it is.
    for b in (LOW, HIGH, LOW // 2, 2**62):
        assert f"index {2 * b} is out of range" in refusal(tc.DataIndexError, doubled, x, b * ones)
    assert f"index {-(2**63)} is out of range" in refusal(tc.DataIndexError, doubled, x, 0 * ones)


def test_bare_data_is_compared_as_it_is() -> None:
    @op
    def f(x, b):
        y[i] = x[b[i]] + x[clamp(b[i])]
        return y

    assert "int128" not in source_of(f, np.zeros(4), np.zeros(2, np.int64))
    huge = np.array([0, 2**63], np.uint64)
    assert f"index {2**63} is out of range" in refusal(tc.DataIndexError, f, np.zeros(4), huge)


def test_more_numbers_than_a_check_can_show() -> None:
    @op
    def f(x, b):
        y[i] = x[b[i] ** 8]
        return y

    with pytest.raises(tc.ShapeError, match="may have more than 448 bits"):
        f(np.zeros(4), np.zeros(2, np.int64))
    assert_gives(f, np.arange(3.0), np.array([0, 1, -1], np.int32), wanted=[0.0, 1.0, 1.0])


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


# -- derivatives ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_derivatives_of_every_mode(dtype: str) -> None:
    @op
    def f(x, b):
        y[i] = x[2 * b[i] + 1] ** 2 + x[wrap(3 * b[i])] * get(x[b[i] * b[i] - 1], 3.0)
        return y

    x, b = np.arange(1.0, 7.0), np.array([0, 1, 2, 1], dtype)
    wanted = np.zeros((4, 6))
    for row, number in enumerate(b.tolist()):
        cell, other, filled = 2 * number + 1, 3 * number % 6, number * number - 1
        wanted[row, cell] += 2 * x[cell]
        wanted[row, other] += x[filled] if 0 <= filled < 6 else 3.0
        if 0 <= filled < 6:
            wanted[row, filled] += x[other]
    np.testing.assert_allclose(tc.jacobian(f)(x, b), wanted)
    seed = np.array([1.0, -1.0, 2.0, 0.5])
    np.testing.assert_allclose(tc.vjp(f, x, b)[1](seed)[0], seed @ wanted)
    np.testing.assert_allclose(tc.jvp(f, (x, b), (x, None))[1], wanted @ x)
    f.cost(x, b)  # it evaluates indices too


# -- one index in several spellings --------------------------------------------------------------------------


INDICES = (
    "b[i] + 200",
    "b[i] * 3 - s",
    "int8(b[i] + s)",
    "int16(300 * b[i]) + uint8(b[i] - s)",
    "int32(uint8(s)) + b[i]",
    "b[i] << s",
    "(b[i] << 70) + (b[i] >> s)",
    "s << abs(b[i])",
    "(b[i] - 1000) >> 2",
    "b[i] & (s + i)",
    "(b[i] + 300) & 511 | s",
    "b[i] ^ 200 ^ (s + 128)",
    "~(b[i] - 400)",
    "(b[i] + s > 127) * b[i] + (i != 1) * 260",
    "(b[i] + 200 if b[i] * 2 > s else 3 * b[i])",
    "max(b[i] + 300, s) % 301 - b[i] // 2",
    "sign(b[i] * 300) + relu(b[i] - 200) + abs(b[i] - 29)",
    "u[i] + a[i]",
    "(u[i] - a[i]) * 2 + 3",
    "(b[i] + 100)**2 // 100",
)
SPELLINGS = (
    "y[i] = get(x[{0}], -1.0)",
    "q = {0}\n    y[i] = get(x[q], -1.0)",
    "q = {0}\n    p = (q)\n    y[i] = get(x[(p) + 0*s], -1.0)",
    "c = i >= 0\n    q = {0}\n    y[i] = get(x[0*i + c*q], -1.0)",
    "y[i] = get(x[same({0})], -1.0)",
)


def bracketed(count: int, bits: int, signed: bool = True) -> int:
    count %= 2**bits
    return count - 2**bits if signed and count >= 2 ** (bits - 1) else count


MEANINGS = {
    "int8": lambda n: bracketed(n, 8),
    "int16": lambda n: bracketed(n, 16),
    "int32": lambda n: bracketed(n, 32),
    "uint8": lambda n: bracketed(n, 8, signed=False),
    "sign": lambda n: (n > 0) - (n < 0),
    "relu": lambda n: max(n, 0),
}


def program_of(indices: tuple[str, ...], spellings: tuple[str, ...]) -> Any:
    pairs = list(itertools.product(indices, spellings))
    bodies = [
        f"    {spelling.format(index)}\n".replace("y[i]", f"y{k}[i]") for k, (index, spelling) in enumerate(pairs)
    ]
    made = ", ".join(f"y{k}" for k in range(len(pairs)))
    return loaded(f"def f(x, b, a, u, s):\n{''.join(bodies)}    return {made}\n", "def same(q):\n    return q\n")


def test_names_brackets_and_helpers_are_the_inline_index() -> None:
    x = np.arange(400.0)
    b, a = np.array([-128, -1, 0, 29, 100, 127], np.int8), np.array([-7, 0, 5, LOW, HIGH, 3])
    u = np.array([7, 2**63, 2**64 - 1, 2**63 + 9, 3, 0], np.uint64)
    spelled, compiled = program_of(INDICES, SPELLINGS), program_of(INDICES[2::3], SPELLINGS[1:2])
    for s in (3, 150):
        wanted = []
        for index in INDICES:
            at = {"b": b.tolist(), "a": a.tolist(), "u": u.tolist(), "s": s, **MEANINGS}
            places = [eval(index, {**at, "i": i}) for i in range(len(b))]  # noqa: S307
            wanted.append([x[place] if 0 <= place < len(x) else -1.0 for place in places])
        found = [each.tolist() for each in spelled.interpret(x, b, a, u, s)]
        assert found == [cells for cells in wanted for _ in SPELLINGS]
        assert [each.tolist() for each in compiled(x, b, a, u, s)] == wanted[2::3]


def test_numbers_that_no_type_holds_are_refused_as_values_only() -> None:
    @op
    def f(x, b):
        q = b[i] + 200
        y[i] = x[q]
        return y

    b = np.array([-100, -73], np.int8)
    assert_gives(f, np.arange(200.0), b, wanted=[100, 127])

    @op
    def g(x, b):
        q = b[i] + 200
        y[i] = x[q] + q
        return y

    text = refusal(tc.DtypeError, g, np.arange(200.0), b)
    assert "the integer 200 does not fit in int8" in text
    assert "int8 holds -128 to 127; convert the other operand to a wider type, as in int64(x)" in text
    assert "q = b[i] + 200" in text

    @op
    def h(b):
        return b + 200

    assert "the integer 200 does not fit in int8" in refusal(tc.DtypeError, h, b)


def test_a_choice_is_as_wide_as_what_it_chooses_from() -> None:
    @op
    def f(x, m, b):
        y[i] = get(x[2 * where(m[i] > 0, 1, b[i])], -1.0)
        z[i] = get(x[2 * where(m[i] > 0, b[i], 1)], -1.0)
        return y, z

    b = np.array([1, 2**62 + 1, 2**63 - 1, -(2**63) + 1])
    for m, wanted in ((np.zeros(4), [2.0, -1, -1, -1]), (np.ones(4), [2.0] * 4)):
        assert_gives(f, np.arange(4.0), m, b, wanted=(wanted, [2.0, -1, -1, -1] if m.all() else [2.0] * 4))


# -- outside statements ------------------------------------------------------------------------------------------------


@op
def one_cell(x, a, b, c):
    return x[a[0] * b[0] + c[0]]


@op
def many_cells(x, a, b, c):
    return x[a * b + c][0]


@op
def cell_of_a_part(x, a, b, c):
    return x[:][a[0] * b[0] + c[0]]


@op
def cells_in_rounds(x, a, b, c):
    s = 0.0
    for t in tc.loop(1):
        s = s + x[a[t] * b[t] + c[t]]
    return s


@op
def cells_in_conditions(x, a, b, c):
    s = 0.0
    while x[a[0] * b[0] + c[0]] > s:
        s = s + 1.0
    return s


@op
def stored(x, a, b, c):
    y = 0.0 * x
    y[a[0] * b[0] + c[0]] = 1.0
    return (x * y).sum()


@pytest.mark.parametrize("f", [one_cell, many_cells, cell_of_a_part, cells_in_rounds, cells_in_conditions, stored])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_brackets_outside_statements_are_exact_too(f: Any, dtype: str) -> None:
    x = np.arange(300.0)
    sampled = zip(*triples((dtype, dtype, dtype), 40), strict=True)
    for a, b, c in (*(map(int, row) for row in sampled), (100, 2, 0), (127, 2, 1), (100, 3, 0)):
        given, index = [np.array([number], dtype) for number in (a, b, c)], a * b + c
        if 0 <= index < len(x):
            assert f(x, *given) == f.interpret(x, *given) == x[index]
        else:
            with pytest.raises(IndexError, match=f"index {index} is out of range"):
                f(x, *given)


# -- bounds of loops --------------------------------------------------------------------------------------------------


@op
def rounds(a, b, n):
    count = 0
    for _ in range(a[0] * n + b[0], 2 * a[0] + b[0], 3):
        count = count + 1
        if count == 9:
            break
    return count


@op
def rounds_of_numbers(a, b, n):
    count = 0
    for _ in range(a * n + b, 2 * a + b, 3):
        count = count + 1
        if count == 9:
            break
    return count


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_bounds_of_loops_are_exact(dtype: str) -> None:
    met = set()
    for a, b in itertools.product(ends(dtype), ends(dtype)):
        for n in (0, -1):
            numbers = range(a * n + b, 2 * a + b, 3)
            fit = all(LOW <= each <= HIGH for each in (numbers.start, numbers.stop))
            met.add(fit)
            arrays = np.array([a], dtype), np.array([b], dtype), n
            for f, given in (
                (rounds, arrays),
                (rounds_of_numbers, (a, b, n)) if dtype == "int64" else (rounds, arrays),
            ):
                for run in (f, f.interpret):
                    if fit:
                        assert run(*given) == min(len(numbers), 9)
                    else:
                        with pytest.raises(OverflowError, match="a bound of this `range` does not fit into 64 bits"):
                            run(*given)
    assert met == ({True, False} if "64" in dtype else {True})
