"""The table of accumulators: operators, neutral elements, spellings of ``assign``, order."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, refusal

A = np.array([[3.0, 1.0, 2.0], [0.5, 2.0, 4.0]])
HELD = np.array([10.0, 20.0])


def folded(step, start, values):
    """``values`` combined along each row, from left to right."""
    held = np.broadcast_to(np.asarray(start, float), values.shape[:1])
    for column in values.T:
        held = step(held, column)
    return held


STEPS = {
    "+": (np.add, 0.0),
    "-": (np.subtract, 0.0),
    "*": (np.multiply, 1.0),
    "/": (np.divide, 1.0),
    "**": (np.power, 1.0),
    "@^": (np.maximum, -np.inf),
    "^^": (np.minimum, np.inf),
    "?/": (lambda a, b: np.where(a > 0, b, 0), 1.0),
    "?^": (lambda a, b: np.where((a > 0) & (a < 1), b, 0), 0.5),
}


def test_every_operator_starts_a_fresh_target_from_its_neutral_element() -> None:
    @op
    def f(A):
        N = A.shape[0]
        add, subtract, multiply, divide = output(N + 1), output(N + 1), output(N + 1), output(N + 1)
        power, largest, smallest = output(N + 1), output(N + 1), output(N + 1)
        add[i] += A[i, k]
        subtract[i] -= A[i, k]
        multiply[i] *= A[i, k]
        divide[i] /= A[i, k]
        power[i] **= A[i, k]
        largest[i] >>= A[i, k]
        smallest[i] <<= A[i, k]
        return add, subtract, multiply, divide, power, largest, smallest

    # The last cell is written by no point.
    literals = ["+", "-", "*", "/", "**", "@^", "^^"]
    wanted = tuple(np.append(folded(*STEPS[literal], A), STEPS[literal][1]) for literal in literals)
    assert_gives(f, A, wanted=wanted)


def test_every_operator_combines_with_what_an_existing_target_holds() -> None:
    @op
    def f(A, add, subtract, multiply, divide, power, largest, smallest):
        add[i] += A[i, k]
        subtract[i] -= A[i, k]
        multiply[i] *= A[i, k]
        divide[i] /= A[i, k]
        power[i] **= A[i, k]
        largest[i] >>= A[i, k]
        smallest[i] <<= A[i, k]
        return add, subtract, multiply, divide, power, largest, smallest

    wanted = tuple(folded(step, HELD, A) for step, _ in list(STEPS.values())[:7])
    assert_gives(f, A, *([HELD] * 7), wanted=wanted)
    assert_gives(f, A[:, :0], *([HELD] * 7), wanted=(HELD,) * 7)


def test_or_and_and_start_from_false_and_true() -> None:
    @op
    def f(A, held):
        N = A.shape[0]
        some, every = output(N + 1), output(N + 1)
        some[i] |= A[i, k] > 3
        every[i] &= A[i, k] < 4
        held[i] |= A[i, k] > 3
        held[i] &= A[i, 0] > 1
        return some, every, held

    wanted = ([False, True, False], [True, False, True], [True, False])
    assert_gives(f, A, np.array([True, False]), wanted=wanted, dtype=bool)


def test_integer_targets_of_max_and_min_start_from_the_ends_of_their_type() -> None:
    @op
    def f(n):
        a, b = output(3), output(3)
        a[i] >>= n[i]
        b[i] <<= n[i]
        return a, b

    n = np.array([3, -4], np.int16)
    assert_gives(f, n, wanted=([3, -4, -(2**15)], [3, -4, 2**15 - 1]), dtype=np.int16)


def test_shifts_and_bitwise_operators_of_statements_always_accumulate() -> None:
    @op
    def f(n, m):
        n[i] >>= m[i]
        m[i] <<= 3
        return n, m

    # Not 40 >> 2 and not 2 << 3.
    assert_gives(f, np.array([40, 1]), np.array([2, 5]), wanted=([40, 5], [2, 3]))

    @cd
    def whole(n, m):
        n >>= m

    assert changed(whole, np.array([40, 1]), np.array([2, 5]))[0].tolist() == [40, 5]


def test_assign_takes_every_accumulator_onto_what_a_target_holds() -> None:
    @op
    def f(A, held):
        a[i] = held[i]
        b[i] = held[i]
        c[i] = held[i]
        d[i] = held[i]
        e[i] = held[i]
        g[i] = held[i]
        h[i] = held[i]
        assign(a[i], "=+", A[i, k])
        assign(b[i], "=-", A[i, k])
        assign(c[i], "=*", A[i, k])
        assign(d[i], "=/", A[i, k])
        assign(e[i], "=**", A[i, k])
        assign(g[i], "=@^", A[i, k])
        assign(h[i], "=^^", A[i, k])
        return a, b, c, d, e, g, h

    wanted = tuple(folded(step, HELD, A) for step, _ in list(STEPS.values())[:7])
    assert_gives(f, A, HELD, wanted=wanted)


def test_assign_with_a_colon_starts_anew() -> None:
    @op
    def f(A, a, b, c, d, e, g, h):
        assign(a[i], "=:+", A[i, k])
        assign(b[i], "=:-", A[i, k])
        assign(c[i], "=:*", A[i, k])
        assign(d[i], "=:/", A[i, k])
        assign(e[i], "=:**", A[i, k])
        assign(g[i], "=:@^", A[i, k])
        assign(h[i], "=:^^", A[i, k])
        return a, b, c, d, e, g, h

    wanted = tuple(folded(step, start, A) for step, start in list(STEPS.values())[:7])
    assert_gives(f, A, *([HELD] * 7), wanted=wanted)


def test_the_gates_start_from_1_and_one_half_and_pass_values_in_row_major_order() -> None:
    @op
    def f(A, held):
        N = A.shape[0]
        relu_new, sat_new = output(N + 1), output(N + 1)
        assign(relu_new[i], "=?/", A[i, k])
        assign(sat_new[i], "=?^", A[i, k])
        r[i] = held[i]
        s[i] = held[i]
        assign(r[i], "=?/", A[i, k])
        assign(s[i], "=?^", A[i, k])
        u[i] = held[i]
        v[i] = held[i]
        assign(u[i], "=:?/", A[i, k])
        assign(v[i], "=:?^", A[i, k])
        return relu_new, sat_new, r, s, u, v

    values = np.array([[0.5, -1.0, 3.0], [2.0, 0.25, 0.75]])
    held = np.array([0.5, -0.5])
    relu_gate, sat01_gate = STEPS["?/"][0], STEPS["?^"][0]
    from_relu, from_sat = folded(relu_gate, 1.0, values), folded(sat01_gate, 0.5, values)
    wanted = (
        np.append(from_relu, 1.0),
        np.append(from_sat, 0.5),
        folded(relu_gate, held, values),
        folded(sat01_gate, held, values),
        from_relu,
        from_sat,
    )
    assert_gives(f, values, held, wanted=wanted)


def test_assign_of_truth_values() -> None:
    @op
    def f(A, held):
        a[i] = held[i]
        b[i] = held[i]
        assign(a[i], "=||", A[i, k] > 3)
        assign(b[i], "=&&", A[i, k] < 4)
        assign(c[i], "=:||", A[i, k] > 3)
        assign(d[i], "=:&&", A[i, k] < 4)
        return a, b, c, d

    held = np.array([True, False])
    wanted = ([True, True], [True, False], [False, True], [True, False])
    assert_gives(f, A, held, wanted=wanted, dtype=bool)


def test_assign_alone_stores_and_takes_conditions() -> None:
    @op
    def f(A, held):
        assign(held[i], "=:", A[i, 0], i > 0)
        return held

    assert_gives(f, A, HELD, wanted=[10, 0.5])


def test_other_operators_of_assign_are_refused_with_the_list() -> None:
    @op
    def f(A):
        assign(a[i], "+=", A[i, k])
        assign(b[i], "=>", A[i, k])
        assign(c[i], "=", A[i, 0])
        assign(d[i], "=?", A[i, k])
        assign(e[i], "==", A[i, k])
        assign(g[i], 3, A[i, k])
        return a, b, c, d, e, g

    with pytest.raises(tc.DslSyntaxError) as caught:
        f(A)
    faults = caught.value.diagnostics
    assert [fault.span.line - faults[0].span.line for fault in faults] == [0, 1, 2, 3, 4, 5]
    for fault in faults:
        assert "of `assign`" in fault.fact
        assert '"=:+"' in fault.hint
        assert '"=:?/"' in fault.hint


def test_other_augmented_assignments_are_no_accumulators() -> None:
    @op
    def remainder(A):
        y[i] %= A[i, k]
        return y

    @op
    def quotient(A):
        y[i] //= A[i, k]
        return y

    for function in (remainder, quotient):
        message = refusal(tc.DslSyntaxError, function, A)
        assert "no accumulator has this operator" in message
        assert ">>= (max)" in message


def test_divisions_and_powers_take_values_in_row_major_order() -> None:
    @op
    def f(A):
        p[()] **= A[i, k]
        q[k] **= A[i, k]
        n[()] /= A[i, k]
        return p, q, n

    A = np.array([[1.5, 2.0], [0.5, 3.0]])
    columns = [(1.0**1.5) ** 0.5, (1.0**2.0) ** 3.0]
    assert_gives(f, A, wanted=(1.0, columns, 1 / 1.5 / 2.0 / 0.5 / 3.0))

    @op
    def held(A, p, r):
        p[()] **= A[i, k]
        assign(r[()], "=?/", A[i, k])
        return p, r

    # Row by row, the last value passes the gate; column by column it would meet the 0 that -2.0 left behind.
    B = np.array([[1.5, 0.5], [-2.0, 3.0]])
    assert_gives(held, B, 2.0, 1.0, wanted=(2.0 ** (1.5 * 0.5 * -2.0 * 3.0), 0.0))


def test_integer_division_into_integers_is_refused() -> None:
    @op
    def f(n, m):
        n[i] /= m[i]
        return n

    message = refusal(tc.DtypeError, f, np.array([4, 6]), np.array([2, 3]))
    assert "`/=` gives floating numbers, which a tensor of int64 cannot hold" in message
    assert "`//`" in message


def cell_by_cell(bits, at, by):
    found = np.zeros(4, np.int64)
    rest = np.full((2, 4), 1000)
    turns = np.full(4, 7.5)
    for i in range(len(bits)):
        found[at[i]] ^= bits[i]
        rest[1, at[i]] //= 3
        rest[0, i % 4] %= 7 + by[i]
        turns[at[i]] %= 2.0
    found[0] ^= 5
    return found, rest, turns


def test_other_operators_of_python_change_single_cells() -> None:
    given = np.array([1, 2, 4, 8, 16]), np.array([0, 1, 1, 0, 3]), np.arange(5)
    decorated = tc.op(cell_by_cell)
    for expected, found, read in zip(cell_by_cell(*given), decorated(*given), decorated.interpret(*given), strict=True):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(read, expected)
        assert found.dtype == expected.dtype


def test_bits_of_a_single_integer_are_not_taken_for_truth() -> None:
    @op
    def either(bits, at):
        y = bits * 0
        for i in range(at.shape[0]):
            y[at[i]] |= bits[i]
        return y

    bits, at = np.array([1, 2, 4]), np.array([1, 1, 2])
    message = refusal(tc.DslSyntaxError, either, bits, at)
    assert "`y[at[i]] |= ...` on a single integer is `or_` for tensors, and bitwise for numbers of Python" in message
    assert "`y[at[i]] = y[at[i]] | ...`" in message
    np.testing.assert_array_equal(either(bits > 1, at), [False, True, True])
