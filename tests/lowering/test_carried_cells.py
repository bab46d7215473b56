"""Cells that loops of rounds keep in registers: only where nothing else meets them, and where a round runs."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.ir.build import apply, in_range, index, integer, plain_read, size
from tcdsl.ir.expressions import Expr, Local
from tcdsl.lowering.loop_passes.carried_cells import with_cells_in_registers
from tcdsl.lowering.loopir.integer_facts import IntegerFacts
from tcdsl.lowering.loopir.intervals import Interval
from tcdsl.lowering.loopir.loops import Branch, Buffer, Check, Define, Loop, Nest, Node, Store, Update
from tests.differential.loading import loaded


def _kept(function: object, *arguments: object) -> int:
    lines = str(function.explain("loops", *arguments)).splitlines()  # type: ignore[attr-defined]
    return sum(line.lstrip().startswith("cell") for line in lines)


def test_a_sum_into_one_cell_is_a_register() -> None:
    @cd
    def cholesky(A: real[N, N]):
        for i in range(N):
            for j in range(i):
                for k in range(j):
                    A[i, j] -= A[i, k] * A[j, k]
                A[i, j] /= A[j, j]
            for k in range(i):
                A[i, i] = A[i, i] - A[i, k] * A[i, k]
            A[i, i] = sqrt(A[i, i])

    for n in (0, 1, 2, 7, 40):
        given = np.random.default_rng(n).random((n, n))
        given = given @ given.T + n * np.eye(n)
        found = given.copy()
        cholesky(found)
        wanted = np.linalg.cholesky(given) if n else given
        np.testing.assert_allclose(np.tril(found), wanted)
    text = cholesky.explain("loops", np.eye(3))
    assert "cell -= A_" in text
    assert text.count("if 0 < ") == 2


def test_what_rounds_may_meet_stays_in_memory() -> None:
    @cd
    def met(A: int64[N, N]):
        for i in range(N):
            for j in range(i):
                for k in range(j + 1):
                    A[i, j] -= A[i, k] + A[j, k] + A[i, j - k]

    given = np.arange(25).reshape(5, 5)
    found, wanted = given.copy(), given.copy()
    met(found)
    for i in range(5):
        for j in range(i):
            for k in range(j + 1):
                wanted[i, j] -= wanted[i, k] + wanted[j, k] + wanted[i, j - k]
    np.testing.assert_array_equal(found, wanted)
    assert not _kept(met, given)


def test_what_one_round_meets_is_in_a_register_before_and_behind_it() -> None:
    @op
    def shortest(D):
        for k in range(D.shape[0]):
            for i in range(D.shape[0]):
                for j in range(1, D.shape[0]):
                    D[i, j] = min(D[i, j], D[i, k] + D[k, j])
        return D

    for n in (0, 1, 2, 5, 20):
        given = np.random.default_rng(n).integers(-9, 99, (n, n))
        found = shortest(given)
        for k in range(n):
            for i in range(n):
                for j in range(1, n):
                    given[i, j] = min(given[i, j], given[i, k] + given[k, j])
        np.testing.assert_array_equal(found, given)
    assert _kept(shortest, given) == 2
    with tc.config(optimize="-carried_cells"):
        assert not _kept(shortest, given)


def test_scalars_of_rounds_accumulate() -> None:
    @op
    def solved(L: real[N, N], b: real[N]):
        x: real[N]
        high = -np.inf
        for i in range(N):
            s = b[i]
            for j in range(i):
                s -= L[i, j] * x[j]
            x[i] = s / L[i, i]
            high = max(high, x[i])
        return x, high

    text = str(solved.explain("loops", np.eye(3), np.ones(3)))
    assert re.search(r"s\w* -= L\[i", text)
    assert " >>= " in text
    generator = np.random.default_rng(0)
    L, b = np.tril(generator.random((600, 600))) + 20 * np.eye(600), generator.random(600)
    for special in (1.0, np.inf, np.nan):
        b[300] = special
        wanted = b.copy()
        with np.errstate(invalid="ignore"):
            for i in range(600):
                wanted[i] = (b[i] - L[i, :i] @ wanted[:i]) / L[i, i]
        found, high = solved(L, b)
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
        np.testing.assert_allclose(high, wanted.max(), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int64"])
def test_registers_hold_what_memory_would(dtype: str) -> None:
    @op
    def rounded(x):
        y[i] = x[i]
        for t in range(len(x)):
            y[0] = y[0] + x[t] if t > 0 else y[0]
        return y

    given = (np.random.default_rng(3).random(50) * 100).astype(dtype)
    wanted = given.copy()
    for t in range(1, 50):
        wanted[:1] += given[t]
    np.testing.assert_array_equal(rounded(given), wanted)
    assert _kept(rounded, given)


def test_cells_are_read_where_a_round_reaches_them() -> None:
    # The cell is out of range where no round runs, where a branch leaves it out, and where a check fails before.
    @op
    def reached(x, p, n):
        for t in range(n):
            x[n - 1] += t
        for t in range(4):
            if p[0] >= 0:
                x[p[0]] += t
        return x

    for n in (0, 1, 3):
        for p in (-(2**62), -1, 0, 2):
            x, q = np.arange(3.0), np.array([p])
            np.testing.assert_array_equal(reached(x, q, n), reached.interpret(x, q, n))
    for p in (3, 2**62):
        with pytest.raises(IndexError, match="out of range"):
            reached(np.arange(3.0), np.array([p]), 1)


def test_a_cell_in_range_is_a_register_behind_checks_of_what_is_added() -> None:
    @op
    def product(val, col, row, X):
        y = np.zeros((row.shape[0] - 1, X.shape[1]))
        for i in range(row.shape[0] - 1):
            for j in range(X.shape[1]):
                for k in range(row[i], row[i + 1]):
                    y[i, j] += val[k] * X[col[k], j]
        return y

    val, col, row, x = (
        np.arange(1.0, 6),
        np.array([0, 2, 1, 0, 2]),
        np.array([0, 2, 2, 5]),
        np.arange(6.0).reshape(3, 2),
    )
    assert _kept(product, val, col, row, x)
    dense = np.zeros((3, 3))
    np.add.at(dense, (np.repeat(np.arange(3), np.diff(row)), col), val)
    np.testing.assert_allclose(product(val, col, row, x), dense @ x)
    with pytest.raises(IndexError, match="out of range"):
        product(val, col + 1, row, x)


def test_cells_behind_checks_and_branches_stay_in_memory() -> None:
    place = Local("p", "int64")
    check = Check(in_range(place, size("N")), "x", 0, place, size("N"))
    add = Update("x", (place,), "add", index("t"))
    buffer = Buffer("x", "int64", (size("N"),), "temporary", ("x",))

    def kept(*body: Node, condition: Expr | None = None, least: int = 0) -> bool:
        loop = Loop("t", integer(0), size("n"), 1, body, rounds="t", condition=condition)
        facts = IntegerFacts({"N": Interval(least, 9), "n": Interval(-9, 9)})
        (made,) = with_cells_in_registers([Nest("nest", "", (loop,), integer(1))], [buffer], facts)
        return made.body != (loop,)

    some = apply("gt", plain_read("x", (index("t"),), "int64"), integer(0))
    assert kept(add)
    assert kept(add, check)
    assert not kept(check, add)
    assert kept(check, replace(add, indices=(integer(0),)), least=1)
    assert not kept(check, replace(add, indices=(integer(0),)))
    assert not kept(check, replace(add, indices=(integer(1),)), least=1)
    assert not kept(Branch(some, (add,)))
    assert not kept(Branch(some, (check,)), add)
    assert not kept(add, Store("x", (apply("mul", index("t"), integer(2)),), integer(0)))
    assert not kept(add, Store("x", (index("t"),), integer(0)), condition=Local("going_on", "bool"))
    assert not kept(add, Define("p", integer(0)))
    asked = apply("gt", plain_read("x", (place,), "int64"), integer(0))
    assert kept(add, condition=Local("going_on", "bool"))
    assert not kept(add, condition=asked)


_ENDS = ("N", "i", "j", "i + 1", "N - i", "j - 1", "N - j", "n")
_PLACES = ("i", "j", "k", "k + 1", "k - 1", "i - 1", "i + j", "N - k", "j - 1", "0", "2 * k", "i - j")
_STEPS = (
    "A[{a} + N, {b} + N] -= A[{c} + N, {d} + N] * 3 + A[{e} + N, {f} + N]",
    "A[{a} + N, {b} + N] = A[{a} + N, {b} + N] + A[{c} + N, {d} + N]",
    "A[{a} + N, {b} + N] = max(A[{c} + N, {d} + N], A[{e} + N, {f} + N]) + k",
)


def _program(source: random.Random) -> str:
    def step(depth: int) -> str:
        here = source.choices([each for each in _PLACES if depth == 3 or "k" not in each], k=6)
        text = source.choice(_STEPS).format(**dict(zip("abcdef", here, strict=True)))
        return text if depth == 3 else text.replace("+ k", "+ 1")

    ends = source.choices(_ENDS[:2], k=1) + source.choices(_ENDS, k=1)
    lines = [
        "def f(A: 'int64[M, M]', x: 'real[N]', n):",
        "    for i in range(N):",
        f"        for j in range({ends[0]}):",
        f"            {step(2)}" if source.random() < 0.5 else "            A[i, j] += 1",
        f"            for k in range({source.choice(('0', '0', 'j', '1'))}, {ends[1]}):",
        f"                {step(3)}",
        f"                {step(3)}" if source.random() < 0.4 else "                A[N, N] += k",
    ]
    if source.random() < 0.3:
        lines += ["                if A[j, i] % 2 == 0:", f"                    {step(3)}"]
    if source.random() < 0.3:
        lines += ["                if A[i, j] % 5 == 0:", "                    break"]
    return "\n".join(lines) + "\n"


def test_random_loops_compute_what_python_does() -> None:
    source = random.Random(7)
    kept = 0
    for _ in range(9):
        text = _program(source)
        function = loaded(text, decorator="cd")
        python: dict[str, object] = {}
        exec(text.replace("int64[M, M]", "").replace("range(N", "range(len(x)"), python)
        for n in (0, 1, 4):
            given = np.random.default_rng(n).integers(-9, 9, (3 * n + 3, 3 * n + 3))
            found, wanted = given.copy(), given.copy()
            function(found, np.ones(n), n)
            python["N"] = n
            with np.errstate(over="ignore"):
                python["f"](wanted, np.ones(n), n)  # type: ignore[operator]
            np.testing.assert_array_equal(found, wanted, text)
        kept += _kept(function, given, np.ones(4), 4)
    assert kept > 4
