"""Nests that differ in names alone share one function: same results, fewer functions, nothing shared that differs."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op


def functions(text):
    return [line for line in text.splitlines() if line.startswith("def ")]


@op
def smoothed(x, c, *, steps):
    for _ in range(steps):
        (N,) = x.shape
        y: real[N]
        y[i] = x[i] + c * (get(x[i - 1], 0.0) + get(x[i + 1], 0.0) - 2 * x[i])
        x = y
        del y
    return x


def smoothed_by_numpy(x, c, steps):
    for _ in range(steps):
        padded = np.pad(x, 1)
        x = x + c * (padded[:-2] + padded[2:] - 2 * x)
    return x


@pytest.mark.parametrize("threads", [1, 2])
def test_unrolled_steps(threads):
    x = np.random.default_rng(0).standard_normal(400_000)
    text = smoothed.explain("python", x, 0.2, steps=7)
    assert len(functions(text)) == 1
    assert "The same for nest_y_2, nest_y_3, nest_y_4, nest_y_5, nest_y_6, nest_y_7." in text.replace("\n    ", " ")
    # Where these lie, each nest has a list of its own for.
    assert "N = size(frame, 0)" in text
    assert "x = buffer(frame, 1, 'float64[::1]')" in text
    with tc.config(threads=threads):
        np.testing.assert_allclose(smoothed(x, 0.2, steps=7), smoothed_by_numpy(x, 0.2, 7), atol=1e-12)
        small = x[:5]
        np.testing.assert_allclose(smoothed(small, 0.2, steps=7), smoothed_by_numpy(small, 0.2, 7), atol=1e-14)


def test_a_gradient_of_many_steps_has_few_functions():
    @op
    def loss(x, c, *, steps):
        y = smoothed(x, c, steps=steps)
        total[()] += y[i] ** 2
        return total

    x = np.random.default_rng(1).standard_normal(30)
    slope = tc.grad(loss, argnums=(0, 1))
    few, many = (len(functions(slope.explain("python", x, 0.2, steps=steps))) for steps in (12, 24))
    assert many == few < 12
    d_x, d_c = slope(x, 0.2, steps=24)
    step = 1e-6
    numeric = [
        (loss(x, 0.2 + step, steps=24) - loss(x, 0.2 - step, steps=24)) / (2 * step),
        (loss(x + step * d_x, 0.2, steps=24) - loss(x - step * d_x, 0.2, steps=24)) / (2 * step),
    ]
    np.testing.assert_allclose([d_c, d_x @ d_x], numeric, rtol=1e-6)


def test_nests_that_differ_are_not_shared():
    @op
    def several(a, b, m):
        p[i] = exp(a[i])
        q[i] = cos(a[i])  # another function
        r[i] = exp(b[i])  # another element type
        s[j] = exp(m[0, j])  # another layout
        t[k] = exp(a[k]) + 1  # another constant
        u[k] = exp(a[k]) + 2
        total[()] += p[i]
        top[()] >>= p[i]
        return p, q, r, s, t, u, total, top

    generator = np.random.default_rng(2)
    a, b, m = generator.random(4), generator.random(4).astype(np.float32), generator.random((3, 8))[::2, ::2]
    with tc.config(optimize=False):
        found = several(a, b, m)
    expected = np.exp(a), np.cos(a), np.exp(b), np.exp(m[0]), np.exp(a) + 1, np.exp(a) + 2
    for ours, theirs in zip(found[:6], expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert found[6] == pytest.approx(np.exp(a).sum())
    assert found[7] == np.exp(a).max()


def test_checked_indices_name_their_own_tensor():
    @op
    def twice(table, first, second):
        one[i] = table[first[i]]
        two[i] = table[second[i]]
        return one, two

    table, good, bad = np.arange(3.0), np.array([0, 2]), np.array([1, 7])
    with tc.config(optimize=False):
        np.testing.assert_array_equal(twice(table, good, good)[1], [0, 2])
        with pytest.raises(IndexError, match=r"two|second") as raised:
            twice(table, good, bad)
        assert "table[second[i]]" in str(raised.value)
        with pytest.raises(IndexError) as raised:
            twice(table, bad, good)
        assert "table[first[i]]" in str(raised.value)


def test_debug_mode_shares_nothing():
    x = np.ones(6)
    with tc.config(check="bounds"):
        np.testing.assert_allclose(smoothed(x, 0.1, steps=3), smoothed_by_numpy(x, 0.1, 3))
        assert len(functions(smoothed.explain("python", x, 0.1, steps=3))) == 3


def test_programs_share_machine_code(tmp_path):
    @op
    def first(a, b):
        c[i, j] = 3 * a[i, j] + b[j] - 0.375
        return c

    @op
    def second(length, p, q):
        r[k] = length[k] * 2 + q[0]
        s[m, n] = 3 * p[m, n] + q[n] - 0.375  # the nest of the first program
        return r, s

    a, b = np.arange(12.0).reshape(4, 3), np.arange(3.0)
    with tc.config(cache_dir=tmp_path):
        np.testing.assert_array_equal(first(a, b), 3 * a + b - 0.375)
        made = {path.name for path in (tmp_path / "modules").glob("nest_*.code")}
        np.testing.assert_array_equal(first(a[:2], b), 3 * a[:2] + b - 0.375)
        _, s = second(np.ones(5), a, b)
        np.testing.assert_array_equal(s, 3 * a + b - 0.375)
    both = {path.name for path in (tmp_path / "modules").glob("nest_*.code")}
    assert len(made) == 1
    assert len(both) == 2


def training_step(layers, optimizer):
    @op
    def dense(x, *, label):
        return relu("w" @ x + "b"[6])

    rng = np.random.default_rng(layers)
    x = tc.tensor(rng.random((5, 6)), batch=1)
    h = x
    for n in range(layers):
        h = dense(label=f"layer{n}")(h)
    loss = (h**2).mean()
    return tc.compile(tc.train.grad_update(loss), optimizer(loss, learning_rate=0.01))


@pytest.mark.parametrize("optimizer", [tc.train.sgd_update, tc.train.adam_update])
def test_equal_layers_are_compiled_once(optimizer):
    # Small nests are joined only where that makes no further function.
    few, many = (functions(str(training_step(layers, optimizer).explain("python"))) for layers in (8, 16))
    assert len(few) == len(many) < 12


def test_what_stands_at_one_place_only_is_joined():
    @op
    def several(x):
        low[()] <<= x[i]
        high[()] >>= x[i]
        total[()] += x[i]
        y[i] = (x[i] - low) / (high - low) + total
        return y

    x = tc.tensor(np.array([1.0, 2.0, 4.0]))
    step = tc.compile(several(x))
    assert len(functions(str(step.explain("python")))) == 1
