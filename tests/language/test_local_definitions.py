"""Local definitions: of index variables alone, of brackets, and of bare reductions, which are tensors of rank 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, refusal
from tests.language.running_programs import check, program

x = np.array([1.0, 2.0, 3.0])
A = np.arange(6.0).reshape(2, 3) + 1
y = 7  # left over in a notebook
t: dict[Any, Any] = {}
words: list[Any] = ["kept"]


def masked(a, w, test):
    part = a * test
    return w * part


def test_a_bracket_guards_the_factors_of_a_product_wherever_they_stand() -> None:
    @op
    def inline(x, w):
        (n,) = x.shape
        out[i] += x[k] * (k <= i) * w[k], i < n
        return out

    @op
    def named(x, w):
        (n,) = x.shape
        below = k <= i
        part = x[k] * below
        out[i] += part * w[k], i < n
        return out

    @op
    def helped(x, w):
        (n,) = x.shape
        out[i] += masked(x[k], w[k], k <= i), i < n
        return out

    w = np.array([1.0, 1.0, np.inf])
    for f in (inline, named, helped):
        np.testing.assert_array_equal(f.interpret(x, w), [1, 3, np.inf])
        assert "0 <= k <= i" in f.explain("ir", x, w)  # half of the square
    assert inline.explain("ir", x, w).splitlines()[1:] == named.explain("ir", x, w).splitlines()[1:]


def test_a_bracket_in_a_definition_that_is_used_twice_is_still_one() -> None:
    @op
    def f(x, w):
        part = exp(x[i]) * (x[i] > 1.5)
        out[i] = part * w[i] + w[i] * -part * 2.0 + part
        return out

    w = np.array([np.nan, 1.0, 2.0])
    np.testing.assert_allclose(f.interpret(x, w), [0, 0, -np.exp(3)])


def test_brackets_guard_whole_arrays_too() -> None:
    @op
    def f(x, w):
        return x * (x > 1.5) * w, w * ((x > 1.5) * x), -(x * (x > 1.5)) * w

    found = f.interpret(x, np.array([np.inf, 1.0, 2.0]))
    for value, wanted in zip(found, ([0, 2, 6], [0, 2, 6], [0, -2, -6]), strict=True):
        np.testing.assert_array_equal(value, wanted)


# -- of index variables alone --------------------------------------------------------------------------------


def test_letters_that_index_later_are_index_variables_in_local_definitions() -> None:
    k = 5

    @op
    def f(A):
        H, W = A.shape
        fy = (y + 0.5) / H  # y is 7 outside
        both = fy * (k + 0.5) / W
        B[y, k] = A[y, k] * both
        return B

    wanted = A * (np.arange(2)[:, None] + 0.5) / 2 * (np.arange(3) + 0.5) / 3
    np.testing.assert_allclose(f.interpret(A), wanted)

    @op
    def reversed_cells(x):
        (N,) = x.shape
        here = N - 1 - n
        out[n] = x[here] * here + x[n] * 0
        return out

    np.testing.assert_array_equal(reversed_cells.interpret(x), [6, 2, 0])


def test_letters_that_nothing_indexes_with_mean_what_they_mean_outside() -> None:
    @op
    def f(x):
        scale = y * 2
        return x * scale

    np.testing.assert_array_equal(f.interpret(x), 14 * x)

    @op
    def earlier(A):
        B[y, j] = A[y, j]
        scale = y * 2.0
        return B * scale

    np.testing.assert_array_equal(earlier.interpret(A), 14 * A)

    @op
    def containers(x):
        found = {}
        scale = y * 2
        found[y] = x * scale
        return found[7]

    np.testing.assert_array_equal(containers.interpret(x), 14 * x)


def test_letters_that_the_function_binds_are_its_own() -> None:
    @op
    def f(x, *, j: int):
        scale = j + 1
        out[i] = x[i] * x[j] * scale
        return out

    np.testing.assert_array_equal(f.interpret(x, j=1), 4 * x)

    @op
    def loop(x):
        total = 0.0 * x
        for j in range(3):
            scale = j + 1
            total[i] += x[j] * scale + 0.0 * x[i]
        return total

    np.testing.assert_array_equal(loop.interpret(x), [14, 14, 14])


def test_imported_letters_are_index_variables_in_local_definitions() -> None:
    from tcdsl.indices import b, c

    @op
    def f(A):
        row = b * 10
        cell = row + c
        B = tc.output()
        B[b, c] = A[b, c] * cell
        return B

    np.testing.assert_array_equal(f.interpret(A), A * [[0, 1, 2], [10, 11, 12]])


def test_a_definition_in_a_loop_sees_what_the_loop_indexes_with() -> None:
    @op
    def f(x):
        total = 0.0 * x
        for power in range(3):
            total[i] += x[i] * i**power
            shifted = i + power
            total[i] += shifted * x[i] * 0
        return total

    np.testing.assert_array_equal(f.interpret(x), x * [1, 3, 7])


# -- bare reductions -----------------------------------------------------------------------------------------


def test_bare_reductions_are_tensors_of_rank_0() -> None:
    @op
    def f(g):
        n = sqrt(sum(g[i] * g[i]))
        inverse = 1 / n
        unit[i] = g[i] / n
        other[j] = g[j] * inverse
        return g * (1 / n), g * inverse, unit, other, n, n + 1

    g = np.array([3.0, 4.0])
    *units, norm, more = f.interpret(g)
    for unit in units:
        np.testing.assert_allclose(unit, g / 5)
    assert norm == 5
    assert more == 6
    # The sum is computed once for each of its uses in a statement, and once for all whole arrays.
    assert f.explain("ir", g).count("n_sum[()] +=") == 1
    np.testing.assert_allclose(tc.grad(lambda g: (f(g)[0] * np.array([1.0, 0.0])).sum())(g), [0.128, -0.096])


@pytest.mark.parametrize("made", [np.asarray, tc.tensor])
def test_bare_reductions_of_generators(made: Any) -> None:
    @op
    def f(g):
        (N,) = g.shape
        total = sum(g[i] for i in range(N))
        top = max(g[i] for i in range(2))
        where_top = argmax(g[i])
        return g * total + top - where_top

    np.testing.assert_array_equal(np.asarray(f(made(x))), 6 * x + 2 - 2)


def test_in_statements_bare_reductions_are_their_text() -> None:
    @op
    def f(E):
        z = sum(E[i, l])
        half = z / 2
        O[i, j] = E[i, j] / half
        return O

    np.testing.assert_allclose(f.interpret(A), 2 * A / A.sum(1, keepdims=True))


def test_a_reduction_in_that_of_a_generator_leaves_its_index_to_the_generator() -> None:
    @op
    def f(E):
        top = max(sum(E[r, j]) for r in range(2))
        O[j] = E[0, j] * top
        total = sum(exp(sum(E[r, j])) for r in range(2))
        P[j] = E[0, j] * exp(total / 1e6 - top)
        return O, P

    rows = A.sum(1)[:2]
    found = f.interpret(A)
    np.testing.assert_allclose(found[0], A[0] * rows.max())
    np.testing.assert_allclose(found[1], A[0] * np.exp(np.exp(rows).sum() / 1e6 - rows.max()))


def test_bare_reductions_in_code() -> None:
    @cd
    def clipped(p, g):
        n = sqrt(sum(g[i] * g[i]))
        p -= g * (0.5 / n)
        n = 2.0 * n
        p += n

    p = np.zeros(2)
    clipped(p, np.array([3.0, 4.0]))
    np.testing.assert_allclose(p, 10 - 0.5 * np.array([0.6, 0.8]))


def test_other_local_definitions_in_whole_array_arithmetic_are_an_error_at_their_place() -> None:
    @op
    def f(x):
        double = 2 * x[i]
        return x * double

    message = refusal(tc.ShapeError, f, x)
    assert "a value that is different at every point meets a whole array" in message
    assert "return x * double" in message


# -- targets -------------------------------------------------------------------------------------------------


def test_targets_are_the_functions_own_whatever_containers_surround_it() -> None:
    @op
    def trace(A):
        t[()] += A[k, k]
        return t

    @op
    def logic(A):
        t["ij=>i"] += A
        words["."] += A * 2.0
        return t, words

    @op
    def indexed(A):
        t[y, k] = A[y, k]
        words[y] += A[y, k]
        return t, words

    assert trace.interpret(np.eye(3)) == 3
    for found, wanted in zip(logic.interpret(A), (A.sum(1), 2 * A), strict=True):
        np.testing.assert_array_equal(found, wanted)
    for found, wanted in zip(indexed.interpret(A), (A, A.sum(1)), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert t == {}
    assert words == ["kept"]


def test_a_container_around_the_function_is_stored_into_where_the_subscript_is_no_tensors() -> None:
    found: dict[Any, Any] = {}
    items = [0, 0]

    @op
    def f(x, *, name: str):
        found["rank"] = x.ndim
        found[name] = 2
        items[1] = 5
        items[1] += 1
        return x * 2

    f.interpret(x, name="given")
    assert found == {"rank": 1, "given": 2}
    assert items == [0, 6]


def ratio(x, n):
    return x / n


def test_bare_reductions_in_whole_array_arithmetic_under_plain_names() -> None:
    def program(x, y):
        n = sum(x[i])
        a = x / n
        m = 2 * n
        b = ratio(y, m) + np.exp(y - n)
        c, d = x * n, -m
        x = x / n
        s = max(x[i])
        e = ratio(x, s)
        O[i, j] = a[i] * y[j] / s
        return a, b, c, d, x, e, O

    x, y = np.array([1.0, 4.0, 3.0]), np.array([2.0, 16.0])
    a = x / 8
    wanted = (a, y / 16 + np.exp(y - 8), x * 8, -16.0, a, a / 0.5, np.outer(a, y) / 0.5)
    f = op(program)
    assert_gives(f, x, y, wanted=wanted)
    for found, each in zip(f(tc.tensor(x), tc.tensor(y)), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(found), each)

    @cd
    def normalize(x):
        n = sum(x[i])
        scaled = x / n
        x -= scaled

    normalize(x)
    np.testing.assert_array_equal(x, [7 / 8, 3.5, 21 / 8])


def doubled_and_negative(a, j):
    return a[j] * 2, -a[j]


def middle(k):
    return (k + 0.5) / 2


def test_several_definitions_at_once() -> None:
    @op
    def f(x, y):
        fy, fx = middle(r), middle(c)
        a, b = doubled_and_negative(x, i)
        (p, q), s = doubled_and_negative(y, i), y
        first, *others = doubled_and_negative(x, i)
        pair = doubled_and_negative(y, i)
        a, b = b, a
        m = n = x[i] + 1
        total, (largest, size) = sum(x[i]), (max(y[i]), x.shape[0])
        O[r, c] = fy * fx * x[r] * y[c]
        u[i] = a * 10 + b + p * q + s[i]
        v[i] = first + others[0] + pair[0] * pair[1] + m * n
        w = x / total + largest * size
        return O, u, v, w

    x, y = np.array([1.0, 4.0, 3.0]), np.array([2.0, 5.0, 3.0])
    k = (np.arange(3) + 0.5) / 2
    wanted = (
        np.outer(k * x, k * y),
        -10 * x + 2 * x - 2 * y * y + y,
        x - 2 * y * y + (x + 1) ** 2,
        x / 8 + 15,
    )
    for found, each in zip(f.interpret(x, y), wanted, strict=True):
        np.testing.assert_allclose(found, each)


def test_definitions_that_statements_change() -> None:
    @op
    def f(x):
        (N,) = x.shape
        a = (x[i] > 0) * 1.0
        a /= x[i]
        b = 0.0
        for k in range(3):
            b += x[i + k] * k
        b *= a
        c, d = x[i], N
        c -= d
        y[i] = a
        z[i] = b + c
        return y, z

    x = np.array([0.0, 2.0, -4.0, 8.0])
    for found, wanted in zip(f.interpret(x), ([0, 0.5, 0, 0.125], [-4, 4]), strict=True):
        np.testing.assert_allclose(found, wanted)

    @cd
    def swap(x, y):
        p, q = x[i], y[i]
        x[i] = q * 2
        y[i] = p

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    swap(x, y)
    np.testing.assert_array_equal([x, y], [[6, 8], [1, 2]])


def test_cells_at_positions_that_bare_reductions_find_beside_whole_arrays() -> None:
    def program(x, y):
        k = argmax(x[i])
        a = x + 0.1 * x[k]
        z[j] = y[j] * x[k]
        return a, x[k] * x, z, x - y[k - 2] * x

    x, y = np.array([1.0, 2.0, 4.0, 3.0]), np.array([5.0, 7.0])
    assert_gives(op(program), x, y, wanted=(x + 0.4, 4 * x, 4 * y, -4 * x))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return x * x[argmin(v[i])]", x * 3),
        ("return x + v.sum() * mean(v[i])", x + 12),
        ("return A[argmax(v[i]) % 2]", A[1]),
        ("return A[:, argmin(v[i])]", A[:, 2]),
        ("return relu(x - mean(v[i] for i in range(2))), x * sum(A[i, j])", (np.maximum(x - 2.5, 0), x * 21)),
        ("n = sqrt(sum(v[i] * v[i]))\nreturn x / n * sum(v[i] / n)", x / 14 * 6),
        ("d = x * sum(v[i])\nd[1:] += d[1:] * max(v[i])\nd *= min(d[i])\nreturn d", np.array([6, 48, 72]) * 6.0),
        ("N, = v.shape\nreturn x * sum(v[k] * k for k in range(N))", x * 5),
        ("i = 1\nreturn x * sum(v[i] * v[j])", x * 18),
        ("y = x * 1\nfor t in range(2):\n    y = y + x * y[argmax(y[i])] * t\nreturn y", x * 4),
        ("return x if sum(v[i]) > 3 else -x", x),
    ],
)
def test_reductions_without_a_name_among_whole_arrays_are_bare_ones(body: str, wanted: Any) -> None:
    f = program(body, "x, v, A")
    check(f, (x, np.array([2.0, 3.0, 1.0]), A), wanted)
    tc.check_grads(f, (x, np.array([2.0, 3.0, 1.0]), A))


def test_index_variables_beside_reductions_are_those_of_a_statement() -> None:
    message = refusal(tc.ShapeError, program("return x * sum(v[i]) + x[i]", "x, v"), x, x)
    assert "`x` has rank 1 and stands here without an index" in message


WINDOW = """def window(a, s):
    return a[clamp(s - 1)]

