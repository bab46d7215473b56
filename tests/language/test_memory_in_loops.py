"""Memory of `@cd` in loops that run: parts of arguments, several names of one memory, and what takes turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import cd
from tcdsl.errors import DslSyntaxError
from tests.language.running_programs import program

GENERATOR = np.random.default_rng(23)
A, B, M = GENERATOR.random(5), GENERATOR.random(5), GENERATOR.random((4, 3))


@cd
def a_part_of_a_round(a, n):
    for t in range(n):
        z = a[1:]
        z += a[:-1] * (t + 1)


@cd
def a_part_bound_before_and_again(a, b, n):
    z = a[1:4]
    for t in range(n):
        z *= 2 + t
        b[:3] += z
        z = a[1:4]


@cd
def two_parts(a, b, n):
    low, high = a[:3], a[2:]
    for t in range(n):
        low += b[t]
        high *= 0.5
        b[0] += low[2]


@cd
def rows_by_number(m, n):
    for t in range(n):
        row = m[t % 2]
        row += m[(t + 1) % 2]


@cd
def rows_and_another(m, x):
    for t in range(m.shape[0]):
        m[t] += x
        if m[t, 0] > 1:
            m[t] *= 0.5
        x -= 0.1 * m[t]


@cd
def copies_take_turns(a, b, n):
    for _ in range(n):
        both = a + b
        a[:] = b
        b[:] = both


@cd
def transposed(m, n):
    d = m.T
    for t in range(n):
        d[0] += 1 + t
        m[1] += d[0, 0]


@cd
def until_large(a, n):
    k = 0
    while a[0] < 100 and k < n:
        a *= 2
        k += 1


@cd
def over_cells(a, b):
    for x in a:
        b += x
    for k, x in enumerate(a):
        a[k] = x * 2


@cd
def scale(w, s):
    w *= s


@cd
def calling(a, b, n):
    for _ in range(n):
        scale(a, 2)
        scale(b[1:], 3)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (a_part_of_a_round, (A, 3)),
        (a_part_bound_before_and_again, (A, B, 3)),
        (two_parts, (A, B, 4)),
        (rows_by_number, (M, 3)),
        (rows_and_another, (M, B[:3])),
        (copies_take_turns, (A, B, 5)),
        (transposed, (M, 3)),
        (until_large, (A, 3)),
        (until_large, (A, 30)),
        (over_cells, (A, np.array(0.0))),
    ],
)
def test_code_changes_what_numpy_changes(function: Any, arguments: tuple[Any, ...]) -> None:
    wanted = [np.array(each) if isinstance(each, np.ndarray) else each for each in arguments]
    function.function(*wanted)
    found = [np.array(each) if isinstance(each, np.ndarray) else each for each in arguments]
    function(*found)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other)


def test_code_called_in_rounds_changes_parts() -> None:
    a, b = A.copy(), B.copy()
    calling(a, b, 3)
    np.testing.assert_allclose(a, 8 * A)
    np.testing.assert_allclose(b, np.r_[B[0], 27 * B[1:]])


@cd
def named_in_arms(a, b, n):
    for t in range(n):
        z = a if t % 2 == 0 else b
        z += 1
        a[0] += z[1]


def test_a_name_for_memory_holds_a_copy() -> None:
    a, b = A.copy(), B.copy()
    named_in_arms(a, b, 3)
    np.testing.assert_allclose(a, np.r_[A[0] + 2 * (A[1] + 1) + B[1] + 1, A[1:]])
    np.testing.assert_allclose(b, B)


@cd
def moving(a, n):
    z = a[1:]
    for _ in range(n):
        z *= 2
        z = a[:-1]


def test_a_name_does_not_move_from_part_to_part() -> None:
    with pytest.raises(DslSyntaxError, match="`z` is a part of memory, and becomes something else in a loop that runs"):
        moving(A.copy(), 3)


UNPACKED = [
    "m = w + 4\na, b = 1, m\nfor k in range(N):\n    x[k] = m\n    b += 1",
    "m = w + 4\n(a, b), c = (1, m), 2\nb += 1\nx[...] = m",
    "m = w + 4\nc = 1.5\nfor k in range(N):\n    c = m\n    c = 0.5\nx[...] = m + 0 * c",
]


@pytest.mark.parametrize("body", UNPACKED)
def test_names_that_are_bound_together_copy_as_one_does(body: str) -> None:
    x = np.zeros(3)
    function = program(body, "x: 'real[N]', w", decorator="cd")
    function(x, np.array(4.0))
    np.testing.assert_array_equal(x, np.full(3, 8.0))


def test_arguments_that_are_unpacked_into_new_names_stay() -> None:
    x, y = np.zeros(2), np.ones(2)
    program("p, q = x, y\np += 1\ny[...] = p + q", "x, y", decorator="cd")(x, y)
    np.testing.assert_array_equal(x, [0.0, 0.0])
    np.testing.assert_array_equal(y, [2.0, 2.0])


def test_cells_are_swapped_where_an_index_is_a_maximum() -> None:
    x = np.arange(4.0)
    body = "for k in range(N):\n    x[k], x[max(k - 1, 0)] = x[max(k - 1, 0)], x[k]"
    program(body, "x: 'real[N]'", decorator="cd")(x)
    np.testing.assert_array_equal(x, [1.0, 2.0, 3.0, 0.0])
    np.testing.assert_array_equal(program(f"{body}\nreturn x", "x: 'real[N]'")(np.arange(4.0)), x)
