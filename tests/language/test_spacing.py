"""``c =+ a`` means one thing to Python and another in the literal spelling: on tensors plain Python may not say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

# fmt: off


@op
def indexed(A):
    C[i] =+ A[i], i < 2
    return C


@op
def whole(A):
    B = A * 2
    B =- A
    return B, A


@op
def local(A):
    z =+ A[i]
    C[i] = z * 2
    return C


@cd
def stored(a, b):
    a =+ b
    b = +a


@pytest.mark.parametrize(
    ("function", "sign", "shown"),
    [
        (indexed, "+", "    C[i] =+ A[i], i < 2\n         ^^\n"),
        (whole, "-", "    B =- A\n      ^^\n"),
        (local, "+", "    z =+ A[i]\n      ^^\n"),
        (stored, "+", "    a =+ b\n      ^^\n"),
    ],
)
def test_tensors(function: Callable[..., Any], sign: str, shown: str) -> None:
    arguments = [np.ones(3) for _ in range(1 + (function is stored))]
    with pytest.raises(tc.DslSyntaxError) as raised:
        function(*arguments)
    message = str(raised.value)
    assert f"`={sign}` is Python's assignment of `{sign}a`; it accumulates in the literal spelling only" in message
    assert shown in message
    assert f"write `c {sign}= a`, or `c = {sign}a` to assign" in message
    assert "2 faults" not in message
    for argument in arguments:
        np.testing.assert_array_equal(argument, 1.0)


@op
def ordinary(A, *, n):
    n =- 1
    N, = A.shape
    N =-N
    m =+n
    found = {}
    found["n"] =- n
    B=-A
    C[i]=-A[i]
    D = -A
    E =  +A
    return B + C + D - E, m, found["n"]


def test_python_values_and_other_spacings() -> None:
    values, m, n = ordinary(np.ones(2), n=5)
    np.testing.assert_array_equal(values, -4.0)
    assert (m, n) == (-1, 1)
