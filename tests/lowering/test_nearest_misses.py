"""What schedules say of what did not fit: the reason, and that what it names is what kept a rule or a pass from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pass_log import ScheduleLog
from tcdsl.targets.cpu.emission.module_emission import loops_without_vectors

AVX2, AVX512 = Machine(32, 16), Machine(64, 32, masks=True)
WINDOW = "for [i, j, r, s]: 0 <= i < N and 0 <= j < M and 0 <= r < R and 0 <= s < S"
POINTS = "for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K"
TILES = "tile tiles of i by j over k"


@dataclass(frozen=True)
class Case:
    """A ``statement`` for which schedules have the line ``but``, one that is ``mended``, and the step that it has."""

    statement: str
    but: str
    mended: str
    step: str = TILES
    declared: str = "input A: float64[N, K]\ninput B: float64[K, M]\ntensor C: float64[N, M]"
    name: str = "C"
    declared_then: str = ""

    def before(self, machine: Machine) -> list[str]:
        """The lines of the schedule."""
        return self._steps(self.declared, self.statement, machine)

    def after(self, machine: Machine) -> list[str]:
        """The lines of the schedule of what is mended."""
        return self._steps(self.declared_then or self.declared, self.mended, machine)

    def _steps(self, declared: str, statement: str, machine: Machine) -> list[str]:
        log = ScheduleLog()
        program = parse_program(f"program p\n{declared}\n{statement}\nreturn {self.name}\n")
        shown = log.text(lower(program, watch=log, machine=machine))
        return [" ".join(line.split()) for line in shown.splitlines()]


def product(
    term: str,
    but: str,
    mended: str = "A[i, k] * B[k, j]",
    more: str = "",
    of: str = "+=",
    where: str = "",
    step: str = TILES,
) -> Case:
    declared = f"{Case.declared}\n{more}".strip()
    return Case(f"C[i, j] {of} {term}  {POINTS}{where}", but, f"C[i, j] += {mended}  {POINTS}", step, declared)


def of_size(n: int, k: int, m: int) -> str:
    return f"input A: float64[{n}, {k}]\ninput B: float64[{k}, {m}]\ntensor C: float64[{n}, {m}]"


def points(n: int, k: int, m: int) -> str:
    return f"for [i, j, k]: 0 <= i < {n} and 0 <= j < {m} and 0 <= k < {k}"


LINE = "input x: float64[N]\ninput a: float64[N]\ninput p: int64[N]\ninput W: int64\ntensor t: float64[N]"
TRIANGLE = "for [i, j]: 0 <= j <= i < N"
MORE = "takes more than additions and multiplications of what is read"
CASES = {
    "a power of an index": product(
        "A[i, integer(k * k)] * B[k, j]", "no register tiles for C: `A[i, k * k]` is not affine in k"
    ),
    "an index of data": product(
        "A[i, p[k]] * B[k, j]", "no register tiles for C: data say where `A[i, p[k]]` is", more="input p: int64[K]"
    ),
    "a maximum": product("A[i, k] + B[k, j]", "no register tiles for C: >>= does not add terms up", of=">>="),
    "a function": product(
        "exp(A[i, k] - B[k, j])",
        f"no register tiles for C: `exp(A[i, k] - B[k, j])` {MORE}",
        "square(A[i, k] - B[k, j])",
    ),
    "a function of both factors": product(
        "sin(A[i, k] * B[k, j]) * B[k, j]", f"no register tiles for C: `sin(A[i, k] * B[k, j])` {MORE}"
    ),
    "many parts": product(
        "square(square(A[i, k] - B[k, j]) + abs(A[i, k] + B[k, j]))",
        "no register tiles for C: `square(square(A[i, k] - B[k, j]) + abs(A[i, k] + B[k, j]))` has more than 8 parts",
        "square(A[i, k] - B[k, j])",
    ),
    "no row of its own": product(
        "A[i, k] * D[i, k, j]",
        "no register tiles for C: all indices of the target that `A[i, k]` has, `D[i, k, j]` has too",
        more="input D: float64[N, K, M]",
    ),
    "no index of the target": product(
        "w[k] * D[i, k, j]",
        "no register tiles for C: `w[k]` has no index of the target",
        more="input w: float64[K]\ninput D: float64[N, K, M]",
    ),
    "cells that are used once": Case(
        "C[i] += A[i, k] * x[k]  for [i, k]: 0 <= i < N and 0 <= k < K",
        "no register tiles for C: each cell of `A[i, k]` is used once, so that memory says how fast it is",
        f"C[i, j] += A[i, k] * B[k, j]  {POINTS}",
        declared="input A: float64[N, K]\ninput x: float64[K]\ntensor C: float64[N]",
        declared_then=Case.declared,
    ),
    "a condition": product(
        "A[i, k] * B[k, j]",
        "no register tiles for C: `m[k] > 0.0` says which terms there are, which no bounds of loops can",
        more="input m: float64[K]",
        where="  if m[k] > 0.0",
    ),
    "half precision": product(
        "I[i, k] * J[k, j]",
        "no register tiles for C: terms of float32 that add to float64 are made one by one",
        more="input I: float16[N, K]\ninput J: float16[K, M]",
    ),
    "few rows": Case(
        f"C[i, j] += A[i, k] * B[k, j]  {points(2, 800000, 3)}",
        "no register tiles for C: 3 rows by 2 columns are too few",
        f"C[i, j] += A[i, k] * B[k, j]  {points(8, 800000, 3)}",
        declared=of_size(2, 800000, 3),
        declared_then=of_size(8, 800000, 3),
    ),
    "terms left out in the middle": product(
        "A[i, k] * B[k, j]",
        "no register tiles for C: conditions leave out terms for which `B[k, j]` has cells",
        where=" and (i + k) mod 2 = 0",
    ),
    "a limit by a column": product(
        "A[i, k] * B[k, j]",
        "no register tiles for C: `i + j - k >= 0` is a condition on more than one row and one term",
        where=" and k <= i + j",
    ),
    "cells repeated beyond the ends": product(
        "A[i, clamp(k - 1)] * B[k, j]",
        "no register tiles for C: what is read beyond the ends of `A[i, clamp(k - 1)]` is not 0",
    ),
    "five products": product(
        "A[i, k] * B[k, j] + A[i, k] * E[k, j] + F[i, k] * E[k, j] + F[i, k] * B[k, j] - G[i, k] * E[k, j]",
        "no register tiles for C: it adds 5 products, 4 at most are statements of their own",
        more="input E: float64[K, M]\ninput F: float64[N, K]\ninput G: float64[N, K]",
    ),
    "a factor across": product(
        "A[i, k] * T[j, k]",
        "no tiles without panels for C: `T[j, k]` does not lie along j",
        more="input T: float64[M, K]",
        step="stage B[k, j] in panels of j",
    ),
    "a window of many terms": Case(
        "t[i] += x[j]  for [i, j]: i - 9 < j <= i and 0 <= j and i < N",
        "no single pass over all cells for t: from one i to the next some terms leave, which nothing takes away again",
        f"t[i] += x[j]  {TRIANGLE}",
        "carry t: each cell goes on from the one before along i",
        LINE,
        "t",
    ),
    "terms that depend on the cell": Case(
        f"t[i] += x[j] ** a[i]  {TRIANGLE}",
        "no single pass over all cells for t: its terms depend on i",
        f"t[i] += x[j] ** a[j]  {TRIANGLE}",
        "carry t: each cell goes on from the one before along i",
        LINE,
        "t",
    ),
    "a scan on threads": Case(
        f"t[i] += x[j]  {TRIANGLE}",
        "not shared among threads: each cell goes on from the one before",
        "t[i] += x[j]  for [i, j]: 0 <= i < N and 0 <= j < N",
        "parallel block",
        LINE,
        "t",
    ),
    "points that may meet": Case(
        "t[p[i]] += x[i]  for [i]: 0 <= i < N",
        "not shared among threads: two points may find the same cell",
        "t[i] += x[i]  for [i]: 0 <= i < N",
        "parallel i",
        LINE,
        "t",
    ),
    "little work": Case(
        f"C[i, j] += A[i, k] * B[k, j]  {points(10, 20, 20)}",
        "not shared among threads: 4,000 operations are too few, 1,048,576 would be enough",
        f"C[i, j] += A[i, k] * B[k, j]  {points(100, 200, 200)}",
        "parallel block",
        of_size(10, 20, 20),
        declared_then=of_size(100, 200, 200),
    ),
    "two rows for each term": Case(
        "t[j] += x[j] * A[i, j] * D[i, j]  for [i, j]: 0 <= i < N and 0 <= j < N",
        "one term at a time: a term reads 3 rows of cells",
        "t[j] += A[i, j]  for [i, j]: 0 <= i < N and 0 <= j < N",
        "unroll sums into rows take eight terms at a time",
        f"input A: float64[N, N]\ninput D: float64[N, N]\n{LINE}",
        "t",
    ),
    "a weight for each row and term": Case(
        f"y[i, j] += max(u[i + r, j + s], z[i, j]) * w[r, s]  {WINDOW}",
        "no window in registers: `z[i, j]` is neither a window nor the same for all rows",
        f"y[i, j] += u[i + r, j + s] * w[r, s]  {WINDOW}",
        "reorder sums of windows into rows take all terms of a cell at once",
        "input u: float64[U, V]\ninput w: float64[R, S]\ninput z: float64[N, M]\ntensor y: float64[N, M]\n"
        'assert U == N + R, "u"\nassert V == M + S, "v"',
        "y",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_schedules_say_what_did_not_fit_and_why(name: str) -> None:
    case = CASES[name]
    shown = case.before(AVX2)
    assert f"but {case.but}" in shown
    # What is not so anymore is not said anymore, and what was missing is there.
    mended = case.after(AVX2)
    assert f"but {case.but}" not in mended
    assert not any(line.startswith(case.step) for line in shown)
    assert any(line.startswith(case.step) for line in mended)
    # The processor decides how, and not why.
    assert [line for line in case.before(AVX512) if line.startswith("but")] == [
        line for line in shown if line.startswith("but")
    ]


LINES = "input x: float64[N, M]\ninput p: int64[N]\ninput K: int64\ntensor y: float64[N]"
LOOPS = {
    "data": ("y[i] = x[0, p[i]]", "each step checks where x is, which data say", "y[i] = x[0, i]"),
    "every other cell": ("y[i] = x[0, 2 * i]", "steps do not find `x[0, 2 * i]` side by side", "y[i] = x[0, i]"),
    "a column": ("y[i] = x[i, 0]", "steps do not find `x[i, 0]` side by side", "y[i] = x[0, i]"),
    "half steps": ("y[i] = x[0, i // 2]", "steps do not find `x[0, i // 2]` side by side", "y[i] = x[0, i]"),
}


def left_to_llvm(statement: str, machine: Machine) -> list[str]:
    text = f'program p\n{LINES}\nassert M == 2 * N, "columns"\n{statement}  for [i]: 0 <= i < N\nreturn y\n'
    kernel = lower(parse_program(text), machine=machine)
    return [str(declined) for _, _, declined in loops_without_vectors(kernel, [True] * 3, machine)]


@pytest.mark.parametrize("name", LOOPS)
def test_why_loops_have_no_vectors(name: str) -> None:
    statement, reason, mended = LOOPS[name]
    assert left_to_llvm(statement, AVX2) == left_to_llvm(statement, AVX512) == [reason]
    assert left_to_llvm(mended, AVX2) == left_to_llvm(mended, AVX512) == []


@tc.op
def products(A, B):
    C[i, j] += A[i, k] * B[j, k]
    return C


def test_what_a_call_does_not_do() -> None:
    def shown(n: int) -> list[str]:
        text = str(products.explain("schedule", np.ones((n, 100)), np.ones((n, 100))))
        return [" ".join(line.split()) for line in text.splitlines()]

    few, many = shown(20), shown(200)
    assert few[few.index("but not run in this call: `A_0 >= 24` does not hold") - 1].startswith("but no tiles without")
    assert few[few.index("one thread") + 1] == "nest_C1: 40,000 operations are too few, 1,048,576 would be enough"
    assert many.count("but not run in this call: `A_0 >= 24 and B_0 >= 16` holds") == 1
    assert "one thread" not in many
    # A program is shown whether or not the call fits it.
    assert "this call" not in str(products.explain("schedule", np.ones((20, 100)), np.ones((20, 99))))


def test_reasons_have_the_letters_of_the_loops() -> None:
    # The second statement takes the loops of the first one, and so their letters.
    text = """
