"""Element types: promotion, weak numbers, sums, stores, and the rules that differ by type, in compiled code."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
]  # fmt: skip
NUMBERS = DTYPES[1:]
PAIRS = list(itertools.product(NUMBERS, NUMBERS))


def sample(dtype: str) -> np.ndarray:
    return np.array([1, 0, 2, 3]).astype(dtype)


def divisor(dtype: str) -> np.ndarray:
    return np.array([3, 2, 1, 2]).astype(dtype)


def agrees(found: Any, wanted: Any) -> None:
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-3 if np.asarray(wanted).dtype == "float16" else 1e-6)


# -- which types there are -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_listed_type_is_taken_and_given_back(dtype: str) -> None:
    @op
    def copied(x):
        y[i] = x[i]
        return y

    agrees(copied(sample(dtype)), sample(dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "S1", "U1", "O", "datetime64[s]", "longdouble"])
def test_other_types_are_errors(dtype: str) -> None:
    @op
    def same(x):
        return x

    with pytest.raises(tc.DtypeError, match=r"has the element type .*, which tcdsl does not handle"):
        same(np.zeros(2, dtype))


def test_float16_is_storage_only_and_computes_in_float32() -> None:
    @op
    def chained(x):
        y[i] = (x[i] * 60000.0) / 60000.0
        return y

    @op
    def total(x):
        t[()] += x[i]
        return t

    # 120000 is out of float16's range: the product in between is a float32.
    agrees(chained(np.array([2.0], np.float16)), np.array([2.0], np.float16))
    # In float16 a sum of ones stops at 2048.
    agrees(total(np.ones(4000, np.float16)), np.float16(4000))


# -- promotion -----------------------------------------------------------------------------------------------


@op
def arithmetic(a, b):
    s[i] = a[i] + b[i]
    d[i] = a[i] - b[i]
    p[i] = a[i] * b[i]
    q[i] = a[i] / b[i]
    return s, d, p, q


@op
def integral(a, b):
    f[i] = a[i] // b[i]
    m[i] = a[i] % b[i]
    e[i] = b[i] ** a[i]
    return f, m, e


@op
def compared(a, b):
    return a < b, a <= b, a == b, a != b, a >= b, a > b


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_the_type_of_arithmetic_is_that_of_numpy_for_every_pair_of_types(left: str, right: str) -> None:
    a, b = sample(left), divisor(right)
    with np.errstate(all="ignore"):
        wanted = (a + b, a - b, a * b, a / b, a // b, a % b, b**a)
    found = (*arithmetic.interpret(a, b), *integral.interpret(a, b))
    for one, other in zip(found, wanted, strict=True):
        if other.dtype.kind == "f" and {left, right} & {"float16"} and other.dtype == "float16":
            assert one.dtype == "float16"
        elif np.asarray(a / b).dtype == "float16" and other is wanted[3]:
            # Division: small integers give float16 or float32 in NumPy, float64 where only integers meet here.
            assert one.dtype == "float64"
        elif other is wanted[3] and np.result_type(left, right).kind in "iu":
            assert one.dtype == "float64"
        else:
            agrees(one, other)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("int8", "uint8"),
        ("int64", "uint64"),
        ("float16", "int16"),
        ("uint8", "float32"),
        ("float32", "int32"),
        ("uint32", "int16"),
    ],
)
def test_compiled_code_gives_the_types_of_numpy(left: str, right: str) -> None:
    a, b = sample(left), divisor(right)
    wanted = (a + b, a * b, a // b, a % b, b**a)

    @op
    def f(a, b):
        s[i] = a[i] + b[i]
        p[i] = a[i] * b[i]
        f[i] = a[i] // b[i]
        m[i] = a[i] % b[i]
        e[i] = b[i] ** a[i]
        return s, p, f, m, e

    for one, other in zip(f(a, b), wanted, strict=True):
        agrees(one, other)


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_comparisons_of_every_pair_of_types_give_bool(left: str, right: str) -> None:
    a, b = sample(left), divisor(right)
    for one, other in zip(compared.interpret(a, b), (a < b, a <= b, a == b, a != b, a >= b, a > b), strict=True):
        agrees(one, other)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("number", [2, 2.5, True])
def test_python_scalars_are_weak_wherever_they_come_from(dtype: str, number: Any) -> None:
    @op
    def f(x, argument, *, configured):
        y[i] = x[i] + number
        z[i] = x[i] + argument
        w[i] = x[i] + configured
        return y, z, w, x + number

    for found in f.interpret(sample(dtype), number, configured=number):
        agrees(found, sample(dtype) + number)


def test_sizes_and_index_variables_are_weak() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y[i] = x[i] * N
        z[i] = x[i] + i
        w[i] = x[i] / N
        v[i] = i * i, i < N
        return y, z, w, v, x * N

    for dtype in ("float32", "int16", "float16"):
        x = sample(dtype)
        found = f(x)
        agrees(found[0], x * 4)
        agrees(found[1], x + np.arange(4, dtype=dtype))
        agrees(found[4], x * 4)
        assert found[2].dtype == ("float64" if dtype == "int16" else dtype)
        np.testing.assert_allclose(found[2], x / 4, rtol=1e-3)
    # Without anything to meet they are what Python's integers are for NumPy.
    agrees(found[3], np.arange(4) ** 2)


def test_numpy_scalars_keep_their_type() -> None:
    @op
    def f(x, s):
        return x + s

    x = np.ones(2, np.float32)
    for scalar in (np.float64(2), np.float32(2), np.int8(2), np.int64(2), np.bool_(True), np.float16(2)):
        agrees(f.interpret(x, scalar), x + scalar)
    assert f(x, np.float64(2)).dtype == np.float64


def test_a_python_integer_that_does_not_fit_is_an_error() -> None:
    @op
    def f(x):
        y[i] = x[i] + 300
        return y

    @op
    def whole(x):
        return x * -1

    with pytest.raises(tc.DtypeError, match="the integer 300 does not fit in int8"):
        f(np.ones(3, np.int8))
    with pytest.raises(tc.DtypeError, match="the integer -1 does not fit in uint8"):
        whole(np.ones(3, np.uint8))
    agrees(f(np.ones(3, np.int16)), np.full(3, 301, np.int16))


def test_a_run_time_integer_that_does_not_fit_is_an_error() -> None:
    @op
    def f(x, n):
        y[i] = x[i] + n
        return y

    agrees(f(np.ones(3, np.int8), 100), np.full(3, 101, np.int8))
    for attempt in (f, f.interpret):
        with pytest.raises(tc.DtypeError, match="the integer 300 does not fit in int8"):
            attempt(np.ones(3, np.int8), 300)
    agrees(f(np.ones(3, np.int8), 100), np.full(3, 101, np.int8))

    @op
    def computed(x, *, n):
        return x * (2 - n)

    agrees(computed.interpret(np.ones(3, np.uint8), n=1), np.ones(3, np.uint8))
    with pytest.raises(tc.DtypeError, match="the integer -1 does not fit in uint8"):
        computed.interpret(np.ones(3, np.uint8), n=3)


def test_integers_wrap_around_as_in_numpy() -> None:
    @op
    def f(x):
        return x + x, x * x, -x

    x = np.array([100, -128, 127], np.int8)
    for one, other in zip(f(x), (x + x, x * x, -x), strict=True):
        agrees(one, other)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_what_wrapped_is_compared_and_divided_as_it_is(dtype: str) -> None:
    # LLVM may take for granted what it is told does not overflow: `a + b > a` is `b > 0` then.
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    x = np.array([low, low + 1, low // 2, high // 2, high // 2 + 1, high - 1, high, 1, 2, 5], dtype)
    length = len(x)

    @op
    def at_points(x):
        larger[i, j] = x[i] + x[j] > x[i]
        less[i, j] = x[i] - x[j] < x[i]
        double[i, j] = x[i] * 2 > x[j] * 2
        whole[i, j] = (x[i] + x[j]) // 4 + (x[i] * x[j]) // 3
        rest[i, j] = (x[i] - x[j]) % 8 + (x[i] * x[j]) % 7
        return larger, less, double, whole, rest

    a, b = x[:, None], x[None, :]
    wanted = a + b > a, a - b < a, a * 2 > b * 2, (a + b) // 4 + (a * b) // 3, (a - b) % 8 + (a * b) % 7
    for one, other in zip(at_points(x), wanted, strict=True):
        agrees(one, np.broadcast_to(other, (length, length)))

    @op
    def in_rounds(x):
        s = x[0]
        larger = 0
        for t in range(1, len(x)):
            larger += s + x[t] > s
            s = s * 3 + x[t]
            larger += s // 4 + s % 8 > s % 7
        return s, larger

    with np.errstate(over="ignore"):
        s, larger = x[0], 0
        for each in x[1:]:
            larger += int(s + each > s)
            s = s * x.dtype.type(3) + each
            larger += int(s // 4 + s % 8 > s % 7)
    agrees(in_rounds(x)[0], s)
    assert in_rounds(x)[1] == larger


def test_index_variables_wrap_as_values() -> None:
    @op
    def f(x):
        y[i] = 2**62 * i % 7 + x[i]
        z[i] = (x[i] + 2**62 * i + 2**62 > x[i] + 2**62 * i) + x[i]
        return y, z

    x = np.zeros(6, np.int64)
    made = 2**62 * np.arange(6)
    agrees(f(x)[0], made % 7)
    agrees(f(x)[1], x + (made + 2**62 > made))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, -(2**64), 2**70])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_numbers_beyond_64_bits_are_compared_as_they_are(dtype: str, number: int) -> None:
    limits = np.iinfo(dtype)
    x = np.array([limits.min, 0, limits.max], dtype)

    @op
    def f(x):
        return x < number, x <= number, x > number, x >= number, x == number, x != number

    wanted = x < number, x <= number, x > number, x >= number, x == number, x != number
    for one, other in zip(f(x), wanted, strict=True):
        agrees(one, other)


# -- stores --------------------------------------------------------------------------------------------------


@cd
def store(target, x):
    target[i] = x[i]


@cd
def store_whole(target, x):
    target = x


@pytest.mark.parametrize("statement", [store, store_whole], ids=["indexed", "whole"])
@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_stores_follow_numpys_same_kind_rule(statement: Any, source: str, target: str) -> None:
    memory = np.zeros(4, target)
    if np.can_cast(source, target, "same_kind"):
        (found,) = statement.interpret(memory, sample(source))
        agrees(found, sample(source).astype(target))
    else:
        with pytest.raises(tc.DtypeError, match=f"a tensor of {target} cannot hold {source} values"):
            statement.interpret(memory, sample(source))


def test_real_is_the_floating_type_written() -> None:
    @op
    def f(x):
        y = tc.output(4)
        y[i] = x[i]
        return y

    @op
    def annotated(x):
        N = x.shape[0]
        y: real[N]
        y[i] = x[i]
        return y

    for function in (f, annotated):
        for dtype in ("float16", "float32", "float64"):
            agrees(function.interpret(sample(dtype)), sample(dtype))
    for dtype in ("int8", "int64", "bool"):
        agrees(annotated.interpret(sample(dtype)), sample(dtype).astype(np.float64))


def test_real_parameters_are_of_any_floating_type() -> None:
    @op
    def f(x: "real[N]"):  # noqa: UP037
        return x * N

    for dtype in ("float32", "float64"):
        assert f.interpret(sample(dtype)).dtype == dtype
    with pytest.raises(tc.DtypeError, match="`x` is int64, not a floating type"):
        f.interpret(np.arange(3))


# -- maxima, minima, positions -------------------------------------------------------------------------------


def test_max_and_min_propagate_nan() -> None:
    @op
    def f(x, y):
        a[i] = max(x[i, k])
        b[i] = min(x[i, k])
        c[i] >>= x[i, k]
        d[i] <<= x[i, k]
        e[i, k] = max(x[i, k], y[i, k])
        g[i, k] = min(x[i, k], y[i, k])
        return a, b, c, d, e, g, x.max(axis=1), x.min(axis=1)

    x = np.array([[1.0, np.nan, 3.0], [2.0, 5.0, -1.0], [np.nan, 1.0, 2.0]])
    y = np.array([[np.nan, 0.0, 4.0], [2.0, np.nan, 0.0], [1.0, 1.0, np.nan]])
    high, low = x.max(1), x.min(1)
    wanted = (high, low, high, low, np.maximum(x, y), np.minimum(x, y), high, low)
    for found in (f(x, y), f.interpret(x, y)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_argmax_and_argmin_take_the_first() -> None:
    @op
    def f(x):
        a[i] = argmax(x[i, k])
        b[i] = argmin(x[i, k])
        return a, b

    x = np.array([[1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0], [0.0, -1.0, -1.0, 0.0]])
    high, low = x.argmax(1), x.argmin(1)
    for found in (f(x), f.interpret(x)):
        for one, other in zip(found, (high, low), strict=True):
            agrees(one, other)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if np.dtype(name).kind in "iub"])
def test_bitwise_operators_on_integers_are_those_of_numpy(dtype: str) -> None:
    @op
    def f(a, b):
        r[i] = a[i] & b[i]
        s[i] = a[i] | b[i]
        t[i] = a[i] ^ b[i]
        u[i] = ~a[i]
        return r, s, t, u

    a, b = np.array([5, 0, 127, 1]).astype(dtype), np.array([3, 1, 64, 0]).astype(dtype)
    for one, other in zip(f.interpret(a, b), (a & b, a | b, a ^ b, ~a), strict=True):
        agrees(one, other)


@pytest.mark.parametrize("dtype", [name for name in NUMBERS if np.dtype(name).kind in "iu"])
def test_shifts_of_integers_are_those_of_numpy(dtype: str) -> None:
    @op
    def f(a, b):
        r[i] = a[i] << b[i]
        s[i] = a[i] >> b[i]
        return r, s

    a, b = np.array([5, 1, 100, 1]).astype(dtype), np.array([1, 0, 2, 6]).astype(dtype)
    for one, other in zip(f.interpret(a, b), (a << b, a >> b), strict=True):
        agrees(one, other)


def test_compiled_bitwise_operators() -> None:
    @op
    def f(a, b):
        return a & b, a | b, a ^ b, ~a, a << b, a >> b

    a, b = np.array([-5, 0, 127, 1], np.int32), np.array([3, 1, 5, 0], np.int32)
    for one, other in zip(f(a, b), (a & b, a | b, a ^ b, ~a, a << b, a >> b), strict=True):
        agrees(one, other)


def test_bitwise_operators_of_floats_are_errors() -> None:
    @op
    def f(a, b):
        r[i] = a[i] & b[i]
        return r

    with pytest.raises(tc.DtypeError, match="`&` takes integers or truth values, not float64"):
        f(np.ones(3), np.ones(3))


def test_run_time_integers_are_compared_as_the_numbers_that_they_are() -> None:
    @op
    def f(x, n):
        y[i] = x[i] < n
        z[i] = n == x[i]
        return y, z, x >= n

    for dtype, number in [("int8", 300), ("int8", -1), ("uint8", -1), ("uint64", -1), ("int16", 7)]:
        x = np.array([0, 7, 100]).astype(dtype)
        for one, other in zip(f.interpret(x, number), (x < number, number == x, x >= number), strict=True):
            agrees(one, other)
    agrees(f(np.array([0, 7], np.uint8), 300)[0], np.array([True, True]))


def test_run_time_integers_beyond_int64() -> None:
    @op
    def f(x, n):
        y[i] = x[i] * n + (n - 1)
        return y, x < n, x - n, n == x

    for dtype in ("uint64", "float32", "float64", "float16"):
        x = np.array([0, 1, 3]).astype(dtype)
        for number in (2**63, 2**64 - 1):
            with np.errstate(over="ignore", invalid="ignore"):
                wanted = x * number + (number - 1), x < number, x - number, number == x
                for one, other in zip(f.interpret(x, number) + f(x, number), wanted * 2, strict=True):
                    if dtype != "float16":
                        agrees(one, other)
    for dtype in ("int8", "int64", "uint32"):
        with pytest.raises(tc.DtypeError, match=f"the integer {2**63} does not fit in {dtype}"):
            f(np.ones(3, dtype), 2**63)

    @op
    def negative(x, n):
        return x + (5 - n)

    with pytest.raises(tc.DtypeError, match=r"`5 - n` does not fit into 64 bits(.|\n)*`x - n`"):
        negative(np.ones(3), 2**63)
    agrees(negative(np.ones(3), 7), np.full(3, -1.0))


def test_powers_of_nan() -> None:
    @op
    def f(x):
        return x ** float("nan"), x ** float("inf")

    for dtype in ("int8", "float32", "float64"):
        x = np.array([0, 1, 3]).astype(dtype)
        for one, other in zip(f.interpret(x), (x ** float("nan"), x ** float("inf")), strict=True):
            agrees(one, other)


def test_a_wrong_type_is_one_fault_even_where_its_sizes_are_used() -> None:
    @op
    def f(x: "float32[N]"):  # noqa: UP037
        y[i] = x[i] * N
        return y + x * N

    with pytest.raises(tc.DtypeError, match="`x` is float64, not float32") as caught:
        f.interpret(np.ones(3))
    assert len(caught.value.diagnostics) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_may_branch_on_element_types_as_numpy_names_them(dtype: str) -> None:
    @op
    def f(x):
        y = x + x
        same = [
            x.dtype == dtype,
            x.dtype == np.dtype(dtype),
            x.dtype == np.dtype(dtype).type,
            np.dtype(dtype) == x.dtype,
        ]
        other = [x.dtype == np.complex64, x.dtype == "complex64", x.dtype == 3, x.dtype != dtype]
        known = {np.dtype(dtype).name: 1}[x.dtype]
        return x if all(same) and not any(other) and known and x.dtype.kind == np.dtype(dtype).kind else y

    np.testing.assert_array_equal(f.interpret(sample(dtype)), sample(dtype))


@cd
def whole_accumulations(p, x, *, operator):
    if operator == "+=":
        p += x
    elif operator == "-=":
        p -= x
    elif operator == "*=":
        p *= x
    elif operator == "/=":
        p /= x
    elif operator == ">>=":
        p >>= x
    elif operator == "<<=":
        p <<= x
    elif operator == "|=":
        p |= x
    else:
        p &= x


WHOLE: dict[str, Any] = {
    "+=": lambda p, x: p + x,
    "-=": lambda p, x: p - x,
    "*=": lambda p, x: p * x,
    "/=": lambda p, x: p / x,
    ">>=": np.maximum,
    "<<=": np.minimum,
    "|=": np.logical_or,
    "&=": np.logical_and,
}


@pytest.mark.parametrize("operator", WHOLE)
@pytest.mark.parametrize("target", ["bool", "int8", "int64", "float16", "float32"])
@pytest.mark.parametrize("source", ["bool", "int8", "float64"])
def test_accumulations_onto_whole_arrays_mean_what_they_mean_with_indices(
    target: str, source: str, operator: str
) -> None:
    p, x = np.array([1, 0, 2, 1]).astype(target), np.array([1, 1, 2, 1]).astype(source)
    logical = operator in ("|=", "&=")
    number = target == "bool" and (operator == "/=" or (operator == "+=" and source != "bool"))
    subtracted = target == "bool" and operator == "-="
    inexact = operator == "/=" and np.dtype(target).kind == "i"
    if number or subtracted or inexact or not (logical or np.can_cast(source, target, "same_kind")):
        with pytest.raises(tc.DtypeError, match=r"a tensor of \w+ cannot hold|`-=` between truth values"):
            whole_accumulations.interpret(p, x, operator=operator)
        return
    (found,) = whole_accumulations.interpret(p, x, operator=operator)
    agrees(found, WHOLE[operator](p, x).astype(target))


def test_numbers_of_a_call_that_the_type_of_the_array_cannot_hold_are_infinite() -> None:
    @op
    def scaled(x, s):
        return x * s

    x = np.array([1e-20, 0, 1], np.float32)
    np.testing.assert_array_equal(scaled.interpret(x, 1e50), [np.inf, np.nan, np.inf])
