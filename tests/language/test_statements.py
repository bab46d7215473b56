"""Forms of a statement: fresh and existing targets, the reset form, plain ``=``, snapshots, local definitions."""

from __future__ import annotations

import numpy as np

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, refusal

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
B = np.array([[2.0, -1.0], [0.5, 3.0], [1.0, 1.0]])
x = np.array([1.0, 2.0, 3.0, 4.0])
C = np.full((7, 7), 99.0)  # of the same name as targets below; must not matter


def test_a_statement_is_a_target_an_accumulator_a_value_and_conditions() -> None:
    @op
    def f(A):
        y[i] += A[i, j]
        z[i] += A[i, j], j > 0
        w[i] += A[i, j], j > 0, A[i, j] > 3
        return y, z, w

    assert_gives(f, A, wanted=([6, 16], [5, 12], [0, 12]))


def test_a_tensor_of_rank_0_is_written_with_empty_brackets_and_read_bare() -> None:
    @op
    def f(x):
        total[()] += x[i]
        y[i] = x[i] / total
        z[i] = x[i] / total[()]
        total[()] *= 2.0
        return y, z, total

    assert_gives(f, x, wanted=(x / 10, x / 10, 20.0))


def test_a_number_is_a_tensor_of_rank_0() -> None:
    @op
    def f(x, p, n, *, q):
        y[i] = x[i] * p[()] + n[()] + q
        p[()] += x[i]
        n[()] >>= 2
        return y, p, n

    for value in (2.0, np.float64(2.0), np.array(2.0)):
        assert_gives(f, x, value, 3, q=0.5, wanted=(2 * x + 3.5, 12.0, 3))

    @cd
    def g(x, p):
        p[()] += x[i]

    assert "`p` is a number, which code cannot change in place" in refusal(tc.DtypeError, g, x, 2.0)
    (p,) = changed(g, x, np.array(2.0), written=(1,))
    assert p == 12


def test_a_fresh_target_starts_from_the_neutral_element() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N + 2)
        y[i + 1] *= x[i]
        return y

    assert_gives(f, x, wanted=[1, 1, 2, 3, 4, 1])


def test_an_existing_target_accumulates_onto_what_it_holds() -> None:
    @op
    def f(x, y):
        y[i] += x[i]
        y[i] *= 10
        z[i] = x[i]
        z[i] -= y[i]
        return y, z

    y = np.array([1.0, 0.0, -1.0, 5.0])
    assert_gives(f, x, y, wanted=(10 * (x + y), x - 10 * (x + y)))
    np.testing.assert_array_equal(y, [1, 0, -1, 5])


def test_a_tensor_of_the_same_name_around_the_function_is_no_target_of_it() -> None:
    y = np.full(9, 5.0)

    @op
    def f(A, B):
        C[i, j] += A[i, k] * B[k, j]
        y[i] += C[i, i]
        return C, y

    assert_gives(f, A, B, wanted=(A @ B, np.diag(A @ B)))
    assert (C == 99).all()
    assert (y == 5).all()


def test_a_loop_that_reuses_a_name_says_that_it_exists_and_how_to_start_anew() -> None:
    @op
    def mlp(x, first, second):
        for w in (first, second):
            h[n, o] += x[n, i] * w[i, o]
            x = h
        return x

    @op
    def resets(y, A):
        y[i] = sum(A[k, i])
        return y

    message = refusal(tc.ShapeError, mlp, np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5)))
    assert "the index `o` runs over axis 1 of h, which has the extent 4, and over axis 1 of second" in message
    assert "`h` exists already" in message
    assert "use another name, or write `h = output()` before the statement in an @op function" in message

    @op
    def advised(x, first, second):
        for w in (first, second):
            h = output()
            h[n, o] += x[n, i] * w[i, o]
            x = h
        return x

    wanted = np.full((2, 5), 12.0)
    np.testing.assert_array_equal(advised.interpret(np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))), wanted)
    assert "`y` exists already and keeps its" in refusal(tc.ShapeError, resets, np.ones(3), np.ones((2, 4)))


