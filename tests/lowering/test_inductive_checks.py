"""Bounds of integers that loops carry: which checks of positions fall away, and which must stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import islpy as isl
import numpy as np
import pytest

from tcdsl.errors import DataIndexError
from tcdsl.ir.build import size
from tcdsl.lowering.loopir import integer_facts
from tcdsl.lowering.loopir.integer_facts import IntegerFacts, added
from tcdsl.lowering.loopir.intervals import Interval
from tests.language.running_programs import program

X = np.random.default_rng(5).random(9)
P = np.array([3, 1, 40, 1, 5, 9, 2, 6, 5])


def checks(body: str, parameters: str, *given: Any) -> int:
    """How many checks of positions are left in the loops of a program."""
    return str(program(body, parameters).explain("loops", *given)).count("check ")


COUNTED = "k, s = 0, 0.0\nfor t in range(N):\n    s = s + x[k]\n    k = k + 1\nreturn s"
BACKWARDS = "k, s = N - 1, 0.0\nwhile k >= 0:\n    s = s * 0.5 + x[k]\n    k = k - 1\nreturn s"
BETWEEN = (
    "lo, hi, s = 0, N - 1, 0.0\nwhile lo < hi:\n    s = s + x[lo] * x[hi]\n    lo, hi = lo + 1, hi - 1\nreturn s + lo"
)
BISECTION = """
lo, hi = 0, N
while lo < hi:
    mid = (lo + hi) // 2
    if x[mid] < v:
        lo = mid + 1
    else:
        hi = mid
return lo"""
PACKED = """
y: real[N]
k = 0
for t in range(N):
    if x[t] > 0.5:
        y[k] = x[t]
        k = k + 1
return y"""
INSERTION = """
y = x * 1
for t in range(N):
    v = y[t]
    j = t
    while j > 0 and y[j - 1] > v:
        y[j] = y[j - 1]
        j = j - 1
    y[j] = v
return y"""
PARTITION = """
y = x * 1
i, j = 0, N - 1
while i <= j:
    if y[i] < v:
        i = i + 1
    else:
        a = y[j] * 1
        y[j] = y[i]
        y[i] = a
        j = j - 1
return y"""

# Ends of loops are the smaller or larger of two, and what the condition says is about a name beside the counted one.
GAPS = """
y = x * 1
gap = N // 2
while gap > 0:
    for i in range(gap, N):
        w = y[i]
        j = i
        while j >= gap and y[j - gap] > w:
            y[j] = y[j - gap]
            j = j - gap
        y[j] = w
    gap = gap // 2
return y"""


SHIFTED = BISECTION.replace("// 2", ">> 1")
CANNOT_FAIL = [COUNTED, BACKWARDS, BETWEEN, BISECTION, SHIFTED, PACKED, INSERTION, PARTITION, GAPS]


@pytest.mark.parametrize("body", CANNOT_FAIL)
def test_what_cannot_fail_is_not_checked(body: str) -> None:
    assert checks(body.strip(), "x: 'real[N]', v", X, 0.5) == 0
    if body in (INSERTION, GAPS):
        np.testing.assert_array_equal(program(body.strip(), "x: 'real[N]', v")(X, 0.5), np.sort(X))


def test_the_middle_of_a_range_is_computed_in_64_bits() -> None:
    # Where it is known that the sum does not wrap around.
    ordered = np.sort(X)
    read = SHIFTED.replace("x[mid]", "x[(lo + hi) >> 1]")
    for body, wide in ((read.replace(">> 1", "// 2"), False), (read, False), (read.replace("0, N", "0, p[0]"), True)):
        found = program(body.strip(), "x: 'real[N]', p, v")
        assert ("int128" in str(found.explain("loops", ordered, P + 6, 0.5))) == wide
        for v in (-1.0, 0.5, 2.0):
            assert int(found(ordered, P + 6, v)) == np.searchsorted(ordered, v)
    with pytest.raises(DataIndexError, match="4611686018427387903"):
        found(ordered, P + (2**63 - 4), 0.5)


def test_of_a_merge_one_check_is_left() -> None:
    # That of b where a is at its end: there i + j = t says that it is in range, of which nothing is known.
    body = """
