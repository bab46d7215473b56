"""Arrays that code assigns to a local name which holds one already: another array, as in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.outcomes import refusal
from tests.language.running_programs import program

V, P = np.linspace(1.0, 2.0, 8), np.random.default_rng(5).random((5, 6))

ANEW = {
    "another extent": ("r = a[1:] - a[:-1]\nb[0] = r[0]\nr = a[2:] * 1\nb[1] = r[5]", V),
    "extents that sizes say": (
        "I = b.shape[0]\nr = a[1:] - a[:-1]\nb[1:] = r[:I - 1]\nr = a[:I] - a[1:I + 1]\nb[1:] += r[1:]",
        V,
    ),
    "another rank": ("r = a * a\nb[0] = r[1, 2]\nr = a.sum(axis=0)\nb[1] = r[2]", P),
    "another type": ("r = np.zeros(3, dtype=np.int64)\nr[1] = 4\nr = a / 2\nb[0] = r[1]", V),
    "a view of the one before": ("r = a * 1\nw = r[1:]\nr = a * 2\nr[1] = 7.0\nb[0], b[1] = w[0], r[1]", V),
    "both in a round": (
        "for t in range(len(b)):\n    r = a[t:t + 3] * 1\n    b[0] += r[1]\n    r = a * 2\n    b[t] += r[7]",
        V,
    ),
    "what it was made of": ("r = a * 2\nr = r[1:] - r[:-1]\nb[0] = r[0]\nr *= 3\nb[1] = r[1]", V),
    "several at once": ("r, s = a[1:] * 1, a[2:] * 2\nr, s = s, r\nb[0] = r[5]\nb[1] = s[6]", V),
}


@pytest.mark.parametrize(("body", "given"), ANEW.values(), ids=ANEW)
def test_two_arrays_under_one_name_are_two(body: str, given: Any) -> None:
    found, wanted = np.zeros(5), np.zeros(5)
    program(body, "a, b", decorator="cd")(given.copy(), found)
    exec(body, {"a": given.copy(), "b": wanted, "np": np})
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(
    "body",
    ["b = a[1:] * 1", "r = a * 1\nfor t in range(len(a)):\n    r = a[1:] * 2\n    b[0] = r[0]"],
    ids=["a parameter", "what was there before a round"],
)
def test_memory_that_others_see_keeps_its_shape(body: str) -> None:
    assert "does not broadcast to" in refusal(tc.ShapeError, program(body, "a, b", decorator="cd"), V, np.zeros(2))


def test_whoever_reuses_the_name_of_a_parameter_is_told() -> None:
    message = refusal(tc.ShapeError, program("b = a[1:] * 1", "a, b", decorator="cd"), V, np.zeros(2))
    assert "in code `b = ...` stores into what the name holds: call another array by another name" in message


def test_numbers_fill_and_declared_targets_keep_their_shape() -> None:
    body = "r = a * 1\nr = 3.0\nb[...] = r[2]\ns: real[2]\ns = a[0]\ns = 2 * s\nb[1] = s[1]"
    b = np.zeros(2)
    program(body, "a, b", decorator="cd")(V, b)
    assert b.tolist() == [3.0, 2.0]
    message = refusal(tc.ShapeError, program("s: real[2]\ns = a[0]\ns = a\nb[0] = s[0]", "a, b", decorator="cd"), V, b)
    assert "does not broadcast to `s`" in message
