"""Definitions that call others: each is checked once, whoever calls it, and each call is right or wrong as its
statements would be.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest

from tcdsl import ShapeError
from tcdsl.comprehensions.definitions import definitions_of
from tcdsl.frontend.comprehensions import recording
from tcdsl.frontend.comprehensions.outcomes import Outcome

COUNT = 20
# The first definition, and how each next one calls the one before it.
KINDS = {
    "call": ("def f0(float(N) A) -> (B) { B(i) = A(i) }", "def f{k}(float(N) A) -> (B) {{ B = f{j}(A) }}"),
    "statement": (
        "def f0(float(N) A) -> (B) { B(i) = A(i) }",
        "def f{k}(float(N) A) -> (B) {{ B = f{j}(A) B(i) = B(i) + 1.0 }}",
    ),
    "smaller and smaller": (
        "def f0(float(N) A) -> (B) { B(i) = A(i) + A(i + 1) }",
        "def f{k}(float(N) A) -> (B) {{ B(i) = A(i) + A(i + 1) B = f{j}(B) }}",
    ),
    "two calls": (
        "def f0(float(N) A) -> (B) { B(i) = A(i) }",
        "def f{k}(float(N) A) -> (B) {{ B = f{j}(A) B = f0(B) }}",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_are_inferred_once(kind: str) -> None:
    first, following = KINDS[kind]
    text = "\n".join([first, *(following.format(k=k, j=k - 1) for k in range(1, COUNT))])
    with patch.object(recording, "required_ranges", wraps=recording.required_ranges) as inferred:
        defs = definitions_of(text)
    assert inferred.call_count <= COUNT
    outcomes: dict[str, Outcome] = {}
    for name in defs:
        outcomes[name] = defs[name].template.check(outcomes)
        assert len(outcomes[name].assertions) <= 2  # nor is more and more asserted


SHORT = "def halved(float(N) A) -> (B) { B(i) = A(2 * i) + A(2 * i + 1) where i in 0:N / 2 }\n"
PAIR = "def pair(float(N) A, float(M) B) -> (C) { C(i) = A(i) + B(i) where i in 0:N }\n"
LATE = "def late(float(N) A) -> (B) { B(i) = A(i) where i in 2:N }\n"
FLAT = "def flat(float(N, M) A) -> (B) { B(i) = A(0, 0) where i in 0:N * M }\n"

# What a definition that calls one of these comes to, as the shapes for N = 7, or the fault.
OUTCOMES = {
    "sizes": (SHORT, "def f(float(N) A) -> (B) { B = halved(A) B = halved(B) }", [(7,)], (1,)),
    "numbers": (
        SHORT,
        "def f(float(N) A) -> (B, C) { B(i) = A(i) where i in 0:6 C = halved(B) }",
        [(7,)],
        ((6,), (3,)),
    ),
    "products": (FLAT, "def f(float(N) A) -> (B, C) { B(i, j) = A(i) * A(j) C = flat(B) }", [(7,)], ((7, 7), (49,))),
    "the same twice": (PAIR, "def f(float(N) A) -> (B) { B = pair(A, A) }", [(7,)], (7,)),
    "an assertion": (
        PAIR,
        "def f(float(N) A, float(M) B) -> (C) { C = pair(A, B) }",
        [(7,), (6,)],
        "`i` on axis 0 of B is out of range",
    ),
    "never": (
        PAIR,
        "def f(float(N) A) -> (B, C) { B(i) = A(i + 1) where i in 0:N - 1 C = pair(A, B) }",
        [],
        "`i` on axis 0 of B is out of range",
    ),
    "never for numbers": (
        PAIR,
        "def f(float(3) A, float(2) B) -> (C) { C = pair(A, B) }",
        [(3,), (2,)],
        "`i` on axis 0 of B is out of range",
    ),
    "the first cells": (
        LATE,
        "def f(float(N) A) -> (B, C) { B = late(A) C(i) = B(i + 2) }",
        [(7,)],
        ((7,), (5,)),
    ),
    "what the caller calls it": (
        LATE,
        "def f(float(N) A) -> (T, C) { T = late(A) C(i) = T(i + 1) where i in 0:N }",
        [],
        "`i + 1` on axis 0 of T is out of range",
    ),
}


@pytest.mark.parametrize("kind", OUTCOMES)
def test_calls_come_to_what_their_statements_do(kind: str) -> None:
    called, text, shapes, expected = OUTCOMES[kind]
    if isinstance(expected, str):
        with pytest.raises(ShapeError, match=expected.replace("+", r"\+")):
            definitions_of(called + text)["f"].shapes(*shapes)
    else:
        assert definitions_of(called + text)["f"].shapes(*shapes) == expected