def beside(a, j, s):
    return a[wrap(j + s)] * w

w = 2.0

"""


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("mean(window(x, s) for s in range(3))", 4 / 3),
        ("sum(window(x, s) for s in range(x.shape[0]))", 4.0),
        ("max(window(x, s + 1) for s in range(2))", 2.0),
        ("argmax(window(x, s) for s in range(3))", 2.0),
        ("mean(beside(x, i, s) for s in range(2))", [3.0, 5.0, 4.0]),
        ("sum([beside(x, i, s) for s in (0, 2)])", [8.0, 6.0, 10.0]),
    ],
)
def test_generators_of_functions_that_index(value: str, wanted: Any) -> None:
    f = program(f"d = {value}\ny[i] = d + 0 * x[i]\nreturn y", "x", before=WINDOW)
    check(f, (x,), np.broadcast_to(wanted, 3))


def test_generators_of_whole_arrays_are_combined_cell_by_cell() -> None:
    times = "def times(a, k):\n    calls.append(k)\n    return a * k\n\ncalls = []\n\n"
    f = program("return mean(times(x, k) for k in range(3)), np.sum(x * k for k in (1, 2))", "x", before=times)
    np.testing.assert_array_equal(f(x), (x, 3 * x))
    assert f.__wrapped__.__globals__["calls"] == [0, 1, 2]
    rows = "def row(a, k):\n    return a[k]\n\n"
    check(program("d = sum(row(A, k) for k in range(2))\nreturn d", "A", before=rows), (A,), A.sum(0))
    f = program("return argmax(x * k for k in range(3))", "x")
    assert "`argmax` over 3 Python objects" in refusal(tc.DslSyntaxError, f, x)


def test_reductions_of_local_definitions_without_a_name() -> None:
    @op
    def f(x):
        z = x[i] * 2
        w = z + 1
        return sum(z), sqrt(mean(w)), x * max(w), [argmin(w)]

    @op
    def by_python(x):
        z = x[i] * 2
        return [sum(each) for each in (z, z)]

    assert_gives(f, x, wanted=(12.0, np.sqrt(5), 7 * x, [0]))
    assert "`sum` of a scalar at a point, in a function that Python runs" in refusal(tc.DslSyntaxError, by_python, x)
