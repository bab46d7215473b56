"""Single rules of the simplifier: what they make of a value or a program, and that it means the same."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.expressions import Read
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_expr, format_program
from tcdsl.simplification import simplify
from tcdsl.simplification.expressions.factoring import factored
from tcdsl.simplification.statement_points import with_brackets_in_domain
from tests.autodiff.programs import program, values

INPUTS = "a: float64; b: float64; c: float64; d: float64"
# Zero times an unknown, the difference of infinities and their quotient must stay what they are.
SPECIAL = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)


def of_value(text: str) -> Program:
    return program(INPUTS, "y: float64", f"y[()] = {text} for []:")


def shortened(text: str) -> str:
    [statement] = simplify(of_value(text)).statements
    return format_expr(statement.value)


EXACT = {
    # constants first, and one of them
    "a * (2.0 * b)": "2.0 * b * a",
    "2.0 * a * (2.0 * b)": "4.0 * a * b",
    "a * 3.0": "3.0 * a",
    "3.0 * a * (5.0 * b)": "3.0 * a * (5.0 * b)",
    "3.0 * a * (0.5 * b)": "1.5 * a * b",
    # powers of two cancel
    "2.0 * a / (2.0 * b)": "a / b",
    "2.0 * a * b / (4.0 * c)": "a * b / (2.0 * c)",
    "8.0 * a / (2.0 * b * c)": "4.0 * a / (b * c)",
    "3.0 * a / (3.0 * b)": "3.0 * a / (3.0 * b)",
    "a / 4.0": "0.25 * a",
    "a / 3.0": "a / 3.0",
    # signs
    "--a": "a",
    "-(a - b)": "-(a - b)",
    "-a - b": "-a - b",
    "-a + b": "b - a",
    "a - -b": "a + b",
    "-a * b": "-(a * b)",
    "-a * -b": "a * b",
    "-a / b": "-(a / b)",
    # an unknown may be NaN
    "0.0 * a": "0.0 * a",
    "a - a": "a - a",
    "a / a": "a / a",
    "a * b - b * a": "let(t2 := a * b, t2 - t2)",
    "a + 0.0": "a + 0.0",
    "0.0 - a": "0.0 - a",
    "a - 0.0": "a",
    "a + -0.0": "a",
    "fma(a, b, 0.0)": "fma(a, b, 0.0)",
    "-(a if b > 0.0 else 0.0)": "-a if b > 0.0 else -0.0",
    "1.0 * a + 0.0 * b": "a + 0.0 * b",
}


@pytest.mark.parametrize(("text", "wanted"), EXACT.items())
def test_values_are_shortened(text: str, wanted: str) -> None:
    assert _with_plain_names(shortened(text)) == _with_plain_names(wanted)


def _with_plain_names(text: str) -> str:
    # Local names are numbered by how they were found.
    names: dict[str, str] = {}
    return re.sub(r"\bt\d+\b", lambda match: names.setdefault(match[0], f"t{len(names)}"), text)


@pytest.mark.parametrize("text", EXACT)
def test_shortened_values_are_the_same_numbers(text: str) -> None:
    before, after = of_value(text), simplify(of_value(text))
    assert simplify(after) == after
    generator = np.random.default_rng(0)
    cases = [*itertools.product(SPECIAL, repeat=2), *generator.normal(size=(20, 2))]
    for first, second in cases:
        for arguments in ((first, second, 0.75, -1.25), (0.75, first, second, 3.0)):
            found, wanted = values(after, *arguments)[0], values(before, *arguments)[0]
            # Equal to the last bit, that of signs included.
            np.testing.assert_array_equal(found, wanted)
            assert np.isnan(found) or np.signbit(found) == np.signbit(wanted), arguments


FACTORED = {
    "a * b + a * c": "a * (b + c)",
    "b * a - c * a": "a * (b - c)",
    "d * a * b + d * (a * c)": "d * a * (b + c)",
    "a * b + a * c + a * d": "a * (b + c + d)",
    "2.0 * a * (b - c) - 2.0 * d * (c - b)": "2.0 * (b - c) * (a + d)",
    "2.0 * a + a": "3.0 * a",
    "2.0 * a + (2.0 * a + a)": "5.0 * a",
    "2.0 * a - a": "a",
    # signs, of derivatives alone: a zero's may change
    "-(a - b)": "b - a",
    "-a - b": "-(a + b)",
    "(a - b) * c + (b - a) * d": "(a - b) * (c - d)",
    # nothing to gain
    "a * b + c * d": "a * b + c * d",
    "a * b + a": "a * b + a",
    "a - a": "a - a",
    "2.0 * a + 2.0 * b": "2.0 * a + 2.0 * b",
    "a * b + exp(a) * (a * b)": "let(t0 := a * b, t0 + exp(a) * t0)",
    "b * a if a > b else c * a + d * a": "b * a if a > b else a * (c + d)",
}


@pytest.mark.parametrize(("text", "wanted"), FACTORED.items())
def test_common_factors(text: str, wanted: str) -> None:
    [statement] = of_value(text).statements
    found = factored(statement.value)
    assert _with_plain_names(format_expr(found)) == wanted
    assert factored(found) == found
    for arguments in np.random.default_rng(1).normal(size=(20, 4)):
        made = program(INPUTS, "y: float64", f"y[()] = {format_expr(found)} for []:")
        np.testing.assert_allclose(values(made, *arguments)[0], values(of_value(text), *arguments)[0], rtol=1e-12)


def test_a_sign_goes_into_the_accumulator() -> None:
    made = program("x: float64[N]", "y: float64", "y[()] += -(x[i] * x[i]) for [i]: 0 <= i < N")
    assert "y[()] -= x[i] * x[i]" in format_program(simplify(made))
    made = program("x: float64[N]", "y: float64", "y[()] -= -(x[i] * x[i]) for [i]: 0 <= i < N")
    assert "y[()] += x[i] * x[i]" in format_program(simplify(made))


def test_sums_that_only_count_become_products() -> None:
    made = program(
        "x: float64[N]; w: float64[K]", "y: float64[N]", "y[i] += x[i] for [i, k]: 0 <= i < N and 0 <= k < K"
    )
    assert "y[i] = float64(K) * x[i]  for [i]: K > 0 and 0 <= i < N" in format_program(simplify(made))
    for size in (0, 1, 3):
        for x in ([1.0, -0.0], [np.inf, np.nan]):
            found = values(simplify(made), x, np.ones(size))[0]
            np.testing.assert_array_equal(found, values(made, x, np.ones(size))[0])


COUNTED = {
    # the number of points depends on the others
    "y[i] -= x[i] for [i, k]: 0 <= i < N and i <= k < N": "y[i] = -(float64(N - i) * x[i])  for [i]: 0 <= i < N",
    "y[i] += x[i] for [i, k, l]: 0 <= i < N and 0 <= k < N and 0 <= l < 3": "y[i] = 3.0 * x[i] * float64(N)",
    # points at which the term is used, or tested, or not in one stretch
    "y[i] += x[k] for [i, k]: 0 <= i < N and 0 <= k < N": "y[i] += x[k]",
    "y[i] += x[i] for [i, k]: 0 <= i < N and 0 <= k < N if x[k] > 0.0": "y[i] += x[i]",
    "y[i] += x[i] for [i, k]: 0 <= i < N and 0 <= k < N and k % 2 = 0": "y[i] += x[i]",
    "y[i] += x[i] for [i, k]: 0 <= i < N and 0 <= k < N and (k < 2 or k > 4)": "y[i] += x[i]",
    "y[i] *= x[i] for [i, k]: 0 <= i < N and 0 <= k < 3": "y[i] *= x[i]",
}


@pytest.mark.parametrize(("body", "wanted"), COUNTED.items())
def test_what_counts(body: str, wanted: str) -> None:
    made = program("x: float64[N]", "y: float64[N]", body)
    short = simplify(made)
    assert wanted in format_program(short)
    for size in (0, 1, 2, 5, 6):
        x = np.random.default_rng(size).normal(size=size)
        np.testing.assert_allclose(values(short, x)[0], values(made, x)[0], rtol=1e-14)


def chain(*stores: str) -> Program:
    """Stores into d, one after the other."""
    names = [f"d{k}" for k in range(len(stores))]
    lines = []
    for k, store in enumerate(stores):
        value, points = store.split(" for ")
        start = "" if k == 0 else f" from {names[k - 1]}"
        lines.append(f"{names[k]}{value}{start} for {points}")
    tensors = "; ".join(f"{name}: float64[N]" for name in names)
    return program("g: float64; x: float64[N]", tensors, "\n".join(lines), names[-1])


UNITED = {
    ("[0] = g for []: N > 4", "[1] += g for []: N > 4", "[2] += g for []: N > 4"): 1,
    ("[2] += g for []: N > 4", "[1] += g for []: N > 4", "[3] += g for []: N > 4"): 1,
    ("[0] = g for []: N > 4", "[2] += g for []: N > 4", "[3] += g for []: N > 4"): 2,
    ("[i] = x[i] for [i]: 0 <= i < 3 and i < N", "[i] += x[i] for [i]: 3 <= i < N"): 1,
    ("[i] = x[i] for [i]: 0 <= i < 3 and i < N - 1", "[i - 1] += x[i - 1] for [i]: 4 <= i < N"): 1,
    # other values, other signs, the same cells
    ("[0] = g for []: N > 4", "[1] += 2.0 * g for []: N > 4"): 2,
    ("[0] += g for []: N > 4", "[1] -= g for []: N > 4"): 2,
    ("[0] = g for []: N > 4", "[0] += g for []: N > 4"): 2,
    ("[i] = x[i] for [i]: 0 <= i < 3 and i < N", "[i] += x[i - 1] for [i]: 3 <= i < N"): 2,
    # a later store wins
    ("[0] = g for []: N > 4", "[1] = g for []: N > 4"): 2,
    ("[1] += x[1] for []: N > 4", "[1] = g for []: N > 4", "[2] += g for []: N > 4"): 3,
}


@pytest.mark.parametrize(("stores", "count"), UNITED.items())
def test_stores_into_neighbours_are_united(stores: tuple[str, ...], count: int) -> None:
    made = chain(*stores)
    short = simplify(made)
    assert len(short.statements) == count
    assert simplify(short) == short
    for size in (3, 5, 6):
        x = np.random.default_rng(size).normal(size=size)
        np.testing.assert_array_equal(values(short, 2.5, x)[0], values(made, 2.5, x)[0])


def test_versions_that_are_read_stay() -> None:
    body = "d0[0] = g for []: N > 4\nd1[1] += g from d0 for []: N > 4"
    made = program("g: float64; x: float64[N]", "d0: float64[N]; d1: float64[N]", body, "d0, d1")
    short = simplify(made)
    assert len(short.statements) == 2
    for before, after in zip(values(made, 2.0, np.ones(5)), values(short, 2.0, np.ones(5)), strict=True):
        np.testing.assert_array_equal(after, before)


VERSIONS = {
    # read where the later version is the same
    "y[i] = b[i + 1] for [i]: 0 <= i <= N - 2": True,
    "y[i] = b[0] + x[i] for [i]: 0 <= i < N": False,
    "y[i] = 2.0 * b[i] for [i]: 0 <= i < N": False,
    "y[i] = b[clamp(i + 1)] for [i]: 0 <= i < N": False,
    "y[i] = x[i] for [i]: 0 <= i < N if b[i] > 0.0": False,
}


@pytest.mark.parametrize(("reader", "unread"), VERSIONS.items())
def test_versions_whose_changes_nobody_reads(reader: str, unread: bool) -> None:
    body = "a[i] += x[k] for [i, k]: 0 <= i < N and 0 <= k <= i\nb[0] = 7.0 from a for []: N > 0\n" + reader
    made = program("x: float64[N]", "a: float64[N]; b: float64[N]; y: float64[N]", body)
    short = simplify(made)
    assert any(statement.target.tensor == "b" for statement in short.statements) != unread
    for size in (0, 1, 4):
        x = np.random.default_rng(size).normal(size=size)
        np.testing.assert_array_equal(values(short, x)[0], values(made, x)[0])


def test_conditions_that_the_sizes_fulfil() -> None:
    text = "assert N >= 3\nassert K == 2"
    made = program(
        f"x: float64[N]; w: float64[K]\n{text}",
        "y: float64[N]",
        "y[i] = x[i] * w[1] for [i]: 0 <= i < N and N > 2 and K > 1",
    )
    assert "for [i]: 0 <= i < N\n" in format_program(simplify(made))
    made = program("x: float64[N]; w: float64[K]", "y: float64[N]", "y[i] = x[i] * w[1] for [i]: 0 <= i < N and K > 1")
    assert "K > 1" in format_program(simplify(made))


def test_a_sum_leaves_out_what_a_bracket_makes_zero() -> None:
    text = """program triangles
input A: float64[N, N]
tensor y: float64[N]
tensor z: float64[N, N]
y[i] += A[i, j] if j <= i else 0.0  for [i, j]: 0 <= i < N and 0 <= j < N
z[i, j] = A[i, j] if j <= i else 0.0  for [i, j]: 0 <= i < N and 0 <= j < N
return y, z
"""
    summed, stored = parse_program(text).statements
    assert isinstance(with_brackets_in_domain(summed).value, Read)
    assert with_brackets_in_domain(stored) == stored


@op
def differences(X):
    Y[i] = X[i + 2] - X[i]
    return Y


def test_what_assertions_make_as_long_is_copied_nowhere() -> None:
    adjoint = tc.grad(lambda X, W: (differences(X) * W).sum())
    X, W = np.arange(6.0), np.array([1.0, 2.0, 3.0, 5.0])
    np.testing.assert_array_equal(adjoint(X, W), [-1, -2, -2, -3, 3, 5])
    assert " 0 of temporaries" in adjoint.explain("loops", X, W)
