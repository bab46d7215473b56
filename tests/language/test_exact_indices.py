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
from tests.language.outcomes import assert_gives, changed, refusal

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