def test_a_loop_that_reuses_a_name_of_one_shape_accumulates_and_the_reset_form_starts_anew() -> None:
    @op
    def accumulating(x, *, times: int):
        for _ in range(times):
            y[i] += x[i]
        return y

    @op
    def anew(x, w, *, times: int):
        for _ in range(times):
            y[o] = sum(x[i] * w[i, o])
            x = y
        return y

    w = np.array([[1.0, 2.0], [0.5, -1.0]])
    assert_gives(accumulating, x, times=3, wanted=3 * x)
    assert_gives(anew, x[:2], w, times=3, wanted=x[:2] @ w @ w @ w)


def test_the_reset_form_gives_the_cells_that_it_reaches_the_neutral_element_first() -> None:
    @op
    def f(A, s, p, u, v, e, a):
        s[i + 1] = sum(A[i, k])
        p[i + 1] = prod(A[i, k])
        u[i + 1] = max(A[i, k])
        v[i + 1] = min(A[i, k])
        e[i + 1] = any(A[i, k] > 6)
        a[i + 1] = all(A[i, k] > 3)
        return s, p, u, v, e, a

    held, flags = np.array([100.0, -100.0, 7.0]), np.array([True, True, True])
    wanted = ([100, 6, 16], [100, 6, 140], [100, 3, 7], [100, 1, 4], [True, False, True], [False, False, True])
    assert_gives(f, A, held, held, held, held, flags, ~flags, wanted=wanted)


def test_the_reset_form_takes_a_generator_and_equals_the_literal_operator() -> None:
    @op
    def f(A, B):
        C[i, j] = sum(A[i, k] * B[k, j] for k in range(3))
        D[i, j] = sum(A[i, k] * B[k, j])
        assign(E[i, j], "=:+", A[i, k] * B[k, j])
        return C, D, E

    assert_gives(f, A, B, wanted=(A @ B, A @ B, A @ B))


def test_any_other_assignment_is_a_plain_store() -> None:
    @op
    def f(A, y, z):
        y[i + 1] = 2 * sum(A[i, k]), i >= 0
        z[i + 1] = max(A[i, 0], A[i, 1])
        return y, z

    held = np.array([100.0, -100.0, 7.0])
    assert_gives(f, A, held, held, wanted=([100, 12, 32], [100, 2, 5]))


def test_whole_tensors_take_part_in_ordinary_arithmetic_with_broadcasting() -> None:
    @op
    def f(A, B, v):
        product = A @ B
        scaled = A * v + 1
        C[i, j] += scaled[i, j] - 1
        return product, scaled, relu(A - 3), C, A[:, None, 0] + v

    v = np.array([1.0, 10.0, 100.0])
    wanted = (A @ B, A * v + 1, np.maximum(A - 3, 0), A * v, A[:, None, 0] + v)
    assert_gives(f, A, B, v, wanted=wanted)

    @cd
    def sgd(p, g, *, learning_rate):
        p -= learning_rate * g

    (p,) = changed(sgd, x, np.ones(4), learning_rate=0.5)
    np.testing.assert_array_equal(p, x - 0.5)


def test_in_code_a_bare_name_that_holds_a_tensor_is_stored_into() -> None:
    @cd
    def f(p, g):
        p = 2 * g
        p[i] += g[i], i > 0

    (p,) = changed(f, x, np.ones(4))
    np.testing.assert_array_equal(p, [2, 3, 3, 3])


# -- plain `=` ---------------------------------------------------------------------------------------------------


def test_an_index_that_the_target_lacks_is_an_error_that_names_the_accumulators() -> None:
    @op
    def f(A):
        y[i] = A[i, k]
        return y

    message = refusal(tc.TcdslError, f, A)
    assert "`k`" in message
    for accumulator in ("+=", "*=", ">>=", "<<="):
        assert accumulator in message


