"""Loops that run, as kernels: one kernel whose nests go round, and what is copied, swapped and kept alive for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, loop, op
from tcdsl.autodiff import adjoint
from tcdsl.errors import DataIndexError
from tcdsl.ir.build import apply, in_range, index, integer, plain_read
from tcdsl.ir.expressions import Expr, Local, SizeValue
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.interpreter.point_values import PointValues
from tcdsl.lowering.linking import linker
from tcdsl.lowering.linking.known_checks import without_known_checks
from tcdsl.lowering.linking.opposite_branches import with_opposite_branches_joined
from tcdsl.lowering.linking.shared_loops import with_shared_loops
from tcdsl.lowering.loop_passes.index_widths import LARGEST_SIZE
from tcdsl.lowering.loop_passes.liveness import lifetimes
from tcdsl.lowering.loopir.loop_printer import format_kernel
from tcdsl.lowering.loopir.loops import Branch, Check, Define, Loop, Nest, Store
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pass_log import PassLog
from tcdsl.simplification import simplify
from tests.autodiff.programs import floating_inputs
from tests.ir.loop_programs import LOOPS, LOWERED
from tests.lowering.loop_interpreter import execute


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", LOWERED)
def test_kernels_of_loops_compute_what_programs_say(name: str, optimize: bool) -> None:
    program = LOOPS[name].program
    kernel = lower(program, optimize=optimize)
    for arrays in LOOPS[name].problems():
        expected, found = interpret(program, arrays), execute(kernel, arrays, reversed)
        for want, got in zip(expected.outputs, found.outputs, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-12)
        for changed, want in expected.updates.items():
            np.testing.assert_allclose(found.inputs[changed], want, rtol=1e-5, atol=1e-12)


def test_a_loop_changes_its_state_in_place() -> None:
    (loop,) = lower(LOOPS["cholesky in place"].program).repeated
    assert not loop.rounds.swaps
    text = format_kernel(lower(LOOPS["cholesky in place"].program))
    assert "repeat k in 0 .. N:\n\n    # A_2[k, k] = sqrt(A[k, k])" in text
    assert text.count("copy of") == 1  # of the argument, before the loop
    assert text.endswith("copy A_2 into A\n")


def test_what_is_made_anew_changes_places_with_the_state() -> None:
    # What is made anew lies where a state was that nothing reads any more.
    (loop,) = lower(LOOPS["wave"].program).repeated
    assert [{*pair} for pair in loop.rounds.swaps] == [{"u_2", "v_2"}, {"v_2", "w"}]
    (loop,) = lower(LOOPS["heat"].program).repeated
    assert len(loop.rounds.swaps) == 1
    assert "saved" not in format_kernel(lower(LOOPS["heat"].program))
    assert not any(loop.rounds.swaps for loop in lower(LOOPS["shared"].program).repeated)


def test_what_is_only_passed_on_is_not_copied() -> None:
    @op
    def wave(u, v, n):
        for _t in loop(n):
            w[i] = 2.0 * u[i] - v[i]
            w[i] += u[i - 1] + u[i + 1] - 2.0 * u[i]
            v = u
            u = w
        return u

    u, v = np.arange(6.0) ** 3, np.ones(6)
    text = wave.explain("loops", u, v, 20)
    inside = text[text.index("repeat") : text.index("# copy of u_2")]
    assert inside.count("nest_") == 1
    # Each cell of v is read where w is written.
    assert "v_2[z] = 2.0 * u_2[z] - v_2[z] + " in inside
    assert inside.endswith("    swap u_2, v_2\n\n")
    for steps in (1, 2, 5):
        found, before = u, v
        for _ in range(steps):
            new = 2 * found - before
            new[1:-1] += found[:-2] + found[2:] - 2 * found[1:-1]
            found, before = new, found
        np.testing.assert_allclose(wave(u, v, steps), found)


def test_one_point_saves_nothing_of_what_it_reads() -> None:
    # Its indices are data, so that it may read what it writes.
    text = format_kernel(lower(LOOPS["counted rounds"].program))
    assert "y_2[p] += x[p1] + y_2[p2]" in text
    assert "saved" not in text


def test_scalars_are_carried_in_the_nest_that_makes_them() -> None:
    kernel = lower(LOOPS["fibonacci"].program, optimize="-joining")
    (loop,) = kernel.repeated
    assert not loop.rounds.swaps
    # In a nest of its own the loop keeps them in registers.
    kernel = lower(LOOPS["fibonacci"].program)
    assert (kernel.repeated, len(kernel.nests)) == ((), 1)
    text = format_kernel(kernel)
    assert "temporary" not in text
    assert text[text.index("    for t") : text.index("\n\nreturn")] == (
        """\
    for t in 0 .. steps:
        c = a_2_2 + b_2_2
        a_2_next = b_2_2
        b_2_next = c
        a_2_2 = a_2_next
        b_2_2 = b_2_next
    a_2 = a_2_2
    b_2 = b_2_2"""
    )


def test_a_branch_is_one_round() -> None:
    # The driver looks for interrupts after so much work: of branches there is no more than there are points.
    @op
    def smallest(x: real[N, M]):
        for t in loop(N):
            least: real[M]
            low = 9.0
            for k in loop(M):
                if x[t, k] < low:
                    low = x[t, k]
                least[k] = low
            x[i, j] += least[M - 1 - j]
        return x

    kernel = lower(smallest.program(np.ones((3, 4))))
    points = PointValues({}, 1, {"N": 3, "M": 4}, {}.__getitem__)
    assert [int(points.single(nest.work)) for nest in kernel.nests if "all rounds of k" in str(nest.schedule)] == [25]


def test_memory_that_changes_places_lives_equally_long() -> None:
    kernel = lower(LOOPS["wave"].program)
    (loop,) = kernel.repeated
    lives = lifetimes(kernel)
    swapped = [lives[name] for swap in loop.rounds.swaps for name in swap]
    assert len(set(swapped)) == 1
    assert all(first <= loop.first and loop.end - 1 <= last for first, last in swapped)


def test_what_a_round_makes_lives_in_the_round_alone() -> None:
    kernel = lower(LOOPS["history"].program)
    (loop,) = kernel.repeated
    assert lifetimes(kernel)["seen"] == (loop.first + 1, loop.end - 1)  # behind the bounds of the nest that makes it


def test_loops_stand_in_loops() -> None:
    kernel = lower(LOOPS["triangle"].program, optimize="-joining")
    outer, inner = kernel.repeated
    assert outer.first < inner.first < inner.end < outer.end
    # The inner loop's state is as long as the number of the outer round, which is less than N.
    part = next(buffer for buffer in kernel.buffers if buffer.name == "part")
    assert "part: float64[max(N, 1) - 1]" in format_kernel(kernel)
    assert lifetimes(kernel)[part.name][1] < outer.end


def test_loops_inside_change_the_state_of_those_around() -> None:
    text = format_kernel(lower(LOOPS["matrix product"].program, optimize="-fusion"))
    assert "    cell += A[i, k] * B[k, j]\n                C_2[i, j] = cell" in text
    assert "copy" not in text
    loop, *inner = lower(LOOPS["branches"].program, optimize="-joining").repeated
    assert [each.rounds.swaps for each in inner] == [(), ()]
    assert len(loop.rounds.swaps) == 1


def test_points_are_counted_in_all_rounds() -> None:
    points = executed_points(lower(LOOPS["matrix product"].program, optimize="-fusion"), {"N": 5, "K": 3, "M": 2})
    assert points == 10 + 5 * (2 * (3 + 1) + 2)
    counts = [executed_points(lower(LOOPS["triangle"].program), {"N": n}) for n in (10, 20)]
    assert counts[0] < counts[1]


@pytest.mark.parametrize("name", LOWERED)
def test_loops_take_any_sizes_and_show_their_passes(name: str) -> None:
    program = LOOPS[name].program
    assert "loops with exact bounds" in PassLog.of(program).text()
    kernel = lower(program, largest=LARGEST_SIZE)
    arrays = LOOPS[name].of(3)
    for want, got in zip(interpret(program, arrays).outputs, execute(kernel, arrays).outputs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-12)


def test_memory_is_overwritten_after_its_last_reading() -> None:
    # The adjoint of a loop reads cells of an adjoint that it then clears, and keeps cells that it then overwrites.
    case = LOOPS["two histories"]
    kernel = lower(simplify(adjoint(case.program, floating_inputs(case.program))))
    assert not any(loop.rounds.swaps for loop in kernel.repeated)
    assert "copy" not in format_kernel(kernel).partition("repeat k_2")[2]


@op
def factored(A):
    A = A.copy()
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A


def test_rows_in_loops_in_loops_are_no_nests_of_their_own() -> None:
    given = np.random.default_rng(0).random((40, 40)) + 40 * np.eye(40)
    found = factored(given)
    np.testing.assert_allclose((np.tril(found, -1) + np.eye(40)) @ np.triu(found), given)
    assert str(factored.explain("loops", given)).count("repeat ") == 1
    with tc.config(optimize="-joining"):
        np.testing.assert_allclose(factored(given), found)
        assert str(factored.explain("loops", given)).count("repeat ") > 1


@op
def replaced(d: real[N, M], at: int64[T], of: int64[T]):
    for t in loop(T):
        d[at[t], j] = d[at[t], j] * d[of[t], 0] + d[of[t], j]
    return d


@op
def passed_on(d: real[N], x: real[N]):
    for t in loop(1, N):
        old = d
        d[t] = 0.0
        d[t] += old[t] * x[t]
        d[t - 1] += old[t] * d[t]
    return d


def test_rounds_that_write_few_cells_save_few() -> None:
    generator = np.random.default_rng(0)
    d, at, of = generator.normal(size=(5, 3)), np.array([0, 1, 1, 4]), np.array([2, 1, 0, 4])
    expected = d.copy()
    for k, m in zip(at, of, strict=True):
        expected[k] = expected[k] * expected[m, 0] + expected[m]
    for run in (replaced, replaced.interpret):
        np.testing.assert_allclose(run(d, at, of), expected, rtol=1e-14)
    v, x = generator.normal(size=(2, 6))
    expected = v.copy()
    for t in range(1, 6):
        old = expected[t]
        expected[t] = old * x[t]
        expected[t - 1] += old * expected[t]
    for run in (passed_on, passed_on.interpret):
        np.testing.assert_allclose(run(v, x), expected, rtol=1e-14)
    for text in (replaced.explain("loops", d, at, of), passed_on.explain("loops", v, x)):
        assert "saved" in text
        assert text.count("in 0 .. N:") == 1  # the argument is copied before the loop


@op
def shortest_ways(D: real[N, N]):
    for k in range(N):
        D[i, j] <<= D[i, k] + D[k, j]
    return D


def test_rounds_that_read_rows_and_columns_save_these() -> None:
    # Some distances to itself are negative, so that reading what was written is not the same.
    for n in (0, 1, 2, 7):
        d = np.random.default_rng(n).normal(size=(n, n))
        expected = d.copy()
        for k in range(n):
            expected = np.minimum(expected, expected[:, k, None] + expected[None, k])
        for run in (shortest_ways, shortest_ways.interpret):
            np.testing.assert_array_equal(run(d), expected)
    text = shortest_ways.explain("loops", d)
    assert "swap" not in text
    assert "temporary D_2_saved: float64[N, 1]\ntemporary D_2_saved1: float64[1, N]\n" in text


def test_only_reads_that_are_made_are_checked_before() -> None:
    @op
    def f(d: real[N], at: int64[T]):
        for t in loop(T):
            old = d
            d[0] = old[0] + 1.0
            d[1] = old[at[t]] if at[t] < N else d[0]
        return d

    for run in (f, f.interpret):
        np.testing.assert_array_equal(run(np.arange(3.0), np.array([2, 7])), [2.0, 2.0, 2.0])


def test_what_a_tape_keeps_is_copied_where_it_is_made() -> None:
    row, column, size = index("i"), index("j"), SizeValue("N")

    def nest(variable: str, target: str, value: Expr, *cell: Expr) -> Nest:
        inner = Loop("j", integer(0), size, 1, (Store(target, cell, value),))
        return Nest(f"nest_{target}", target, (Loop(variable, integer(0), size, 1, (inner,), "parallel"),), integer(1))

    def read(name: str, *cell: Expr) -> Expr:
        return plain_read(name, cell, "float64")

    made = nest("i", "y", read("x", row, column), row, column)
    tape = nest("k", "tape", read("y", index("k"), column), size, index("k"), column)
    across = nest("k", "z", read("y", column, index("k")), index("k"), column)
    (both,) = with_shared_loops([made, tape])
    (loop,) = both.body
    assert isinstance(loop, Loop)
    assert loop.body[1:] == (
        Loop("j", integer(0), size, 1, (Store("tape", (size, row, column), read("y", row, column)),)),
    )
    # Another row is made by another step.
    assert with_shared_loops([made, across]) == [made, across]


def test_a_test_and_its_opposite_are_one_branch() -> None:
    @op
    def halved(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps = steps + 1
        return steps

    text = halved.explain("loops", 27)
    assert text.count("if ") == text.count("else:") == 1
    assert halved(27) == 111


def test_a_test_of_what_the_branch_before_has_changed_is_another_one() -> None:
    cold, mild = Local("cold", "bool"), Local("mild", "bool")
    rise, fall = Store("x", (), integer(1)), Store("x", (), integer(2))
    first, second = Branch(cold, (rise,)), Branch(apply("not_", cold), (fall,))
    assert with_opposite_branches_joined([first, second]) == (Branch(cold, (rise,), (fall,)),)
    assert with_opposite_branches_joined([second, first]) == (Branch(second.condition, (fall,), (rise,)),)
    changing = Branch(cold, (rise, Define("cold", mild)))
    for pair in ([changing, second], [first, Branch(mild, (fall,))], [first, rise, second]):
        assert with_opposite_branches_joined(pair) == tuple(pair)
    inside = Loop("i", integer(0), integer(3), 1, (first, second))
    assert with_opposite_branches_joined([inside]) == (replace(inside, body=(Branch(cold, (rise,), (fall,)),)),)


def test_a_minimum_waits_last_for_what_the_round_before_has_stored() -> None:
    @op
    def warped(x: real[N], y: real[M]):
        d: real[N + 1, M + 1]
        d[i, j] = inf
        d[0, 0] = 0.0
        for a in range(N):
            for b in range(M):
                d[a + 1, b + 1] = abs(x[a] - y[b]) + min(d[a + 1, b], d[a, b], d[a, b + 1])
        return d

    @op
    def backwards(x: real[N]):
        y: real[N]
        y[i] = x[i]
        for t in range(N - 2, 0, -1):
            y[t] = max(y[t + 1], x[t], y[t - 1])
        return y

    @op
    def steps(x: real[N], least):
        for t in range(1, N):
            least = min(least, x[t], x[t - 1])
        return least

    @op
    def relaxed(y, w):
        for t in range(1, y.shape[0] - 1):
            y[t] = (1.0 - w) * y[t] + w * (y[t - 1] + y[t + 1])
        return y

    x, y = np.array([1.0, 5.0, 2.0, np.nan, 4.0]), np.array([1.5, 2.5, 4.0])
    assert "= w_2 * (y_2[t_round] + y_2[t_round + 2]) + (1.0 - w_2) * y_2[t_round + 1]" in relaxed.explain(
        "loops", x, 0.5
    )
    np.testing.assert_allclose(relaxed(x, 0.5), relaxed.interpret(x, 0.5), rtol=1e-15)
    assert "+ min(min(d_3[a, b], d_3[a, b + 1]), d_3[a + 1, b])" in warped.explain("loops", x, y)
    assert "= max(max(x[N - t_round - 2], y_2[N - t_round - 3]), y_2[N - t_round - 1])" in backwards.explain("loops", x)
    assert "= min(min(x[t_round + 1], x[t_round]), least_3_2)" in steps.explain("loops", x, 3.0)
    for f, given in ((warped, (x, y)), (warped, (x[:3], y)), (backwards, (x,)), (steps, (x, 3.0)), (steps, (y, 2.0))):
        np.testing.assert_array_equal(f(*given), f.interpret(*given))


def test_what_stands_behind_a_loop_goes_on_in_its_memory() -> None:
    @cd
    def parted(a: real[N]):
        last = a[N - 1].copy()
        s = 0
        for t in range(N - 1):
            if a[t] < last:
                a[s], a[t] = a[t], a[s]
                s = s + 1
        a[s], a[N - 1] = a[N - 1], a[s]

    @op
    def summed(x: real[N]):
        y: real[N]
        y[0] = x[0]
        for t in range(1, N):
            y[t] = y[t - 1] + x[t]
        z = y
        y[0] = 7.0
        return y, z[N - 1], z

    @op
    def ended(x: real[N]):
        y: real[N]
        for t in range(N):
            y[t] = 2 * x[t]
        y[N - 1] = 7.0
        return y

    a = np.array([5.0, 1.0, 9.0, 2.0, 7.0, 3.0])
    assert parted.explain("loops", a).count("float64[N]") == 2  # the argument, and what the call changes of it
    parted(a)
    np.testing.assert_array_equal(a, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0])
    for found, want in zip(summed(a), summed.interpret(a), strict=True):
        np.testing.assert_array_equal(found, want)
    assert ended.explain("loops", a).count("float64[N]") == 2  # what is given and what is returned
    np.testing.assert_array_equal(ended(a), [2.0, 4.0, 6.0, 10.0, 14.0, 7.0])


def test_indices_are_checked_once_until_they_change() -> None:
    @op
    def exchanged(x: real[N], p: int64[M], q):
        first = 0
        for t in range(M):
            k = p[t]
            if k != first:
                x[k], x[first] = x[first], x[k]
                first = first + q
                x[first] = x[k]
        return x

    x, p = np.arange(6.0), np.array([1, 3])
    text = exchanged.explain("loops", x, p, 2)
    assert text.count("check") == 3  # `k`, `first`, and `first` when it is another one
    np.testing.assert_array_equal(exchanged(x, p, 2), exchanged.interpret(x, p, 2))
    for indices, q, wrong in (([1, 5], 9, 9), ([1, 6], 2, 6), ([-1], 2, -1), ([1, 2, 3], -1, -1)):
        with pytest.raises(DataIndexError, match=f"index {wrong} is out of range"):
            exchanged(x, np.array(indices), q)

    k, n = Local("k", "int64"), SizeValue("n")
    check = Check(in_range(k, n), "x", 0, k, n)
    copied = (Define("p", k), replace(check, condition=in_range(Local("p", "int64"), n)))
    again = Define("k", apply("add", k, integer(1)))
    loop = Loop("i", integer(0), n, 1, (check, again))
    branch = Branch(Local("b", "bool"), (check, again))
    for nodes, wanted in (
        ([check, *copied], [check, copied[0]]),
        ([check, again, check], [check, again, check]),
        ([*copied, again, check], [*copied, again, check]),
        (
            [check, Branch(Local("b", "bool"), (check, again)), check],
            [check, Branch(Local("b", "bool"), (again,)), check],
        ),
        ([Branch(Local("b", "bool"), (check,)), check], [Branch(Local("b", "bool"), (check,)), check]),
        ([check, loop], [check, loop]),
        ([check, replace(loop, body=(check,))], [check, replace(loop, body=())]),
    ):
        assert without_known_checks(nodes) == tuple(wanted)


def test_what_later_parts_read_is_asked_of_each_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @op
    def f(x, *, rounds):
        s = x[0]
        for _ in range(rounds):
            if s > 0.5:
                s = s * 0.7
        return s

    asked: list[object] = []
    cells_read = linker._cells_read
    monkeypatch.setattr(linker, "_cells_read", lambda repeat: asked.append(repeat) or cells_read(repeat))
    counts = []
    for rounds in (6, 24):
        asked.clear()
        lower(f.program(np.ones(3), rounds=rounds))
        counts.append(len(asked))
    assert 0 < counts[1] <= 4 * counts[0]


@op
def chains_of_places(s, m):
    # The places of equal values, each of which names the one before: `last` is read after the loop that reads `before`.
    last, before, found = np.full(m, -1), np.full(len(s), -1), np.zeros(len(s), np.int64)
    for i in range(len(s)):
        p = last[s[i]]
        while p >= 0:
            found[i] += p
            p = before[p]
        before[i] = last[s[i]]
        last[s[i]] = i
    return found, before, last


def test_what_is_read_behind_a_loop_is_overwritten_behind_it() -> None:
    s = np.random.default_rng(0).integers(0, 4, 30)
    for n in (0, 1, 30):
        for got, want in zip(chains_of_places(s[:n], 4), chains_of_places.interpret(s[:n], 4), strict=True):
            np.testing.assert_array_equal(got, want)
    # No round copies one of them.
    text = str(chains_of_places.explain("loops", s, 4))
    assert "swap" not in text
    assert "temporary last" not in text
