"""Random numbers: their distributions, one draw for each call, and the same one in its derivatives."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import ShapeError
from tcdsl.library import rand
from tcdsl.skriptnd.graphs import ModelGraph
from tests.skriptnd.graphs import graph_of

N = 200_001
DROPOUT = """
import rand, math;

operator kept {
    @attrib { rate: real; }
    @input { x: real[n,m]; keep: bool[n,m]; }
    @output { y: real[n,m]; }
    @lower { y[i,j] = keep[i,j] ? x[i,j] / (1.0 - rate) : 0.0, i < n, j < m; }
}
operator dropout {
    @attrib { rate: real; }
    @input { x: real[n,m]; }
    @output { y: real[n,m]; }
    @compose { keep = rand.bernoulli{prob=1.0 - rate, shape=[n,m]}(); y = kept{rate=rate}(x, keep); }
}
graph net {
    @input { x: real[n|20,m|30]; }
    @output { y: real[n,m]; z: real[n,m]; }
    @compose { y = dropout{rate=0.5}(x); z = dropout{rate=0.5}(x); }
}
"""
WALK = """
import rand, math;
graph walk {
    @input { count: int[]; x: real[3]; }
    @output { y: real[3]; }
    @compose { y = with s = x do..(count) { d = rand.normal{shape=[3]}(); t = math.mul(s, d); yield t; }; }
}
"""


@pytest.fixture
def net() -> ModelGraph:
    return graph_of(DROPOUT)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (lambda: rand.uniform(shape=[N]), 1 / 2, 1 / 12),
        (lambda: rand.uniform(min=-3.0, max=5.0, shape=[3, N]), 1, 64 / 12),
        (lambda: rand.uniform(min=-3, max=4, shape=[N]), 0, 48 / 12),
        (lambda: rand.normal(shape=[N, 2]), 0, 1),
        (lambda: rand.normal(mean=-2.0, std=0.5, shape=[N]), -2, 1 / 4),
        (lambda: rand.bernoulli(prob=0.3, shape=[N]), 0.3, 0.3 * 0.7),
    ],
)
def test_mean_and_variance_are_those_of_the_distribution(draw: Any, mean: float, variance: float) -> None:
    tc.seed(11)
    found, other = (draw().astype(np.float64) for _ in range(2))
    error = 6 * np.sqrt(variance / found.size)
    assert abs(found.mean() - mean) < error
    assert abs(found.var() - variance) < 12 * variance / np.sqrt(N)
    for one, two in ((found, other), (found.ravel()[1:], found.ravel()[:-1])):  # two calls, and neighbours
        assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 6 / np.sqrt(N)


def test_numbers_are_in_their_range() -> None:
    real = rand.uniform(min=2.0, max=3.0, shape=[N])
    assert real.dtype == np.float32
    assert 2 <= real.min() < 2.001
    assert 2.999 < real.max() <= 3
    assert len(np.unique(real)) > 0.95 * N
    whole = rand.uniform(min=-2, max=3, shape=[7, 100])
    assert whole.dtype == np.int32
    assert set(np.unique(whole)) == {-2, -1, 0, 1, 2}
    assert 0 <= float(rand.uniform(shape=[])) < 1
    assert rand.normal(shape=[2, 0]).shape == (2, 0)
    assert rand.bernoulli(prob=1.0, shape=[100]).all()
    assert not rand.bernoulli(prob=0.0, shape=[100]).any()


def test_the_upper_tail_of_normal_numbers_is_that_of_the_distribution() -> None:
    tc.seed(2)
    found = rand.normal(shape=[N])
    for bound, part in ((1.0, 0.158655), (2.0, 0.0227501), (3.0, 0.0013499)):
        for tail in ((found > bound).mean(), (found < -bound).mean()):
            assert abs(tail - part) < 6 * np.sqrt(part / N)


def test_a_seed_says_the_numbers_of_all_calls(net: ModelGraph) -> None:
    tc.seed(4)
    first = [net(ones(3, 5)), net(ones(2, 7)), rand.uniform(shape=[4])]
    tc.seed(4)
    again = [net(ones(3, 5)), net(ones(2, 7)), rand.uniform(shape=[4])]
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    tc.seed(5)
    assert (net(ones(3, 5))[0] != first[0][0]).any()


def test_calls_and_tensors_of_a_call_have_numbers_of_their_own(net: ModelGraph) -> None:
    (y, z), (other, _) = net(ones(20, 30)), net(ones(20, 30))
    for one, two in ((y, z), (y, other)):
        assert 0.4 < (one == two).mean() < 0.6


def test_threads_draw_numbers_of_their_own(net: ModelGraph) -> None:
    net(ones(20, 30))
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(net(ones(20, 30))[0])) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({each.tobytes() for each in found}) == 4


def test_a_failed_call_draws_nothing(net: ModelGraph) -> None:
    net(ones(3, 5))
    tc.seed(6)
    expected = net(ones(3, 5))[0]
    tc.seed(6)
    with pytest.raises(ShapeError, match="30 is the most"):
        net(ones(3, 31))
    np.testing.assert_array_equal(net(ones(3, 5))[0], expected)


def test_looking_at_a_graph_draws_nothing(net: ModelGraph) -> None:
    tc.seed(6)
    expected = net(ones(3, 5))[0]
    tc.seed(6)
    assert net.shapes((3, 5)) == ((3, 5), (3, 5))
    net.explain("ir", ones(3, 5))
    np.testing.assert_array_equal(net(ones(3, 5))[0], expected)


def test_derivatives_compute_with_the_numbers_of_their_call(net: ModelGraph) -> None:
    x = ones(3, 5)
    tc.seed(3)
    masks = [net(x)[0], net(x)[0]]
    for derivative in (tc.grad(lambda x: net(x)[0].sum()), tc.value_and_grad(lambda x: net(x)[0].sum())):
        tc.seed(3)
        for mask in masks:
            found = derivative(x)
            if isinstance(found, tuple):
                assert found[0] == mask.sum()
            np.testing.assert_array_equal(found[1] if isinstance(found, tuple) else found, mask)
    tc.seed(3)
    (y, _), pullback = tc.vjp(net, x)
    net(x)  # draws other numbers
    np.testing.assert_array_equal(y, masks[0])
    np.testing.assert_array_equal(pullback((x, 0 * x))[0], masks[0])
    tc.seed(3)
    (y, _), (t, _) = tc.jvp(net, (x,), (2 * x,))
    np.testing.assert_array_equal(2 * y, t)
    np.testing.assert_array_equal(y, masks[0])


def test_differences_of_values_have_the_same_numbers(net: ModelGraph) -> None:
    tc.check_grads(lambda x: net(x)[0] ** 2, (ones(3, 5),), order=2, modes=("rev", "fwd"))
    walk = graph_of(WALK)
    tc.check_grads(lambda x: walk(np.int32(4), x), (ones(3),), modes=("rev", "fwd"))
    assert (walk(np.int32(1), ones(3)) != walk(np.int32(1), ones(3))).all()


def test_numbers_of_double_precision_begin_with_those_of_single() -> None:
    scaled = graph_of("""
        import rand, math;
        graph g { @input { x: real[5]; } @output { y: real[5]; }
            @compose { u = rand.uniform{shape=[5]}(); y = math.mul(x, u); } }
    """)
    tc.seed(1)
    single = scaled(ones(5))
    tc.seed(1)
    double = scaled(np.ones(5))
    assert double.dtype == np.float64
    np.testing.assert_array_equal(single, np.floor(double * 2**24) / 2**24)


def test_rounds_of_loops_have_numbers_of_their_own() -> None:
    walk = graph_of(WALK)
    tc.seed(5)
    one = walk(np.int32(1), ones(3))
    tc.seed(5)
    two = walk(np.int32(2), ones(3))
    assert np.all(np.abs(two - one * one) > 1e-4)
    endless = graph_of("""
        import rand, math;
        graph g { @input { x: real[]; } @output { y: real[]; n: int[]; }
            @compose { y, n = with s = x, k = 0 while math.lt(s, 40.0) do {
                u = rand.uniform{shape=[]}(); t = math.add(s, u); j = math.add(k, 1); yield t, j; }; } }
    """)
    total, rounds = endless(np.float32(0))
    assert 40 <= total < 41
    assert 60 < rounds < 110


def test_numbers_in_a_decorated_function_and_in_the_interpreter() -> None:
    @tc.op
    def noisy(x):
        return x + rand.uniform(shape=[3]) - rand.uniform(shape=[3])

    tc.seed(1)
    expected = noisy(ones(3))
    tc.seed(1)
    np.testing.assert_array_equal(noisy(ones(3)), expected)
    assert (noisy(ones(3)) != expected).all()
    tc.seed(1)
    np.testing.assert_allclose(noisy.interpret(ones(3)), expected, rtol=1e-6)
    assert (expected != 1).all()


def test_each_run_of_a_routine_draws_anew(net: ModelGraph) -> None:
    w = tc.param("w", init=ones(3, 5))
    y, _ = net(w)
    np.testing.assert_array_equal(y.value, y.value)  # until memory changes
    step = tc.compile(tc.train.grad_update((y * y).sum()), y)
    masks = []
    tc.seed(8)
    for _ in range(3):
        step.run()
        masks.append(y.value.copy())
        np.testing.assert_array_equal(w.grad, 4 * masks[-1])
    assert len({each.tobytes() for each in masks}) == 3
    tc.seed(8)
    step.run()
    np.testing.assert_array_equal(y.value, masks[0])


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: rand.uniform(min=1.0, max=1.0, shape=[2]), "'min' is not below 'max'"),
        (lambda: rand.normal(std=-1.0, shape=[2]), "'std' is negative"),
        (lambda: rand.bernoulli(prob=1.5, shape=[2]), "'prob' is not between 0 and 1"),
        (lambda: rand.bernoulli(shape=[2]), "the attribute `prob` is missing"),
        (lambda: rand.uniform(shape=[-2]), "the extent -2 is negative"),
    ],
)
def test_what_is_no_distribution_is_refused(draw: Any, message: str) -> None:
    with pytest.raises(tc.TcdslError) as caught:
        draw()
    assert message in str(caught.value)