def test_a_map_that_is_one_to_one_for_no_sizes_is_an_error_at_staging() -> None:
    @op
    def f(x):
        a[i // 2] = x[i]
        b[i // 2 + i // 3] = x[i]
        c[i + j] = x[i] * x[j]
        d = output(20)
        d[2 * i - 2 * j] = x[i] * x[j]
        return a, b, c, d

    # One point hits no cell twice, yet the error comes: when the function is staged, whatever the sizes.
    message = refusal(tc.ShapeError, f, np.ones(1))
    for target in ("a[i // 2]", "b[i // 2 + i // 3]", "c[i + j]", "d[2 * i - 2 * j]"):
        assert f"`=` writes each cell once, but {target} is the same for different points" in message

    @op
    def g(x):
        y = output(3)
        y[0] = x[i]
        return y

    assert "`i` is not on the target y" in refusal(tc.DslSyntaxError, g, x)


def test_a_map_that_is_one_to_one_for_some_sizes_is_checked_at_the_call() -> None:
    @op
    def f(A, width):
        W = width.shape[0]
        N, M = A.shape
        y = output(N * W + M)
        y[W * i + j] = A[i, j]
        return y

    @op
    def g(x):
        y[i % 3] = x[i]
        return y

    assert_gives(g, x[:3], wanted=[1, 2, 3])
    assert "y[i % 3]" in refusal(tc.ShapeError, g, x)
    assert_gives(f, A, np.ones(3), wanted=[1, 2, 3, 4, 5, 7, 0, 0, 0])
    assert_gives(f, A, np.ones(4), wanted=[1, 2, 3, 0, 4, 5, 7, 0, 0, 0, 0])
    message = refusal(tc.TcdslError, f, A, np.ones(2))
    assert "`W * i + j` on axis 0 of y meets cells again" in message
    assert "W = 2" in message


def test_digits_that_overlap_in_one_cell_are_not_one_to_one() -> None:
    @op
    def f(x, width):
        P = width.shape[0]
        M = x.shape[0]
        y = output(M * P + 1)
        y[i * P + p] = x[i, p], p <= P
        return y

    x = np.arange(12.0).reshape(3, 4)
    assert "cells, more than the stride P" in refusal(tc.ShapeError, f, x, np.ones(3))


def test_a_map_that_depends_on_data_needs_unique_which_is_checked() -> None:
    @op
    def plain(x, p):
        y = output(4)
        y[p[i]] = x[i]
        return y

    @op
    def permuted(x, p):
        y = output(4)
        assign(y[p[i]], "=:", x[i], unique=True)
        return y

    message = refusal(tc.TcdslError, plain, x, np.arange(4))
    assert "unique=True" in message
    assert_gives(permuted, x, np.array([2, 0, 3, 1]), wanted=[2, 4, 1, 3])
    assert_gives(permuted, x[:2], np.array([2, 0]), wanted=[2, 0, 1, 0])
    message = refusal(tc.TcdslError, permuted, x, np.array([2, 0, 2, 1]))
    assert "2" in message
    assert "twice" in message or "more than once" in message or "two points" in message


def test_unique_checks_at_the_call_what_depends_on_sizes_too() -> None:
    @op
    def rows(A, q):
        (P,) = q.shape
        y = output(8)
        assign(y[i * P + p], "=:", A[i, p], unique=True)
        return y

    assert_gives(rows, A, np.ones(4), wanted=[1, 2, 3, 0, 4, 5, 7, 0])
    assert_gives(rows, A, np.ones(3), wanted=[1, 2, 3, 4, 5, 7, 0, 0])
    assert "`y` is written twice" in refusal(tc.ShapeError, rows, A, np.ones(2))


# -- snapshots ---------------------------------------------------------------------------------------------------


def test_a_statement_reads_its_own_target_as_it_was_before() -> None:
    @op
    def f(x):
        y[i] = x[i]
        y[i] = y[3 - i]
        z[i] = x[i]
        z[i] += z[i + 1]
        w[i] = x[i]
        w[i] *= w[k]
        v[i] = x[i]
        v[i] = sum(v[k] * (k <= i))
        return y, z, w, v

    z = np.array([3.0, 5.0, 7.0, 4.0])
    assert_gives(f, x, wanted=(x[::-1], z, x * 24, [1, 3, 6, 10]))


def test_code_in_place_reads_its_target_as_it_was_before_too() -> None:
    @cd
    def shift(p):
        p[i] = p[i - 1]

    @cd
    def rotate(p):
        p[i] = p[wrap(i + 1)]

    @cd
    def smooth(p):
        p[i] += p[i - 1] + p[i + 1]

    np.testing.assert_array_equal(changed(shift, x)[0], [1, 1, 2, 3])
    np.testing.assert_array_equal(changed(rotate, x)[0], [2, 3, 4, 1])
    np.testing.assert_array_equal(changed(smooth, x)[0], [1, 6, 9, 4])


# -- local definitions -------------------------------------------------------------------------------------------


def test_a_local_definition_is_a_scalar_at_each_point() -> None:
    @op
    def f(x):
        z = x[i] * x[i]
        twice = z + z
        y[i] = z + 1
        s[()] += twice
        u[i, j] = z * x[j]
        return y, s, u

    assert_gives(f, x, wanted=(x**2 + 1, 60.0, np.outer(x**2, x)))


def test_a_local_definition_is_computed_once_per_point() -> None:
    @op
    def f(x):
        z = exp(x[i])
        y[i] = z * z + z
        return y

    assert_gives(f, x, wanted=np.exp(2 * x) + np.exp(x))
    (line,) = (line for line in f.explain("ir", x).splitlines() if "exp(" in line)
    assert line.count("exp(") == 1


def test_a_local_definition_is_no_array() -> None:
    @op
    def f(x):
        z = x[i] * x[i]
        return z  # noqa: RET504

    message = refusal(tc.DslSyntaxError, f, x)
    assert "a local definition is a scalar at each point, not an array" in message
    assert "`y[i] = z`" in message


def test_targets_of_statements_are_names() -> None:
    @op
    def part(A):
        A[1:][i, j] = 0.0
        return A

    message = refusal(tc.DslSyntaxError, part, A)
    assert "`i` is not defined; an index variable has a meaning only in a tensor statement" in message
    assert "write `T[i] = ...` with a name for `T`, one at a time" in message


def test_statements_in_a_helper_that_is_not_decorated() -> None:
    @op
    def f(x):
        def doubled(v):
            w[i] = 2 * v[i]
            return w

        return doubled(x)

    message = refusal(tc.DslSyntaxError, f, x)
    assert "is not defined; `doubled` is an ordinary function without tensor statements" in message
    assert "decorate `doubled` with @op" in message


def test_a_local_definition_is_substituted_in_the_loops_of_a_reduction() -> None:
    @op
    def f(A):
        square = A[i, k] * A[i, k]
        y[i] = sum(square) / sum(square * square)
        largest = max(A[i, k])
        z[i] = largest * 2
        return y, z

    squares = A * A
    assert_gives(f, A, wanted=(squares.sum(1) / (squares**2).sum(1), 2 * A.max(1)))


def test_cells_among_several_targets() -> None:
    @op
    def cells(x: real[N]):
        x[1:], x[0] = x[:-1], x[-1]
        y[i], z[i] = x[i], 2 * x[i]
        held = {}
        held["last"], first = x[-1], x[0]
        return y, z, held["last"] - first

    @op
    def rotated(A: real[N, M]):
        for t in range(N - 1):
            A[t], A[t + 1] = A[t + 1], A[t]
        return A

    for found, wanted in zip(cells(np.arange(4.0)), ([3, 0, 1, 2], [6, 0, 2, 4], -1), strict=True):
        np.testing.assert_array_equal(found, wanted)
    A = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(rotated(A), np.roll(A, -1, axis=0))
    np.testing.assert_array_equal(tc.grad(lambda A: rotated(A)[0].sum())(A), [[0, 0], [1, 1], [0, 0], [0, 0]])
