"""What programs with loops cost: what they cost unrolled; and their derivatives, at most four times that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from benchmarks.loops import programs
from tcdsl import op
from tcdsl.autodiff.cost import count_operations
from tcdsl.autodiff.loop_derivatives import open_loops
from tests.autodiff.cost.measuring import Derivatives
from tests.autodiff.programs import floating_inputs
from tests.differential.loading import loaded
from tests.differential.random_loops import random_function
from tests.differential.test_random_loops import arguments
from tests.ir.loop_programs import DERIVED, LOOPS
from tests.long_variants import seeds
from tests.rewrite.unrolling import unrolled


@pytest.mark.parametrize("name", DERIVED)
def test_loops_cost_what_they_cost_unrolled(name: str) -> None:
    case = LOOPS[name]
    for size in (0, 1, 4):
        arrays = case.of(size)
        assert count_operations(case.program, arrays) == count_operations(unrolled(case.program, arrays), arrays)


# Where data end a loop, it runs once more to store its states.
@pytest.mark.parametrize("name", [name for name in DERIVED if name not in ("until", "counted")])
def test_derivatives_of_loops_cost_four_times_at_most(name: str) -> None:
    case = LOOPS[name]
    derivatives = Derivatives(case.program, floating_inputs(case.program))
    for size in (1, 4, 8):
        derivatives.measured(case.of(size)).check_with_interface()


@op
def until_large(x: real[N], limit, n):
    s = 0.0
    for t in range(n):
        if s > limit:
            break
        s = s + sum(sin(x[i] * x[i])) * (1 + 0.1 * t)
    return s


def test_rounds_after_break_cost_nothing_backwards() -> None:
    x, limit = np.linspace(0.5, 1, 6), np.array(5.0)
    slope = tc.grad(until_large)
    counts = []
    for n in (5, 100_000):  # walking over so many rounds would take minutes
        entry, arrays = slope.staging.entry(slope.signature.call((x, limit, n), {}))
        counts.append(count_operations(entry.executable.program, arrays))
    assert counts[0] == counts[1]
    np.testing.assert_array_equal(slope(x, limit, 5), slope(x, limit, 100_000))
    for n in (0, 1, 2, 4):  # two rounds pass the limit
        weight = (1 + 0.1 * np.arange(min(n, 2))).sum()
        np.testing.assert_allclose(slope(x, limit, n), weight * 2 * x * np.cos(x * x), rtol=1e-12)
    [curvature] = tc.hvp(lambda x: until_large(x, limit, 4), (x,), (np.ones(6),))
    np.testing.assert_allclose(curvature, weight * (2 * np.cos(x * x) - 4 * x * x * np.sin(x * x)), rtol=1e-12)


@op
def decayed(y, limit):
    k = 0
    while k < limit:
        y = y + 0.001 * sin(y)
        k = k + 1
    return y


def test_many_rounds_of_loops_that_data_end_are_computed_again_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_loops, "_MOST_PLACES", 4)
    monkeypatch.setattr(open_loops, "_FEWEST_PLACES", 4)
    slope = tc.grad(decayed)
    costs = []
    for function in (decayed, slope):
        entry, arrays = function.staging.entry(function.signature.call((np.array(0.5), np.array(70.0)), {}))
        costs.append(count_operations(entry.executable.program, arrays).weighted)
    assert costs[1] < 7 * costs[0]  # four times again, where every 18th state would take nine


@op
def decayed_in_rounds(y, n):
    for _ in range(n):
        y = y + 0.001 * sin(y)
    return y


def test_loops_that_data_end_may_have_any_number_of_rounds() -> None:
    slope, wanted, y = tc.grad(decayed), tc.grad(decayed_in_rounds), np.array(0.1)
    # With 1,024 states 1,025 rounds are computed again once, and 525,825 twice.
    for n in (0, 1, 1024, 1025, 1026, 525_825, 525_826):
        np.testing.assert_allclose(slope(y, np.array(float(n))), wanted(y, n), rtol=1e-12)


@op
def with_few_states(x: real[N], limit, n):
    s = 0.0
    for t in tc.loop(n, checkpoints=2):
        if s > limit:
            break
        s = s + sum(sin(x[i] * x[i] + 0.1 * s)) * (1 + 0.1 * t)
    return s


@op
def in_segments(x: real[N], limit, n):
    s = 0.0
    for t in tc.loop(n, checkpoint_every=2):
        if s > limit:
            break
        s = s + sum(sin(x[i] * x[i] + 0.1 * s)) * (1 + 0.1 * t)
    return s


@pytest.mark.parametrize("function", [until_large, with_few_states, in_segments], ids=lambda each: each.__name__)
def test_rounds_after_break_cost_nothing_in_any_derivative(function: Any) -> None:
    x, v, limit = np.linspace(0.5, 1, 6), np.linspace(1, -1, 6), np.array(5.0)
    slope = tc.grad(function)
    products = [
        tc.grad(lambda x, limit, n: (slope(x, limit, n) * v).sum()),
        lambda x, limit, n: tc.hvp(function, (x, limit, n), (v, 0 * limit, None))[0],
    ]
    for n in (0, 1, 2, 60):  # two rounds pass the limit
        wanted = (slope(x + 1e-5 * v, limit, min(n, 3)) - slope(x - 1e-5 * v, limit, min(n, 3))) / 2e-5
        for product in products:
            np.testing.assert_allclose(product(x, limit, n), wanted, rtol=1e-7, atol=1e-7)
    for derivative in (function, slope, products[0]):
        counts = []
        for n in (5, 60):
            entry, arrays = derivative.staging.entry(derivative.signature.call((x, limit, n), {}))
            counts.append(count_operations(entry.executable.program, arrays))
        assert counts[0] == counts[1]


def arrays_of(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(2)
    return [generator.uniform(0.2, 0.8, shape) for shape in shapes]


SYMBOLS, ONE = np.array([0, 2, 1]), np.array(1.0)

# Programs of the benchmarks, at small sizes.
APPLICATIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "wave": (programs.wave_energy, (*arrays_of((5, 5), (5, 5), (5, 5)), 4)),
    "wave in segments": (programs.wave_energy_checkpointed, (*arrays_of((4, 4), (4, 4), (4, 4)), 23)),
    "lorenz": (programs.lorenz, (ONE, ONE, ONE, 5, 1e-3)),
    "forward algorithm": (programs.forward_algorithm, (*arrays_of((3,), (3, 3), (3, 4)), SYMBOLS)),
    "shortest paths": (programs.floyd_warshall, tuple(arrays_of((4, 4)))),
    "lstm": (programs.lstm, tuple(arrays_of((2, 8), (2, 8), (2, 3, 2), (3, 2)))),
    "kalman": (programs.kalman, tuple(arrays_of((2,), (3,), (2, 2), (2, 2)))),
    "conjugate gradient": (programs.conjugate_gradient, (np.eye(3) + 0.1, np.ones(3), 1e-6)),
}


@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications_keep_to_the_bound(name: str) -> None:
    function, given = APPLICATIONS[name]
    cost = function.cost(*given)
    assert cost.within_bounds, str(cost)
    assert (cost.again > 0) == (name in ("wave in segments", "conjugate gradient"))


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_random_functions_with_loops_keep_to_the_bound(seed: int) -> None:
    cost = loaded(random_function(seed, smooth=True)).cost(*arguments(seed))
    assert cost.within_bounds, str(cost)
    assert not cost.again


@op
def plain_rounds(u, n):
    for t in tc.loop(n):
        u[i] += 0.1 * sin(u[i - 1]) * t
    return u


@op
def rounds_in_segments(u, n):
    for t in tc.loop(n, checkpoint_every=4):
        u[i] += 0.1 * sin(u[i - 1]) * t
    return u


@op
def rounds_of_few_states(u, n):
    for t in tc.loop(n, checkpoints=3):
        u[i] += 0.1 * sin(u[i - 1]) * t
    return u


def test_rounds_that_are_computed_again_are_counted_apart() -> None:
    u, n = np.linspace(0, 1, 5), 20
    every = plain_rounds.cost(u, n)
    assert not every.again
    for function, most in ((rounds_in_segments, 1), (rounds_of_few_states, 3)):  # (3 + 3)! / (3! 3!) = 20
        cost = function.cost(u, n)
        assert cost.within_bounds
        assert "+ rounds again: " in str(cost)
        assert cost.primal.operations == every.primal.operations
        assert 0 < cost.again <= most * cost.primal.operations.weighted
        assert cost.adjoint.operations.weighted - cost.again == every.adjoint.operations.weighted


def test_counting_a_loop_looks_at_no_values() -> None:
    arrays = [np.broadcast_to(0.0, shape) for shape in ((1000,), (1000, 1000), (3, 1000))]
    assert count_operations(LOOPS["recurrent"].program, arrays).calls


@op
def bellman_ford(d: real[V], u, v, w: real[E], n):
    for _ in tc.loop(n):
        d[v[e]] <<= d[u[e]] + w[e]
    return sum(d[i] * d[i])


@op
def smallest_of_pairs(x: real[T, N], s: real[N]):
    for t in range(T):
        s[i] = min(s[i] * 0.9 + x[t, i], tanh(s[i]) + 0.5)
    return sum(s[i] * s[i])


@op
def left_early(x: real[T, N], s: real[N], limit):
    for t in range(T):
        if sum(s[i]) > limit:
            break
        s[i] = tanh(s[i] + x[t, i])
    return sum(s[i] * s[i])


@op
def on_one_side(x: real[T, N], s: real[N]):
    for t in range(T):
        s[i] = tanh(s[i - 1] * x[t, i]) + s[i] * s[i], i > 0
    return sum(s[i] * s[i])


def states_kept(function: Any, given: tuple[Any, ...], state: int) -> float:
    """How many states more a gradient allocates if there is a round more."""
    slope = tc.grad(function)
    temporaries = []
    for rounds in (40, 60):
        text = str(slope.explain("loops", *(each(rounds) if callable(each) else each for each in given)))
        temporaries.append(int(text.rstrip().rpartition("of temporaries")[0].rsplit(maxsplit=1)[-1]))
    return float(np.diff(temporaries)[0]) / 20 / (8 * state)


def test_a_state_that_rounds_hand_on_is_kept_once() -> None:
    generator = np.random.default_rng(3)
    d, w = generator.random(30) * 9, generator.random(200)
    u, v = generator.integers(0, 30, (2, 200))
    assert states_kept(bellman_ford, (d, u, v, w, lambda rounds: rounds), 30) <= 1
    x = [lambda rounds: np.full((rounds, 30), 0.1), d]
    assert states_kept(smallest_of_pairs, tuple(x), 30) <= 2  # and which of the two it was
    assert states_kept(on_one_side, tuple(x), 30) <= 2  # and the tangent of tanh


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_gradients_of_what_is_kept_once(n: int) -> None:
    generator = np.random.default_rng(7)
    d, w = generator.random(6) * 9, generator.random(12)
    u, v = generator.integers(0, 6, (2, 12))
    x = generator.random((n, 6))
    for function, given in (
        (bellman_ford, (d, u, v, w, n)),
        (smallest_of_pairs, (x, d)),
        (left_early, (x, d, np.array(40.0))),
        (left_early, (x, d / 9, np.array(4.0))),
        (on_one_side, (x, d / 20)),
    ):
        tc.check_grads(function, given, order=2)
