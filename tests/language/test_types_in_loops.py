"""Types that a body finds out: of declared targets that rounds read before they write them, and of numbers in code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DslSyntaxError
from tests.language.running_programs import check, program

U = np.array([1.5, 2.5, 3.0])


@op
def read_first(u: real[N], n):
    b: real[N]
    c: real[N]
    for _ in range(n):
        c[i] = b[i] * 2
        b[i] = u[i] + c[i]
    return b, c


@op
def in_parts(u: real[N], n):
    b, c = output(u.shape[0]), output(u.shape[0])
    for _ in range(n):
        c[...] = b * 2
        b[1:] = u[1:] + c[1:]
    return b, c


@op
def read_in_an_arm(u: real[N], n):
    b: real[N]
    m = 0
    for t in range(n):
        if t > 0:
            m = m + b[0]
        b[...] = u
    return b, m


@op
def read_in_a_loop(u: real[N], n):
    b: real[N]
    m = 0
    for _ in range(n):
        for _s in range(n):
            m = m + b[0]
        b[...] = u
    return b, m


@op
def written_in_the_other_arm(u: real[N], n):
    b: real[N]
    s = 0
    for t in range(n):
        if t > 0:
            s = s + b[0]
        else:
            b[...] = u
    return b, s


@op
def both_in_a_loop(u: real[N], n):
    b: real[N]
    c: real[N]
    for _ in range(n):
        for _k in range(2):
            c[i] = b[i] + 1
            b[i] = c[i] * u[i]
    return b, c


@op
def names_swapped(u: real[N], n):
    b: real[N]
    c: real[N]
    for t in range(n):
        b[i] = u[i] + c[i]
        if t > 1:
            c[i] = b[i] - u[i]
        b, c = c, b
    return b, c


def by_python(name: str, u: Any, n: int) -> tuple[Any, Any]:
    b, c, m = np.zeros_like(u), np.zeros_like(u), u.dtype.type(0)
    for t in range(n):
        match name:
            case "read_first":
                c = b * 2
                b = u + c
            case "in_parts":
                c = b * 2
                b = np.where(np.arange(3) > 0, u + c, b).astype(u.dtype)
            case "read_in_an_arm":
                m, b = m + (b[0] if t > 0 else 0), u
            case "read_in_a_loop":
                m, b = m + n * b[0], u
            case "written_in_the_other_arm":
                m, b = m + (b[0] if t > 0 else 0), (b if t > 0 else u)
            case "both_in_a_loop":
                for _ in range(2):
                    c = b + 1
                    b = c * u
            case "names_swapped":
                b = u + c
                c = b - u if t > 1 else c
                b, c = c, b
    return (b, m) if name in ("read_in_an_arm", "read_in_a_loop", "written_in_the_other_arm") else (b, c)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "function",
    [read_first, in_parts, read_in_an_arm, read_in_a_loop, written_in_the_other_arm, both_in_a_loop, names_swapped],
    ids=lambda each: each.__name__,
)
def test_a_declared_target_that_is_read_first_has_the_type_of_what_is_written(function: Any, dtype: str) -> None:
    u = U.astype(dtype)
    for n in (0, 1, 3):
        wanted = by_python(function.__name__, u, n)
        check(function, (u, n), wanted)
        assert [np.asarray(each).dtype for each in function(u, n)] == [dtype, dtype]


def test_what_is_computed_from_itself_and_numbers_is_of_their_type() -> None:
    @op
    def thirds(u: real[N]):
        c: real[N]
        k = output(u.shape[0])
        for t in range(1, N):
            c[t] = 1 / (4 - c[t - 1])
            k[t] = 2 * k[t - 1] + 1
        return c, k

    found = thirds(U)
    np.testing.assert_allclose(found[0], [0, 1 / 4, 1 / (4 - 1 / 4)], rtol=1e-15)
    assert found[1].tolist() == [0, 1, 3]
    assert [each.dtype for each in found] == ["float64", "int64"]
    assert [each.dtype for each in thirds(U.astype(np.float32))] == ["float32", "int64"]


def test_numbers_of_code_become_data_in_rounds() -> None:
    def sums(c, b):
        s, p, last = 0.0, 1, 0.0
        for k in range(len(b)):
            last = s
            s += b[k]
            if b[k] > 1:
                p = p * b[k]
                s += p
        s += 10
        c[0] = s
        held = s
        s += 1
        c[1] = held
        c[2] = last

    @cd
    def found(c: real[K], b: real[M]):
        s, p, last = 0.0, 1, 0.0
        for k in range(M):
            last = s
            s += b[k]
            if b[k] > 1:
                p = p * b[k]
                s += p
        s += 10
        c[0] = s
        held = s
        s += 1
        c[1] = held
        c[2] = last

    b, c, wanted = np.array([1.0, 2.0, 0.5, 3.0]), np.zeros(3), np.zeros(3)
    sums(wanted, b)
    found(c, b)
    np.testing.assert_allclose(c, wanted)


def test_code_swaps_cells_in_branches() -> None:
    @cd
    def bubble(a: real[N]):
        for i in range(N):
            for j in range(N - 1 - i):
                if a[j] > a[j + 1]:
                    a[j], a[j + 1] = a[j + 1], a[j]

    a = np.array([3.0, 1.0, 2.0, 0.0])
    bubble(a)
    assert a.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("sign", "function", "wanted"), [(">>", "max", 3), ("<<", "min", 12), ("&", "and_", 0), ("|", "or_", 7)]
)
def test_operators_that_say_another_thing_of_numbers_are_refused_on_single_integers(
    sign: str, function: str, wanted: int
) -> None:
    f = program(f"n {sign}= 1\nreturn n", "n")
    assert f(6) == wanted
    with pytest.raises(DslSyntaxError, match=f"on a single integer is `{function}` for tensors"):
        f(np.array(6))
    other = program(f"n = n {sign} 1\nreturn n", "n")
    assert other(np.array(6)) == other(6) == wanted


@op
def least(u: real[N]):
    d: real[N]
    d[i] = inf
    for t in range(N):
        d[i] = min(d[i], u[t] + abs(i - t))
    return d


@op
def from_a_number(u: real[N]):
    d: real[N]
    d[i] = 0.5
    d[i] += u[i]
    return d


@pytest.mark.parametrize("function", [least, from_a_number])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_python_are_weak_in_a_declared_target(function: Any, dtype: str) -> None:
    assert function(U.astype(dtype)).dtype == dtype
    assert tc.grad(lambda u: function(u).sum())(U.astype(dtype)).dtype == dtype


NUMBERED = [
    "for t in range(n):\n    x = x + t",
    "for t in range(1, n + 1):\n    x = x * t - t / 2",
    "for t in range(n, 0, -1):\n    x = x / t",
    "for t in reversed(range(n)):\n    x = max(x, t)",
]


@pytest.mark.parametrize("body", NUMBERED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_the_number_of_a_round_is_weak_whoever_says_how_many_there_are(body: str, dtype: str) -> None:
    if dtype == "int16" and "/" in body:
        pytest.skip("quotients are floating")
    f, x = program(f"{body}\nreturn x", "x, n"), np.array(2, dtype)
    namespace: dict[str, Any] = {"x": x[()], "n": 3}
    exec(body, namespace)
    for n in (3, np.array(3), np.array(3, np.uint8)):
        check(f, (x, n), namespace["x"])
        assert f(x, n).dtype == dtype
    configured = program(f"{body}\nreturn x", "x, *, n")
    assert configured(x, n=3).dtype == dtype


TURNED = [
    "s[0], s[1] = s[1], s[0]\n    s[0] += x[1]",
    "s[i] = s[1 - i]\n    s[0] += x[1]",
    "s[...] = s[::-1]\n    s[1] += x[t]",
    "s[i] = s[1 - i] * 2\n    s[0] += x[t]",
    "s[0], s[1] = s[1] + 1, s[0] * 2",
]


@pytest.mark.parametrize("body", TURNED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_a_target_that_is_first_made_of_itself_takes_the_type_of_the_first_floating_value(
    body: str, dtype: str
) -> None:
    f = program(f"s = output(2)\nfor t in range(len(x)):\n    {body}\nreturn s", "x")
    x = np.array([1.5, 2.5, 3.0]).astype(dtype)
    s = np.zeros(2)
    rounds = body.replace("s[i] = s[1 - i]", "s[:] = s[::-1]").replace("s[::-1]", "s[::-1].copy()")
    exec(f"for t in range(3):\n    {rounds}", {"s": s, "x": x})
    takes = dtype if "x[" in body and dtype != "int16" else "int64"
    check(f, (x,), s)
    assert f(x).dtype == takes


NUMBERED_FIRST = [
    "if x[0] > 2:\n    s[0] = 1\ns[0] += x[1]",
    "if x[0] > 2:\n    s[0] = 1\nelse:\n    s[1] = 3\ns[0] += x[1]",
    "for t in range(n):\n    s[t] = 2\ns[1] *= x[1]",
    "while n > 0:\n    n -= 1\n    if x[n] > 2:\n        s[n] = 7\ns[...] *= x[:2]",
    "for t in range(n):\n    if x[t] > 2:\n        s[t] = 1\n    s[0] += x[t]",
]


@pytest.mark.parametrize("body", NUMBERED_FIRST)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_numbers_that_loops_and_branches_write_are_weak_after_them(body: str, dtype: str) -> None:
    f = program(f"s = output(2)\ns[i] = 5\n{body}\nreturn s")
    for x in (np.array([1.5, 2.5, 3.0], dtype), np.array([2.5, 1.5, 3.0], dtype)):
        for n in (0, 2):
            namespace: dict[str, Any] = {"s": np.full(2, 5.0), "x": x, "n": n}
            exec(body, namespace)
            check(f, (x, n), namespace["s"])
            assert f(x, n).dtype == dtype
            if dtype == "float64":
                tc.check_grads(lambda x, n=n: f(x, n).sum(), (x,))
    whole = program("s = output(2)\ns[i] = 5\nif x[0] > 2:\n    s[0] = 1\nreturn s")
    assert whole(x, 0).dtype == "int64"
