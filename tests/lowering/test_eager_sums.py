"""Sums over the rounds before go along memory, where nothing else meets what the rounds write."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd
from tests.differential.loading import loaded

EAGER = (
    # The row of a factor, and what is solved with a transpose.
    ("A[i, j]", "A[i, k] * A[k, j]", "s * A[j, j]"),
    ("x[j] + i", "B[j] * A[k, j]", "s - A[j, i]"),
    ("x[j]", "y[k] * A[k, j] + y[k]", "s + 1"),
    ("A[j, i]", "y[k] * A[k, j] * x[j]", "s"),
)
LEFT = (
    ("A[i, j]", "A[i, k] * A[j, k]", "s"),
    ("A[i, j]", "A[i, k] * A[i, j]", "s"),
    ("A[i, j]", "A[i, k] * A[k, j]", "s * A[i, 0]"),
    ("A[i, 0]", "A[i, k] * A[k, j]", "s"),
    ("A[i, j]", "x[k] * A[k, j]", "s"),
)


def _text(given: str, term: str, value: str) -> str:
    target = "A[i, j]" if "A[i, k]" in term or given.startswith("A[i") else "y[j]"
    return f"""
def f(A: 'int64[M, M]', x: 'int64[M]', y: 'int64[M]', n):
    for i in range(n):
        for j in range(i):
            s = {given}
            for k in range(j):
                s -= {term.replace("B[j]", "y[k]")}
            {target} = {value}
"""


@pytest.mark.parametrize(("parts", "eager"), [*((each, True) for each in EAGER), *((each, False) for each in LEFT)])
def test_terms_are_added_as_soon_as_they_are_there(parts: tuple[str, str, str], eager: bool) -> None:
    text = _text(*parts)
    function = loaded(text, decorator="cd")
    python: dict[str, object] = {}
    exec(text.replace("int64[M, M]", "").replace("int64[M]", ""), python)
    for n in (0, 1, 2, 9):
        given = [np.random.default_rng(n).integers(-3, 4, shape) for shape in ((n, n), n, n)]
        found, wanted, plain = ([each.copy() for each in given] for _ in range(3))
        function(*found, n)
        with np.errstate(over="ignore"):
            python["f"](*wanted, n)  # type: ignore[operator]
        with tc.config(optimize="-eager_sums"):
            function(*plain, n)
        for one, other, third in zip(found, wanted, plain, strict=True):
            np.testing.assert_array_equal(one, other, text)
            np.testing.assert_array_equal(third, other, text)
    assert ("+ 1 .. " in function.explain("loops", *given, n)) == eager
    with tc.config(optimize="-eager_sums"):
        assert "+ 1 .. " not in function.explain("loops", *given, n)


def test_rows_of_a_factorization() -> None:
    @cd
    def factored(A: real[N, N]):
        for i in range(N):
            for j in range(i):
                s = A[i, j]
                for k in range(j):
                    s -= A[i, k] * A[k, j]
                A[i, j] = s / A[j, j]
            for j in range(i, N):
                for k in range(i):
                    A[i, j] -= A[i, k] * A[k, j]

    given = np.random.default_rng(0).random((20, 20)) + 20 * np.eye(20)
    found = given.copy()
    factored(found)
    lower, upper = np.tril(found, -1) + np.eye(20), np.triu(found)
    np.testing.assert_allclose(lower @ upper, given, rtol=1e-12)
    assert factored.explain("loops", given).count("+ 1 .. ") == 1
