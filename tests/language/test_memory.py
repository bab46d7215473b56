"""Views are memory in code, and parts of tensors are targets, as in NumPy (`tests/differential/test_memory.py` draws
programs)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, refusal
from tests.language.running_programs import program

A = np.arange(1.0, 13.0).reshape(3, 4)
B = np.arange(9.0).reshape(3, 3)
X = np.array([2.0, -1.0, 3.0, 0.5])


def numpys(f: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """What the function's own text makes of copies of ``arrays``."""
    copies = [array.copy() for array in arrays]
    f.function(*copies)
    return copies


def does_as_numpy(f: Any, *arrays: np.ndarray, written: int = 1) -> None:
    for one, other in zip(f.interpret(*arrays), numpys(f, *arrays)[:written], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_basic_index_binds_a_view_through_which_statements_write() -> None:
    @cd
    def f(a, x):
        w = a[1:]
        w *= 2.0
        w[...] = w + x
        w[0] = 7.0
        w = w.T[::-1]
        w -= 1.0
        w: real[4, 2]
        w += 0.5
        (row,) = a[:1, 1:]
        row[::2] /= 2.0
        u, v = a[2], a[0, None, 1:]
        u //= 3.0
        v[0] **= 2.0
        a[1][1:] %= 4.0
        a.T[0, 1:] = x[:2]
        a[:, 1], a[:, 2] = 5.0, x[1:]

    does_as_numpy(f, A, X)
    found = changed(f, A.copy(), X)[0]
    np.testing.assert_array_equal(found, numpys(f, A, X)[0])


def test_names_in_loops_and_branches_are_bound_to_each_view_in_turn() -> None:
    @cd
    def f(a, *, last):
        for k in range(last):
            row = a[k]
            row += k
            row[1:] -= row[:-1]
        column = a[:, 0] if last > 2 else a[:, 1]
        column *= 10.0

    for last in (2, 3):
        copies = A.copy()
        f.function(copies, last=last)
        np.testing.assert_array_equal(f.interpret(A, last=last)[0], copies)


def test_a_name_and_copy_declare_copies_and_a_value_is_stored_into_a_view() -> None:
    @cd
    def f(a):
        whole = a
        view = a[0]
        other = view
        third, _ = view, 0
        some = copy(a[0]), np.copy(a[0]), a[0].copy()
        a *= 2.0
        other[0] = 100.0
        third[1] = 100.0
        a[1] = whole[0] + other + third + some[0] + some[1] + some[2]
        view = a[1] + 1.0

    a = A.copy()
    a *= 2.0
    a[1] = 6 * A[0]
    a[1, :2] += [100 - A[0, 0], 100 - A[0, 1]]
    a[0] = a[1] + 1.0
    np.testing.assert_array_equal(f.interpret(A)[0], a)


def test_index_statements_and_logics_write_through_views() -> None:
    @cd
    def f(a, b, ids):
        w = a[1:, ::-1]
        c = a[:-1]
        d = b[:-1]
        w[i, j] += c[i, j] * d[i, j], j > 0
        first = w[0]
        first[j] = sum(b[i, j])
        w[1, 2 * j] = w[1, clamp(j - 1)]
        d = b[:, :2]
        w[i, ids[n]] += d[n, i]
        w["ij=>ji"] -= b[:, 1:]
        assign(w[0], "=:+", b[0])
        assign(w, "=@^", 2.0)
        v = a.T[1:3]
        e = b[:2]
        v[i, j] |= e[i, j] > 4.0

    a, ids = np.arange(9.0).reshape(3, 3), np.array([0, 2, 0])
    wanted = a.copy()
    w = wanted[1:, ::-1]
    w[:, 1:] += a[:2, 1:] * B[:2, 1:]
    w[0] = B.sum(axis=0)
    w[1, ::2] = w[1, [0, 0]]
    for n in range(3):
        w[:, ids[n]] += B[n, :2]
    w -= B[:, 1:].T
    w[0] = B[0]
    w[...] = np.maximum(w, 2.0)
    v = wanted.T[1:3]
    v[...] = (v != 0) | (B[:2] > 4.0)
    found = f.interpret(a, B, ids)[0]
    np.testing.assert_array_equal(found, wanted)


def test_data_that_index_a_view_are_checked_against_the_view() -> None:
    @cd
    def scatter(a, ids):
        w = a[1:3]
        w[ids[n]] += 1.0

    @op
    def gather(x, ids):
        return x[1:3][ids], (x + 1.0)[ids], x[::-1][:, None][ids]

    ids = np.array([0, 1, 1])
    np.testing.assert_array_equal(scatter.interpret(X, ids)[0], [2, 0, 5, 0.5])
    assert_gives(gather, X, ids, wanted=(X[1:3][ids], (X + 1)[ids], X[::-1][:, None][ids]))
    for wrong in ([2], [-1], [2**62]):
        for f in (scatter, gather):
            assert "axis 0 of" in refusal(tc.DataIndexError, f, X.copy(), np.array(wrong))


def test_positions_that_are_numbers_of_the_call_make_views() -> None:
    @cd
    def f(a, k, m):
        w = a[k]
        w *= 2.0
        w[i] += a[m, i]
        v = a[:2, 1:]
        v[m, :] = 7.0
        u = v[m]
        u[1:] -= 1.0
        a[k, :2] += 100.0
        a[k, m] = a[m, k]
        u = a[::-1][k]
        u += 1.0

    for k, m in ((2, 1), (0, 0), (1, 0)):
        wanted = A.copy()
        w = wanted[k]
        w *= 2.0
        w += wanted[m]
        wanted[m, 1:] = 7.0
        wanted[m, 2:] -= 1.0
        wanted[k, :2] += 100.0
        wanted[k, m] = wanted[m, k]
        wanted[::-1][k] += 1.0
        np.testing.assert_array_equal(f.interpret(A, np.int64(k), np.int64(m))[0], wanted)
    np.testing.assert_array_equal(changed(f, A.copy(), np.int64(k), np.int64(m))[0], wanted)
    for k, m in ((3, 0), (-1, 0), (0, 2), (0, -1)):
        assert "out of range" in refusal(tc.TcdslError, f, A.copy(), np.int64(k), np.int64(m))


STORES = {
    "row": "w = a[k]\nw *= 2.0",
    "part": "a[k, :2] += 100.0",
    "value": "a[k] = 100.0",
    "column": "a[:, k] *= 2.0",
    "statement": "w = a[k]\nw[i] += 1.0",
    "moved": "w = a[k + 1]\nw[i] += 1.0",
    "of a view": "v = a[1:]\nv[k, :2] = 5.0",
    "twice": "v = a[1:]\nv[k][:2] = 5.0",
    "rounds": "for t in range(k, k + 1):\n    a[t] += 1.0",
    "branch": "if a[0, 0] > 0:\n    a[k] += 1.0",
}


@pytest.mark.parametrize("kind", [int, np.int64, np.array])
@pytest.mark.parametrize("store", STORES)
def test_positions_out_of_range_are_errors_and_write_nothing(store: str, kind: Any) -> None:
    f = program(STORES[store], "a, k", "cd")
    f(np.ones((3, 4)), kind(1))
    for k in (4, 7, -5, 2**40):
        memory = np.arange(1.0, 45.0).reshape(11, 4)
        before = memory.copy()
        assert "out of range" in refusal(tc.TcdslError, f, memory[4:7], kind(k))
        np.testing.assert_array_equal(memory, before)


def test_other_functions_are_handed_views() -> None:
    def halve(v):
        v[1:] = v[1:] / 2.0
        v -= 1.0
        return v[:1]

    @cd
    def double(v):
        v *= 2.0
        v[0] = 0.0

    @op
    def total(v):
        return v.sum()

    @cd
    def f(a):
        double(a[0])
        double(a[:, -1])
        w = halve(a[1])
        w[...] = total(a[2])

    a = A.copy()
    a[0] *= 2
    a[0, 0] = 0
    a[:, -1] *= 2
    a[0, -1] = 0
    a[1, 1:] /= 2
    a[1] -= 1
    a[1, 0] = a[2].sum()
    np.testing.assert_array_equal(f.interpret(A)[0], a)


def test_arrays_around_a_function_are_not_changed_by_staging() -> None:
    table = np.ones(4)

    @op
    def f(x):
        w = table[1:]
        w *= 2.0
        return x + w

    np.testing.assert_array_equal(f.interpret(np.zeros(3)), [2, 2, 2])
    np.testing.assert_array_equal(f.interpret(np.zeros(3)), [2, 2, 2])
    np.testing.assert_array_equal(table, np.ones(4))


def test_parts_are_targets_with_every_accumulator() -> None:
    @cd
    def f(a, x, *, k):
        a[1:-1, 1:-1] = 5.0
        a[:, k] += x[:3]
        a[-1] -= x
        a[0, ...] *= 2.0
        a[..., 1] /= 2.0
        a[1:, 0] **= 2.0
        a[::2, ::-1] = x * 2.0
        a[1:, 1:] = a[:-1, :-1]
        a[:2, :] += a[1:, :]
        a[2:, None, 3:] = x[None, None, 1:2]
        a[:0] = 1.0
        a[9:, -9:2] = x[:2]
        a[1, :3] = [3.0, 1, True]

    wanted = A.copy()
    f.function(wanted, X, k=2)
    np.testing.assert_array_equal(f.interpret(A, X, k=2)[0], wanted)

    @cd
    def g(a, x):
        a[1:] >>= x
        a[:, 1:] <<= 2.0
        a[0, 2:] |= x[2:]
        assign(a[1], "=?/", x - 1.0)
        assign(a[1, 1:], "=:*", x[1:])
        assign(a[2:], "=-", x)
        a[0, :2] &= x[:2] > 0

    wanted = A.copy()
    wanted[1:] = np.maximum(wanted[1:], X)
    wanted[:, 1:] = np.minimum(wanted[:, 1:], 2.0)
    wanted[0, 2:] = 1.0
    wanted[1] = X - 1.0
    wanted[1, 1:] = X[1:]
    wanted[2:] -= X
    wanted[0, :2] = [1, 0]
    np.testing.assert_array_equal(g.interpret(A, X)[0], wanted)


def test_one_program_serves_all_sizes_of_a_part() -> None:
    @cd
    def f(a, x):
        a[1:-1] = x

    for n in (0, 1, 2, 3, 5):
        for m in {1, max(n - 2, 0)}:
            does_as_numpy(f, np.ones(n), np.arange(5.0, 5.0 + m))
    assert f.cache_info().programs <= 3
    message = refusal(tc.ShapeError, f, np.ones(5), np.ones(2))
    assert "extents" in message
    assert "a[1:-1] = x" in message


def test_in_an_op_a_part_as_a_target_makes_another_version() -> None:
    @op
    def relaxed(x, y):
        x[1:-1] = 0.5 * (x[:-2] + x[2:]) * y[1:-1]
        x[0] *= 3.0
        z[i, j] = x[i] * y[j]
        z[0] = 0.0
        z[:, -1] -= x
        z[::2, ::-1] *= 2.0
        return z

    x, y = np.array([1.0, 2.0, -1.0, 0.5]), np.array([0.5, 3.0, 1.0, -2.0])
    before = x.copy()
    u = x.copy()
    u[1:-1] = 0.5 * (x[:-2] + x[2:]) * y[1:-1]
    u[0] *= 3.0
    w = np.outer(u, y)
    w[0] = 0.0
    w[:, -1] -= u
    w[::2] *= 2.0
    np.testing.assert_allclose(relaxed.interpret(x, y), w)
    np.testing.assert_array_equal(x, before)
    tc.check_grads(lambda x, y: (relaxed(x, y) ** 2).sum(), (x, y), modes=("fwd", "rev"))


def test_parts_of_declared_targets_start_from_the_neutral_element() -> None:
    @op
    def f(x):
        (N,) = x.shape
        y = output(N)
        y[1:-1] = x[2:] * x[:-2]
        z: real[N]
        z[1:] *= x[:-1]
        w = output(N, dtype="float32")
        w[...] = float32(x)
        s = output(2)
        s[0] = sum(x[1:] * x[:-1])
        return y, z, w, s

    total = (X[1:] * X[:-1]).sum()
    wanted = ([0, *(X[2:] * X[:-2]), 0], [1, *X[:-1]], X, [total, 0])
    for one, other in zip(f.interpret(X), wanted, strict=True):
        np.testing.assert_allclose(one, other)


def test_code_on_tensors_has_views() -> None:
    @cd
    def update(p):
        for row in p:
            row *= 2.0
        p[0, 1:] = 7.0
        p.grad = 0.0
        p.grad[:, 0] += 1.0
        w = p.grad[1]
        w[i] = p[0, i]
        p[1:] -= p[:-1]
        momentum = output()
        momentum = p[0] + momentum
        momentum[1:] += p[1, 1:]
        p[-1] = momentum

    p = tc.param("p", o=(2, 3), init=np.arange(6.0).reshape(2, 3))
    step = tc.compile(update(p))
    value, momentum = np.arange(6.0).reshape(2, 3), np.zeros(3)
    for _ in range(2):
        step.run()
        value *= 2.0
        value[0, 1:] = 7.0
        gradient = np.array([[1.0, 0.0, 0.0], value[0]])
        value[1:] -= value[:-1]
        momentum = value[0] + momentum
        momentum[1:] += value[1, 1:]
        value[-1] = momentum
    np.testing.assert_array_equal(p.value, value)
    np.testing.assert_array_equal(p.grad, gradient)

    @op
    def shifted(x):
        y = x * 2.0
        y[:, 1:] += x[:, :-1]
        return y

    x = tc.tensor(np.arange(6.0).reshape(2, 3), batch=1)
    np.testing.assert_array_equal(shifted(x).value, [[0, 2, 5], [6, 11, 14]])
    assert str(shifted(x).rows) == "2 | 3"


def _mixed(a, x, ids):
    a[1:-1, ::2, k] += x[k]


def _letters(a, x, ids):
    a[:, 1:] = x[i]


def _reversed(a, x, ids):
    a[::-1, k] = x[k]


def _gathered(a, x, ids):
    a[ids, 1:] = 1.0


def _masked(a, x, ids):
    a[x > 0, ...] = 1.0


def _fresh(a, x, ids):
    y[1:] = x


def _several(a, x, ids):
    a[0, 0][1:] = x
    assign(a[1:], "=+", 1.0, x > 0)


@pytest.mark.parametrize(
    ("body", "rank", "facts"),
    [
        (_mixed, 3, ["slices and the index `k`", "`a[i, 2 * j, k] = ..., i >= 1, i < a_0 - 1`"]),
        (_letters, 2, ["the value has the index `i`", "`a[i, j] = ..., j >= 1`"]),
        (_reversed, 2, ["slices and the index `k`", "`a[a_0 - 1 - 1 * i, k] = ...`"]),
        (_gathered, 2, ["an array among the indices of a part of `a`", "`a[ids[n], i] = ..., i >= 1`"]),
        (_masked, 2, ["a mask among the indices of a part of `a`", "and the mask as a condition"]),
        (_fresh, 2, ["`y` has no shape yet, so it has no parts", "`y = output(N)`"]),
        (_several, 2, ["`a[0, 0]` is no memory that code can store into", "a value and nothing else"]),
    ],
)
def test_what_is_no_part_is_one_error_that_says_what_to_write(body: Any, rank: int, facts: list[str]) -> None:
    with pytest.raises(tc.TcdslError) as caught:
        cd(body).interpret(np.zeros((3,) * rank), np.zeros(3), np.array([0]))
    for fact in facts:
        assert fact in str(caught.value)
    assert len(caught.value.diagnostics) == (2 if body is _several else 1)


def test_values_are_not_memory() -> None:
    @op
    def f(x):
        x[0][1:] = 5.0
        return x

    message = refusal(tc.DslSyntaxError, f, A)
    assert "Python stores into an array that is a value here" in message
    assert "`a[0, 1:] = ...`" in message

    @op
    def g(p):
        p.value[i] = 2.0
        return p

    with pytest.raises(tc.DslSyntaxError, match=r"`p\.value` is no memory that code can store into"):
        g(tc.tensor(X))

    class Owner:
        def __init__(self) -> None:
            self.buffer = np.zeros(3)

        @cd
        def run(self, x):
            self.buffer[1:] = x

    with pytest.raises(tc.DslSyntaxError, match=r"`self\.buffer` is no memory"):
        Owner().run(np.ones(2))
