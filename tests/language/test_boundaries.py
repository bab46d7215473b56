"""Reads out of range: skipped, or through ``clamp``, ``wrap``, ``reflect``, ``symmetric``, ``get``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, refusal
from tests.long_variants import in_turn

x = np.array([1.0, 3.0, 4.0, 9.0])


def mapped(kind: str, n: int, extent: int) -> int:
    """The position that a read at ``n`` finds, by the definitions."""
    if kind == "clamp":
        return min(max(n, 0), extent - 1)
    if kind == "wrap":
        return n % extent
    if kind == "reflect":
        period = 2 * (extent - 1)
        n = n % period if period else 0
        return n if n < extent else period - n
    n = n % (2 * extent)
    return n if n < extent else 2 * extent - 1 - n


@op
def shifted(x, *, shift: int):
    N = x.shape[0]
    skipped, clamped, wrapped, reflected, mirrored, filled = (
        output(N),
        output(N),
        output(N),
        output(N),
        output(N),
        output(N),
    )
    skipped[i] = x[i + shift]
    clamped[i] = x[clamp(i + shift)]
    wrapped[i] = x[wrap(i + shift)]
    reflected[i] = x[reflect(i + shift)]
    mirrored[i] = x[symmetric(i + shift)]
    filled[i] = get(x[i + shift], -1.0)
    return skipped, clamped, wrapped, reflected, mirrored, filled


@pytest.mark.parametrize("shift", [-1, 2, -11])
def test_each_boundary_at_any_shift(shift: int) -> None:
    for extent in (1, 2, 4):
        values = x[:extent]
        places = [n + shift for n in range(extent)]
        inside = [0 <= n < extent for n in places]
        wanted = (
            [values[n] if ok else 0.0 for n, ok in zip(places, inside, strict=True)],
            *([values[mapped(kind, n, extent)] for n in places] for kind in ("clamp", "wrap", "reflect", "symmetric")),
            [values[n] if ok else -1.0 for n, ok in zip(places, inside, strict=True)],
        )
        assert_gives(shifted, values, shift=shift, wanted=wanted)
    assert_gives(shifted, x[:0], shift=shift, wanted=([],) * 6)


def test_reads_through_boundaries_take_no_part_in_finding_ranges() -> None:
    @op
    def f(x, w):
        y[i] += x[clamp(i + k - 1)] * w[k] + 0 * x[i]
        z[i] = x[i] * w[wrap(i)]
        t[i] = x[i] + get(w[i], 100.0)
        return y, z, t

    w = np.array([1.0, 2.0, 4.0])
    padded = x[[0, 0, 1, 2, 3, 3]]
    wanted = (np.convolve(padded, w[::-1], "valid"), x * w[[0, 1, 2, 0]], [2, 5, 8, 109])
    assert_gives(f, x, w, wanted=wanted)

    @op
    def unbounded(x):
        y[i] = x[clamp(i - 1)]
        return y

    assert "range" in refusal(tc.ShapeError, unbounded, x)


def test_each_axis_has_its_own_boundary() -> None:
    @op
    def f(A):
        M, N = A.shape
        y = output(M + 2, N + 2)
        y[i, j] = A[clamp(i - 1), wrap(j - 1)]
        z = output(M + 2, N + 2)
        z[i, j] = get(A[i - 1, reflect(j - 1)], 0.5)
        s = output(M + 2, N + 2)
        s[i, j] = A[i - 1, symmetric(j - 1)]
        return y, z, s

    A = np.arange(6.0).reshape(2, 3) + 1
    clamped = np.pad(np.pad(A, ((1, 1), (0, 0)), "edge"), ((0, 0), (1, 1)), "wrap")
    filled = np.pad(np.pad(A, ((0, 0), (1, 1)), "reflect"), ((1, 1), (0, 0)), constant_values=0.5)
    skipped = np.pad(np.pad(A, ((0, 0), (1, 1)), "symmetric"), ((1, 1), (0, 0)))
    assert_gives(f, A, wanted=(clamped, filled, skipped))


def test_the_fill_value_may_be_any_value() -> None:
    @op
    def f(x, v):
        N = x.shape[0]
        y = output(N)
        y[i] = get(x[i - 2], v[i] * 10)
        return y

    assert_gives(f, x, np.array([1.0, 2.0, 3.0, 4.0]), wanted=[10, 20, 1, 3])


def test_the_interior_runs_without_boundaries() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        y[i] = x[clamp(i - 1)] + x[clamp(i + 1)]
        return y

    assert_gives(f, x, wanted=np.pad(x, 1, "edge")[:-2] + np.pad(x, 1, "edge")[2:])
    text = f.explain("loops", x)
    # One of the pieces of the nest reads the cells as they are.
    assert any("x[i - 1] + x[i + 1]" in line for line in text.splitlines())


def test_the_gradient_sums_over_all_positions_that_read_a_cell() -> None:
    @op
    def previous(x, dy):
        N = x.shape[0]
        y = output(N)
        y[i] = x[clamp(i - 1)]
        s[()] += y[i] * dy[i]
        return s

    gradient = tc.grad(previous)(np.array([5.0, 6.0, 7.0]), np.array([1.0, 10.0, 100.0]))
    np.testing.assert_array_equal(gradient, [11, 100, 0])


@pytest.mark.parametrize("shift", [-1, 6])
def test_gradients_of_all_boundaries(shift: int) -> None:
    extent = 4
    dy = np.array([1.0, 10.0, 100.0, 1000.0])
    _, pullback = tc.vjp(lambda x: shifted(x, shift=shift), x)
    zero = np.zeros(extent)
    for position, kind in enumerate(("skip", "clamp", "wrap", "reflect", "symmetric", "get")):
        wanted = np.zeros(extent)
        for n in range(extent):
            if kind not in ("skip", "get"):
                wanted[mapped(kind, n + shift, extent)] += dy[n]
            elif 0 <= n + shift < extent:
                wanted[n + shift] += dy[n]
        (found,) = pullback(tuple(dy if k == position else zero for k in range(6)))
        np.testing.assert_allclose(found, wanted, err_msg=kind)


def test_the_gradient_of_a_fill_goes_to_the_fill_value() -> None:
    @op
    def f(x, v):
        N = x.shape[0]
        y = output(N)
        y[i] = get(x[i - 2], v[i])
        return y

    _, pullback = tc.vjp(f, x, np.ones(4))
    dx, dv = pullback(np.array([1.0, 10.0, 100.0, 1000.0]))
    np.testing.assert_array_equal(dx, [100, 1000, 0, 0])
    np.testing.assert_array_equal(dv, [1, 10, 0, 0])
    tc.check_grads(f, (x, np.ones(4)), order=2)


KINDS = ("clamp", "wrap", "reflect", "symmetric")


def stores(sign: str, **options: str) -> Any:
    """One store through each boundary, by an index that is data and by one that is affine."""

    @op(**options)
    def plus(x, b):
        c, w, r, s = output(3), output(3), output(3), output(3)
        c[clamp(b[i])] += x[i]
        w[wrap(b[i])] += x[i]
        r[reflect(b[i])] += x[i]
        s[symmetric(b[i])] += x[i]
        c[clamp(2 * i - 3)] += x[i]
        w[wrap(2 * i - 3)] += x[i]
        r[reflect(2 * i - 3)] += x[i]
        s[symmetric(2 * i - 3)] += x[i]
        return c, w, r, s

    @op(**options)
    def largest(x, b):
        c, w, r, s = output(3), output(3), output(3), output(3)
        c[clamp(b[i])] >>= x[i]
        w[wrap(b[i])] >>= x[i]
        r[reflect(b[i])] >>= x[i]
        s[symmetric(b[i])] >>= x[i]
        c[clamp(2 * i - 3)] >>= x[i]
        w[wrap(2 * i - 3)] >>= x[i]
        r[reflect(2 * i - 3)] >>= x[i]
        s[symmetric(2 * i - 3)] >>= x[i]
        return c, w, r, s

    return plus if sign == "+=" else largest


@pytest.mark.parametrize(("oob", "sign"), in_turn(["check", "skip", "clamp"], ["+=", ">>="]))
def test_a_boundary_on_a_target_says_which_cell_takes_the_value(sign: str, oob: str) -> None:
    values, places = np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([0, -1, 1, 7, -9])
    f = stores(sign, oob=oob)
    combine, start = (np.add, 0.0) if sign == "+=" else (np.maximum, -np.inf)
    wanted = []
    for kind in KINDS:
        cells = np.full(3, start)
        found = [mapped(kind, n, 3) for n in (*places, *(2 * i - 3 for i in range(5)))]
        combine.at(cells, found, np.append(values, values))
        wanted.append(cells)
    assert_gives(f, values, places, wanted=tuple(wanted))
    tc.check_grads(lambda x: f(x, places), (values / 8,), order=2 if oob == "check" else 1)


def test_boundaries_on_targets_of_every_state() -> None:
    @cd
    def deposit(y, x, b):
        y[wrap(b[i]), j] += x[i, j]

    y = np.zeros((3, 2))
    deposit(y, np.arange(8.0).reshape(4, 2), np.array([-1, 3, 0, 2]))
    np.testing.assert_array_equal(y, [[6, 8], [0, 0], [6, 8]])

    @op
    def in_rounds(x, b):
        (N,) = x.shape
        kept = output(N)
        kept[i] = 100.0
        for t in range(N):
            kept[wrap(t + 2)] = x[t]  # a round writes one cell
            kept[clamp(b[t])] -= 1
        return kept

    assert_gives(in_rounds, x, np.array([9, -9, -9, 1]), wanted=[3, 8, 1, 3])

    @op
    def anew(A, b):
        y = output(3)
        y[i] = 7.0
        y[clamp(b[i])] = sum(A[i, j])
        return y

    assert_gives(anew, np.ones((2, 4)), np.array([-4, 0]), wanted=[8, 0, 0])

    @op
    def numbers(x, n):
        y = output(4)
        y[clamp(n)] = x[0]
        y[wrap(-1)] += x[clamp(-1)]
        return y

    assert_gives(numbers, x, -7, wanted=[1, 0, 0, 1])
    assert_gives(numbers, x, 22, wanted=[0, 0, 0, 2])


def test_a_plain_store_takes_no_boundary() -> None:
    @op
    def of_data(x, b):
        y = output(4)
        y[clamp(b[i])] = x[i]
        return y

    @op
    def affine(x, b):
        y = output(4)
        y[wrap(i + b.shape[0])] = x[i]
        return y

    @op
    def fresh(x, b):
        y[reflect(b[i])] += x[i]
        return y

    b = np.array([0, 1, 2, 3])
    message = refusal(tc.DslSyntaxError, of_data, x, b)
    assert "`=` writes each cell once, but `clamp` moves several points to one cell" in message
    assert "say how the values combine: `+=` (sum)" in message
    assert "`wrap` moves several points to one cell" in refusal(tc.DslSyntaxError, affine, x, b)
    message = refusal(tc.ShapeError, fresh, x, b)
    assert "`reflect(b[i])` moves into an axis whose extent is not known" in message
    assert "declare the target with its extents" in message


def test_a_boundary_on_an_empty_target_has_no_cell() -> None:
    @op
    def f(x, size):
        (N,) = size.shape
        y = output(N)
        y[wrap(i + 1)] += x[i]
        return y

    assert_gives(f, x[:0], np.ones(0), wanted=[])
    assert_gives(f, x[:0], np.ones(2), wanted=[0, 0])
    assert "index 0 is out of range for axis 0 of `y`, which has extent 0" in refusal(
        tc.DataIndexError, f, x, np.ones(0)
    )


def test_a_boundary_on_an_empty_axis_has_nothing_to_read() -> None:
    @op
    def f(x, size):
        (N,) = size.shape
        y = output(N)
        y[i] = get(x[i], 5.0)
        return y

    assert_gives(f, x[:0], np.ones(2), wanted=[5, 5])


@op
def in_scalars(x: real[N], p: int64[M]):
    s = 0.0
    y = get(x[0], 7.0)
    z = x[clamp(N + 3)] + y
    for m in range(M):
        s += get(x[p[m]], 0.0) * z
        s = s + x[wrap(m - 5)] + x[reflect(m + 4)] + x[symmetric(m - 2)]
        if get(x[m - 1], 1.0) > 0.5 and x[clamp(m + 9)] > -2:
            s -= get(x[m - 1], 1.0)
        while get(x[m], 0.0) > s:
            s += 1
    return s, get(x[N], 3.0), y


def test_reads_beyond_the_ends_are_numbers_where_there_are_no_index_variables() -> None:
    x, p = np.array([0.4, 2.0, -1.0]), np.array([0, 7, 2, -1])

    def at(k: int, fill: float) -> float:
        return x[k] if 0 <= k < 3 else fill

    s, z = 0.0, x[-1] + x[0]
    for m in range(4):
        s += at(p[m], 0.0) * z
        s += x[(m - 5) % 3] + np.pad(x, 9, "reflect")[9 + m + 4] + np.pad(x, 9, "symmetric")[9 + m - 2]
        if at(m - 1, 1.0) > 0.5:
            s -= at(m - 1, 1.0)
        while at(m, 0.0) > s:
            s += 1
    for run in (in_scalars, in_scalars.interpret):
        np.testing.assert_allclose(run(x, p), (s, 3.0, 0.4), rtol=1e-12)
    tc.check_grads(lambda x: in_scalars(x, p)[0], (x,))
