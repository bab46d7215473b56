"""How long a new target is that a condition bounds, and what follows it: a cache of which the first cells are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, outcome, refusal

T, H, D = 24, 2, 3
RANDOM = np.random.default_rng(8)
KEYS, VALUES = RANDOM.normal(size=(2, T, H, D))
Q, K, V = RANDOM.normal(size=(3, H, D))
NUMBERS = (3, 20, np.int64(3), np.int64(20), np.uint8(20), np.int32(20))


@cd
def attend(out, keys, values, q, k, v, pos):
    keys[pos, h, d] = k[h, d]
    values[pos, h, d] = v[h, d]
    s[h, j] = sum(q[h, d] * keys[j, h, d]), j <= pos
    top[h] >>= s[h, j]
    e[h, j] = exp(s[h, j] - top[h])
    out[h, d] = sum(e[h, j] * values[j, h, d]), j <= pos
    total[h] += e[h, j]
    out[h, d] /= total[h]


@pytest.mark.parametrize("pos", NUMBERS, ids=repr)
def test_a_cache_of_keys_and_values(pos: Any) -> None:
    keys, values = KEYS.copy(), VALUES.copy()
    keys[pos], values[pos] = K, V
    weights = np.exp(np.einsum("hd,jhd->hj", Q, keys[: pos + 1]))
    wanted = np.einsum("hj,jhd->hd", weights / weights.sum(1, keepdims=True), values[: pos + 1])
    out = np.zeros((H, D))
    attend(out, KEYS.copy(), VALUES.copy(), Q, K, V, pos)
    np.testing.assert_allclose(out, wanted)
    np.testing.assert_allclose(attend.interpret(np.zeros((H, D)), KEYS, VALUES, Q, K, V, pos)[0], wanted)


@cd
def without_a_condition(out, keys, values, q, pos):
    s[h, j] = sum(q[h, d] * keys[j, h, d]), j <= pos
    e[h, j] = exp(s[h, j])
    out[h, d] = sum(e[h, j] * values[j, h, d])


@pytest.mark.parametrize("pos", NUMBERS, ids=repr)
def test_what_meets_the_whole_cache_says_which_condition_has_made_the_extent(pos: Any) -> None:
    message = refusal(tc.ShapeError, without_a_condition, np.zeros((H, D)), KEYS, VALUES, Q, pos)
    line = without_a_condition.__wrapped__.__code__.co_firstlineno + 2
    assert f"axis 1 of e, which has the extent {pos + 1} by `j <= pos` in line {line}, and over axis 0" in message
    assert f"of values, which has the extent {T}" in message
    assert "write `j <= pos` behind this value too, or declare the extents of what is too short" in message


def test_data_cannot_say_how_long_a_new_target_is() -> None:
    @op
    def f(x, n):
        y[i] = x[i], i < n + 1
        return y

    @op
    def swapped(x, n):
        y[i] += x[i], n >= i
        return y

    x, n = np.arange(1.0, 6.0), np.array(2)
    message = refusal(tc.ShapeError, f, x, n)
    assert "`n + 1` is data, which cannot say how long y is" in message
    assert "declare the extents of `y`, as in `y = output(N)`, or add a condition on a size, `i < N`" in message
    assert "`n` is data, which cannot say how long y is" in refusal(tc.ShapeError, swapped, x, n)

    @op
    def told(x, n):
        (N,) = x.shape
        declared: real[N]
        declared[i] = x[i], i < n + 1
        ranged[i] = x[i], i < N, i < n + 1
        later[i] = x[i], i >= n  # says nothing of the end
        chosen[i] = x[i], i == n
        return declared, ranged, later, chosen

    first = [1, 2, 3, 0, 0]
    assert_gives(told, x, n, wanted=(first, first, [0, 0, 3, 4, 5], [0, 0, 3, 0, 0]))


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_of_numpy_end_ranges_extents_and_slices(number: Any) -> None:
    @op
    def f(x, n):
        last = n - 1
        a[i] = x[i], i < n
        b[i] = x[i], 0 <= i <= last
        c[i] = sum(x[i + j] for j in range(n))
        d = output(n + 1)
        d[i] = x[i]
        return a, b, c, d, x[:n], np.zeros(n), x * n

    x, n = np.arange(30.0), int(number)
    sums = [x[i : i + n].sum() for i in range(31 - n)]
    found = outcome(f, x, number)
    for one, other in zip(found, (x[:n], x[:n], sums, x[: n + 1], x[:n], np.zeros(n), x * n), strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_of_numpy_beside_cells_are_values_and_compile_once() -> None:
    @op
    def f(x, n):
        count[()] += 1, x[i] > n
        y[i] = x[i], i < n
        return count, y, x[0] * n

    x = np.arange(40, dtype=np.int8)
    for number in (np.int64(20), np.int64(30), np.int64(33)):
        count, y, scaled = f(x, number)
        assert (count, len(y), scaled.dtype) == (39 - number, number, np.int64)
    assert f.cache_info().programs == 1

    @op
    def only_values(x, n):
        count[()] += 1, x[i] > n
        return count

    for number in (np.int64(2), np.int64(3), np.int64(20)):
        assert only_values(x, number) == 39 - number
    assert only_values.cache_info().programs == 1


def test_in_rounds_a_cache_is_the_same_and_faults_call_tensors_by_their_names() -> None:
    @cd
    def decode(outs, keys, values, qs):
        for pos in range(len(qs)):
            s[h, j] = sum(qs[pos, h, d] * keys[j, h, d]), j <= pos
            e[h, j] = exp(s[h, j])
            outs[pos, h, d] = sum(e[h, j] * values[j, h, d]), j <= pos

    @cd
    def without(outs, keys, values, qs):
        for pos in range(len(qs)):
            s[h, j] = sum(qs[pos, h, d] * keys[j, h, d]), j <= pos
            outs[pos, h, d] = sum(s[h, j] * values[j, h, d])

    qs = RANDOM.normal(size=(5, H, D))
    weights = np.exp(np.einsum("phd,jhd->phj", qs, KEYS)) * np.tri(5, T)[:, None]
    (found,) = changed(decode, np.zeros((5, H, D)), KEYS, VALUES, qs)
    np.testing.assert_allclose(found, np.einsum("phj,jhd->phd", weights, VALUES))
    message = refusal(tc.ShapeError, without, np.zeros((5, H, D)), KEYS, VALUES, qs)
    assert "axis 1 of s, which has the extent pos + 1 by `j <= pos` in line" in message