program p
input x: float64[N, M]
input z: float64[K, M]
tensor s: float64[N]
tensor d: float64[N, K]
s[i] += x[i, k]  for [i, k]: 0 <= i < N and 0 <= k < M
d[n, j] += exp(x[n, k] - s[n] - z[j, k])  for [n, j, k]: 0 <= n < N and 0 <= j < K and 0 <= k < M
return d
"""
    log = ScheduleLog()
    shown = log.text(lower(parse_program(text), watch=log))
    assert f"no register tiles for d: `exp(x[i, k] - s[i] - z[j, k])` {MORE}" in shown


@pytest.mark.parametrize("where", ["k <= i + j", "(i + k) mod 2 = 0"])
def test_reasons_have_the_names_of_each_of_equal_statements(where: str) -> None:
    text = f"""
program p
input A: float64[N, K]
input B: float64[K, M]
input D: float64[N, K]
input E: float64[K, M]
tensor C: float64[N, M]
tensor F: float64[N, M]
C[i, j] += A[i, k] * B[k, j]  {POINTS} and {where}
F[i, j] += D[i, k] * E[k, j]  {POINTS} and {where}
return C, F
"""
    log = ScheduleLog()
    shown = [line.strip() for line in log.text(lower(parse_program(text), watch=log)).splitlines()]
    first, second = (line for line in shown if line.startswith("but"))
    assert second == first.translate(str.maketrans({"A": "D", "B": "E", "C": "F"}))
    assert "for C" in first


@tc.op
def factored(A):
    n = A.shape[0]
    for j in range(n):
        A[j, j] = sqrt(A[j, j])
        A[i, j] /= A[j, j] if i > j else 1
        A[i, k] -= A[i, j] * A[k, j] if (i > j) & (k > j) & (k <= i) else 0
    return A


@tc.op
def smoothed(x):
    y[i] = x[i - 1] + x[i] + x[i + 1]
    return y


def test_loops_of_rounds_say_why_they_have_no_vectors_and_borders_do_not() -> None:
    shown = str(factored.explain("schedule", np.eye(9)))
    assert "vectors along i are left to LLVM: steps do not find `A_2[i, j]` side by side" in shown
    assert "vectors" not in str(smoothed.explain("schedule", np.ones(9)))
    with tc.config(target="numba"):
        assert "vectors" not in str(factored.explain("schedule", np.eye(9)))


def test_nothing_is_kept_where_nobody_asks() -> None:
    case = CASES["a maximum"]
    kernel = lower(parse_program(f"program p\n{case.declared}\n{case.statement}\nreturn C\n"))
    assert not any(nest.declined for nest in kernel.nests)