out: real[N + M]
i, j = 0, 0
for t in range(N + M):
    if i < N and (j >= M or a[i] <= b[j]):
        out[t] = a[i]
        i = i + 1
    else:
        out[t] = b[j]
        j = j + 1
return out"""
    merged = program(body.strip(), "a: 'real[N]', b: 'real[M]'")
    a, b = np.sort(X), np.sort(X[:5]) + 0.1
    assert str(merged.explain("loops", a, b)).count("check ") == 1
    np.testing.assert_array_equal(merged(a, b), np.sort(np.concatenate([a, b])))
    assert merged(a, b[:0]).tolist() == a.tolist()


# Each leaves out one of the conditions of an induction, so that a position may be out of range.
OUTSIDE = {
    "the first value is below": COUNTED.replace("k, s = 0,", "k, s = -1,"),
    "the first value is above": BACKWARDS.replace("N - 1, 0.0", "N, 0.0"),
    "the first value is data": COUNTED.replace("k, s = 0,", "k, s = p[0],"),
    "a step leaves it": COUNTED.replace("k + 1", "k + 2"),
    "the condition allows more": BACKWARDS.replace("k >= 0", "k >= -1"),
    "the condition is about data": COUNTED.replace("for t in range(N)", "while k < n"),
    "the condition is about another": BETWEEN.replace("lo < hi", "lo < N"),
    "the condition is a choice": BACKWARDS.replace("k >= 0", "k >= 0 or x[0] > 2"),
    "steps go down": COUNTED.replace("k + 1", "k - 1"),
    "the step is data": COUNTED.replace("k + 1", "k + p[t]"),
    "the step wraps around": COUNTED.replace("k + 1", "k + 4611686018427387904"),
    "the step is a product": COUNTED.replace("k, s = 0,", "k, s = 2,").replace("k + 1", "k * k"),
    "a branch writes more": COUNTED.replace("k = k + 1", "k = k + 1\n    if x[t] > 0.5:\n        k = k + 1"),
    "the other arm writes more": COUNTED.replace(
        "k = k + 1", "if x[t] > 0.5:\n        k = k + 1\n    else:\n        k = p[t]"
    ),
    "an arm knows less than the other": PARTITION.replace("else:", "elif i < N:").replace("i <= j", "i <= N"),
    "what an arm knows is used behind it": (
        "k, s = 0, 0.0\nfor t in range(N):\n    q = t + p[0]\n    if q < N:\n        s = s + x[t]\n"
        "    s = s + x[q + k]\n    k = 0 * t\nreturn s"
    ),
    "a loop inside goes on": COUNTED.replace("k = k + 1", "for u in range(2):\n        k = k + 1"),
    "a loop inside that data end goes on": COUNTED.replace("k = k + 1", "while k < n:\n        k = k + 1"),
    "rounds before a break": (
        "k, s = 0, 0.0\nfor t in tc.loop(n):\n    k = k + 1\n    if k > N:\n        break\n    s = s + x[k]\nreturn s"
    ),
    "rounds that continue": (
        "k, s = 0, 0.0\nfor t in range(N):\n    s = s + x[k]\n    k = k + 1\n    if x[t] > 0.5:\n        continue\n"
        "    k = k + 1\nreturn s"
    ),
    "a step wraps around behind a test": (
        "k, s = 0, 0.0\nfor t in tc.loop(n):\n    if k < N:\n        s = s + x[k]\n    k = k + 2**62\nreturn s"
    ),
    "the first condition is another": (
        "k, s, c = N, 0.0, x[0] < 2\nwhile c:\n    s = s + x[k]\n    k = k + 1\n    c = k < N\nreturn s"
    ),
    "a condition is that of one arm": (
        "k, s = 0, 0.0\nfor t in tc.loop(n):\n    c = k < N if x[0] > 0.5 else k < n\n    if c:\n        s = s + x[k]\n"
        "    k = k + 1\nreturn s"
    ),
    "a condition from before the loop": (
        "k, s = 0, 0.0\nwhile k < n:\n    if k < N:\n        s = s + x[k]\n    k = k + 1\nc = k < N\n"
        "for t in range(N):\n    if c:\n        s = s + x[k]\n    c = x[t] > 0.5\nreturn s"
    ),
    "the condition fails behind the loop": BACKWARDS.replace("return s", "return s + x[k]"),
    "a quotient by a number below 0": COUNTED.replace("k + 1", "(k + t) // -2"),
    "a shift rounds down": BACKWARDS.replace("k - 1", "(k >> 1) - 1").replace("k >= 0", "k >= -1"),
    "a quotient is rounded": (
        "z: real[1]\nz[0] = 1.0\nk, s = 0, 0.0\nfor t in range(N):\n    s = s + z[k - 2 * (k // 2)]\n    k = k + 1\n"
        "return s"
    ),
    "rounds that run other loops": (
        "k, s, h = 0, 0.0, x * 1\nfor t in tc.loop(n):\n    h = x + sum(h * x)\n    for u in range(N):\n"
        "        s = s + h[u] * x[k]\n    k = k + 1\nreturn s"
    ),
    "the smaller end is larger": (
        "s = 0.0\nfor t in range(N):\n    for k in range(min(t + p[t], M)):\n        s = s + x[k]\nreturn s"
    ),
    "the larger end is data": (
        "s = 0.0\nfor t in range(N):\n    for k in range(max(t, p[t])):\n        s = s + x[k]\nreturn s"
    ),
    "gaps are from another length": GAPS.strip().replace("N // 2", "M // 2 + n"),
    "the condition allows another gap": GAPS.strip().replace("j >= gap", "j + 1 >= gap"),
    "the loop ends behind it": COUNTED.replace("return s", "return s + x[k]"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_can_fail_is_checked(name: str) -> None:
    assert checks(OUTSIDE[name], "x: 'real[N]', p: 'int64[M]', n, v", X, P, 20, 0.5) > 0


def test_what_an_arm_writes_is_not_what_was_checked_before() -> None:
    body = (
        "k, s = p[0], 0.0\nfor t in range(N):\n    s = s + x[k]\n    if x[t] > 0.5:\n        k = p[t]\n"
        "    s = s + x[k]\nreturn s"
    )
    for dtype in ("int64", "int32"):
        assert checks(body, f"x: 'real[N]', p: '{dtype}[N]'", X, P.astype(dtype)) == 2


@pytest.mark.parametrize(
    "name",
    ["the first value is below", "a branch writes more", "the other arm writes more", "the loop ends behind it"],
)
def test_what_is_checked_fails_where_it_is_out_of_range(name: str) -> None:
    with pytest.raises(DataIndexError):
        program(OUTSIDE[name], "x: 'real[N]', p: 'int64[M]', n, v")(X, P, 20, 0.5)


def test_what_one_example_refutes_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(text: str) -> isl.BasicSet:
        asked.append(text)
        return isl.BasicSet(text)

    monkeypatch.setattr(integer_facts, "isl", SimpleNamespace(BasicSet=counted, dim_type=isl.dim_type))
    facts = IntegerFacts({"N": Interval(0, 2**48)})
    extent, names = facts.sum_of(size("N")), [facts.unknown() for _ in range(9)]
    facts.assume([added(added(extent, each, -1), {"": -place}) for place, each in enumerate(names)])
    for less in range(9):
        for each in names:
            assert facts.implies(added(extent, each, -1))
            assert not facts.implies(added(each, {"": -less}))
            assert not facts.copy().implies(added({"": 4 * less}, each, -1))
    assert len(asked) <= 100  # of 243; each of the others by itself would be 162
