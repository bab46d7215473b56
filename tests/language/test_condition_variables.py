"""Whose the index variables of conditions are: the statement's, in every reduction inside its value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, outcome, refusal

X = np.random.default_rng(5).normal(size=(4, 3))
M = np.array([1.0, -1.0, 2.0, -3.0])
P = np.random.default_rng(6).normal(size=(5, 2))
POSITIVE = X[M > 0]
LOGS = np.log(np.exp(X).sum(1))
DISTANCES = ((P[:, None] - P[None]) ** 2).sum(-1)
ABOVE = np.triu(np.ones((5, 5), bool), 1)


def log_sum_exp(x: Any, i: Any) -> Any:
    return log(sum(exp(x[i, k])))


def test_a_condition_keeps_its_variable_out_of_the_reductions_of_the_value() -> None:
    @op
    def f(x, m):
        sums[()] += log(sum(exp(x[i, k]))), m[i] > 0
        bracketed[()] += log(sum(exp(x[i, k]))) * (m[i] > 0)
        less[()] -= log(sum(exp(x[i, k]))), m[i] > 0
        products[()] *= sum(x[i, k]), m[i] > 0
        largest[()] >>= sum(x[i, k]), m[i] > 0
        smallest[()] <<= max(x[i, k]), m[i] > 0
        means[()] += mean(x[i, k]) ** 2, m[i] > 0, m[i] < 2
        positions[()] += argmax(x[i, k]), m[i] > 0
        constant[()] += sum(x[i, k]) ** 2, i < 2
        nested[()] += log(sum(exp(x[i, k] - max(x[i, l])))), m[i] > 0
        any_of[()] |= all(x[i, k] > -1), m[i] > 0
        return (sums, bracketed, less, products, largest, smallest, means, positions, constant, nested, any_of)

    rows = POSITIVE.sum(1)
    logs = LOGS[M > 0]
    wanted = (
        logs.sum(), logs.sum(), -logs.sum(), rows.prod(), rows.max(), POSITIVE.max(1).min(), X[0].mean() ** 2,
        POSITIVE.argmax(1).sum(), (X[:2].sum(1) ** 2).sum(), (logs - POSITIVE.max(1)).sum(),
        (POSITIVE > -1).all(1).any(),
    )  # fmt: skip
    assert_gives(f, X, M, wanted=wanted)


def test_pairs_under_affine_conditions_and_conditions_on_data() -> None:
    @op
    def f(p, cutoff):
        r2 = sum((p[i, k] - p[j, k]) ** 2)  # a local definition, used in the value and in a condition
        energy[()] += 1 / (1 + r2), i < j, r2 < cutoff
        written[()] += sqrt(sum((p[i, k] - p[j, k]) ** 2)), i != j
        near[i] += 1, j != i, r2 < cutoff
        return energy, written, near

    close = DISTANCES < 3
    wanted = ((1 / (1 + DISTANCES))[ABOVE & close].sum(), np.sqrt(DISTANCES).sum(), close.sum(1) - 1)
    assert_gives(f, P, 3.0, wanted=wanted)


def test_in_helpers_and_in_conditions_with_reductions() -> None:
    @op
    def f(x, m):
        helped[()] += log_sum_exp(x, i), m[i] > 0
        chosen[()] += sum(x[i, k]) ** 2, sum(x[i, k]) > 0, i > 0
        return helped, chosen

    rows = X[1:].sum(1)
    assert_gives(f, X, M, wanted=(LOGS[M > 0].sum(), (rows[rows > 0] ** 2).sum()))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_for_other_element_types_and_declared_and_existing_targets(dtype: str) -> None:
    @op
    def f(x, m):
        declared = output(2)
        declared[m[i] % 2] += sum(x[i, k]) * max(x[i, k]), m[i] != 3
        declared[0] += 2 * sum(x[i, k]), m[i] == 3
        return declared

    a, m = np.arange(12).reshape(4, 3).astype(dtype), np.array([1, 3, 2, 3])
    products = (a.sum(1) * a.max(1)).astype(float)
    wanted = [products[2] + 2 * a[m == 3].sum(), products[0]]
    assert_gives(f, a, m, wanted=wanted)


def test_in_code_and_in_rounds_of_loops_that_run() -> None:
    @cd
    def code(t, x, m, rounds):
        for r in range(rounds):
            t[()] += log(sum(exp(x[i, k]))), m[i] > r - 1

    wanted = LOGS[M > -1].sum() + LOGS[M > 0].sum() + LOGS[M > 1].sum()
    (found,) = changed(code, np.zeros(()), X, M, 3)
    assert found == pytest.approx(wanted)

    @op
    def f(x, m):
        total = 0.0
        for n in range(len(m)):
            total[()] += log(sum(exp(x[i, k]))), m[i] > 0, i <= n
        return total

    chosen = np.where(M > 0, LOGS, 0.0)
    assert_gives(f, X, M, wanted=chosen.cumsum().sum())


def test_with_assign_and_on_tensors() -> None:
    @op
    def f(x, m):
        assign(t[()], "=+", log(sum(exp(x[i, k]))), m[i] > 0)
        return t

    assert_gives(f, X, M, wanted=LOGS[M > 0].sum())
    np.testing.assert_allclose(f(tc.tensor(X), tc.tensor(M)).value, LOGS[M > 0].sum())


def test_derivatives() -> None:
    @op
    def f(x, m):
        r2 = sum((x[i, k] - x[j, k]) ** 2)
        t[()] += log(sum(exp(x[i, k]))), m[i] > 0
        t[()] += 1 / (1 + r2), i < j, r2 < 100
        y[j] = mean(x[i, j] ** 2), m[i] > 0
        return t, y

    tc.check_grads(f, (X, M), order=2)


@op
def halved(a):
    while a > 1.0:
        a = a / 2
    return a


def test_loops_at_points_are_for_the_points_of_the_whole_statement() -> None:
    @op
    def f(x, w, m):
        weighted[()] += w[i] * halved(sum(exp(x[i, k])))
        chosen[()] += halved(sum(exp(x[i, k]))), m[i] > 0
        summed[l] = w[l] * sum(m[i] * halved(sum(exp(x[i, k]))))
        pairs[()] += halved(sum((x[i, k] - x[j, k]) ** 2) * 9), i < j, sum((x[i, k] - x[j, k]) ** 2) > 1
        return weighted, chosen, summed, pairs

    def half(a: float) -> float:
        while a > 1:
            a /= 2
        return a

    rows = np.array([half(each) for each in np.exp(X).sum(1)])
    distances = ((X[:, None] - X[None]) ** 2).sum(-1)[np.triu(np.ones((4, 4), bool), 1)]
    w = np.array([1.0, 2.0, 3.0, 4.0])
    wanted = (w @ rows, rows[M > 0].sum(), w * (M @ rows), sum(half(9 * each) for each in distances if each > 1))
    assert_gives(f, X, w, M, wanted=wanted)


@op
def halvings(a):
    n = 0.0
    while a > 1.0:
        a, n = a / 2, n + 1
    return a, n


def rest_and_count(x: Any, i: Any) -> Any:
    rest, count = halvings(sum(exp(x[i, k])))
    return rest + count


def test_so_they_are_where_results_are_taken_apart() -> None:
    @op
    def f(x, w, m):
        helped[()] += w[i] * rest_and_count(x, i)
        chosen[()] += w[i] * halvings(sum(exp(x[i, k])))[1], m[i] > 0
        twice[()] += w[i] * halvings(sum(exp(x[i, k])))[1] * halvings(sum(exp(x[i, k])) + w[i])[0]
        return helped, chosen, twice

    def half(a: float) -> tuple[float, float]:
        n = 0
        while a > 1:
            a, n = a / 2, n + 1
        return a, n

    w, rows = np.array([1.0, 2.0, 3.0, 4.0]), np.exp(X).sum(1)
    rests, counts = np.array([half(each) for each in rows]).T
    shifted = np.array([half(each)[0] for each in rows + w])
    wanted = (w @ (rests + counts), (w * counts)[M > 0].sum(), (w * counts * shifted).sum())
    assert_gives(f, X, w, M, wanted=wanted)


# -- plain stores --------------------------------------------------------------------------------------------


def test_in_a_plain_store_they_are_those_of_the_reduction_that_is_its_value() -> None:
    @op
    def f(x, m):
        total[j] = sum(x[i, j]), i > j
        average[j] = mean(x[i, j]), m[i] > 0
        first[j] = argmax(x[i, j]), m[i] > 0
        s = mean(x[i, j])
        local[j] = s, m[i] > 0, j > 0
        outer[j] = mean(max(x[i, k]) + x[i, j]), m[i] > 0
        rows[j] = mean(x[i, j]), sum(x[i, k]) > 0  # the sum of each row
        repeated[j] = sum(x[0, j]), m[i] > 0
        return total, average, first, local, outer, rows, repeated

    masked = np.where(M[:, None] > 0, X, -9.0)
    wanted = (
        [X[j + 1 :, j].sum() for j in range(3)], POSITIVE.mean(0), masked.argmax(0),
        [0.0, *POSITIVE.mean(0)[1:]], (POSITIVE + POSITIVE.max(1, keepdims=True)).mean(0),
        X[X.sum(1) > 0].mean(0), 2 * X[0],
    )  # fmt: skip
    assert_gives(f, X, M, wanted=wanted)


def test_any_other_plain_store_is_an_error_that_shows_both_spellings() -> None:
    @op
    def divided(E):
        Y[i, j] = E[i, j] / sum(E[i, l]), l <= i
        return Y

    message = refusal(tc.DslSyntaxError, divided, X)
    assert "the condition mentions `l`, which is not on the target of `=`" in message
    assert "write `sum(E[i, l] for l in range(E.shape[1]) if l <= i)` to reduce over those values" in message
    assert "say how the values for all `l` combine, as in `Y[i, j] += ..., l <= i`" in message

    @op
    def spelled(E):
        Y[i, j] = E[i, j] / sum(E[i, l] for l in range(E.shape[1]) if l <= i)
        return Y

    a = np.abs(X)
    assert_gives(spelled, a, wanted=a / np.array([row[: i + 1].sum() for i, row in enumerate(a)])[:, None])

    @op
    def copied(x, m):
        y[i] = x[i, 0], m[k] > 0
        return y

    message = refusal(tc.DslSyntaxError, copied, X, M)
    assert "write `any(m[k] > 0)` for whether there is one" in message
    assert "as in `y[i] += ..., m[k] > 0`" in message

    @op
    def several(x):
        y[i] = 2 * max(x[i, k]), k < 2, x[i, k] < 5
        return y

    assert "`max(x[i, k] for k in range(x.shape[1]) if k < 2 if x[i, k] < 5)`" in refusal(tc.DslSyntaxError, several, X)


def test_a_reduction_that_a_condition_leaves_nothing_to_bind_says_so() -> None:
    @op
    def f(x):
        y[i] += 2 * sum(x[i, k]), k < 2
        return y

    message = refusal(tc.DslSyntaxError, f, X)
    assert "the reduction binds no index variable" in message
    assert "write `sum(x[i, k] for k in range(x.shape[1]) if k < 2)` for conditions of this reduction alone" in message


def test_the_letter_of_a_generator_in_a_condition_is_an_error() -> None:
    @op
    def reset(x):
        y[i] = sum(x[i, j] for j in range(3)), j > 0
        return y

    @op
    def inside(x):
        y[i] += 2 * sum(x[i, j] for j in range(3)), j > 0
        return y

    for f in (reset, inside):
        message = refusal(tc.DslSyntaxError, f, X)
        assert "the condition mentions `j`, which a generator of the value binds for itself" in message
        assert "write the condition as an `if` of the generator" in message

    @op
    def other(x, m):
        y[i] = sum(x[i, j] for j in range(3)), m[k] > 0
        return y

    message = refusal(tc.DslSyntaxError, other, X, M)
    assert "`k`, which is neither on the target nor bound by the generator" in message
    assert "add `for k in range(n)` to the generator" in message


# -- counting ------------------------------------------------------------------------------------------------


def test_a_read_in_a_condition_gives_a_range() -> None:
    @op
    def f(x, m):
        cells[()] += 1, x[i, j] > 0.5
        rows[i] += 1, x[i, j] != 0, m[j] > 0
        lattice[()] += 1, i < 3, j < 4, (i + j) % 2 == 0
        shifted[()] += 1, m[i + 1] > m[i]
        found[()] |= True, x[i, j] > 1
        return cells, rows, lattice, shifted, found

    found = outcome(f, X, M[:3])
    wanted = ((X > 0.5).sum(), [2, 2, 2, 2], 6, (np.diff(M[:3]) > 0).sum(), (X > 1).any())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_counting_in_code_with_declared_targets_and_in_rounds() -> None:
    @cd
    def count(bins, a, b, rounds):
        for r in range(rounds):
            bins[a[i]] += 1, b[i] > r

    a, b = np.array([0, 2, 2, 1]), np.array([1, 2, 3, 0])
    (found,) = changed(count, np.zeros(3, int), a, b, 3)
    np.testing.assert_array_equal(found, [1, 0, 5])


def test_what_nothing_bounds_is_an_error() -> None:
    @op
    def f(x, m):
        n[()] += 1, m[i] > 0, j < i
        return n

    assert "the range of the index `j` cannot be inferred" in refusal(tc.ShapeError, f, X, M)


def test_a_condition_whose_reduction_reads_through_data() -> None:
    @op
    def f(x, table, ids):
        t[()] += x[j], max(table[ids[j], k]) > 1, x[j] > 0
        return t

    table, ids = np.array([[0.0, 1.0], [1.0, 2.0]]), np.array([0, 1, 1])
    assert_gives(f, np.array([1.0, 2.0, -4.0]), table, ids, wanted=2.0)


def test_reductions_of_numbers_take_the_variables_of_conditions() -> None:
    @op
    def f(x):
        n = output(3)
        n[0] = sum(1.0), x[i] > 0
        n[1] = max(2), x[i] > 0
        n[2] = mean(0.5), x[i] > 0
        return n

    np.testing.assert_array_equal(f(np.array([1.0, 2.0, -1.0])), [2, 2, 0.5])

    @op
    def g(x):
        y[i] = x[i] * sum(2.0)
        return y

    with pytest.raises(tc.DslSyntaxError, match="the reduction binds no index variable"):
        g(np.ones(2))
