"""The loops of the benchmark, and those written by hand for Numba, as Python runs them, agree."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.loops import by_hand, programs
from benchmarks.loops.__main__ import CASES, memory_of, run
from tests.long_variants import few


@pytest.mark.parametrize("name", [name for name in CASES if hasattr(by_hand, name)])
def test_contenders_agree(name: str) -> None:
    make, changes = CASES[name]
    given = make(32)
    found, _ = run(getattr(programs, name), given, changes)
    wanted, _ = run(getattr(by_hand, name).py_func, given, changes)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_the_gradient_is_that_of_the_loop() -> None:
    state = np.array([1.0, 2.0, 3.0])
    found = programs.lorenz_gradient(*map(np.float64, state), 50, 1e-3)
    for k in range(3):
        sides = [by_hand.lorenz.py_func(*(state + step * np.eye(3)[k]), 50, 1e-3) for step in (1e-6, -1e-6)]
        assert found[k] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize(
    "name", few(["wave_gradient", "lstm_gradient", "kalman_gradient"], {"wave_gradient", "lstm_gradient"})
)
def test_gradients_are_those_of_differences(name: str) -> None:
    losses = {"wave_gradient": "wave_energy", "lstm_gradient": "lstm", "kalman_gradient": "kalman"}
    first, *others = CASES[name][0](16)
    found = getattr(programs, name)(first, *others)
    loss = getattr(programs, losses[name])
    for cell in [(0,) * first.ndim, tuple(extent // 2 for extent in first.shape)]:
        sides = []
        for step in (1e-5, -1e-5):
            moved = first.copy()
            moved[cell] += step
            sides.append(loss(moved, *others))
        assert found[cell] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-4, abs=1e-7)


def test_checkpoints_change_no_gradient() -> None:
    *given, _ = CASES["wave_gradient"][0](32)
    wanted = programs.wave_gradient(*given, 23)
    np.testing.assert_allclose(programs.wave_gradient_checkpointed(*given, 23), wanted, rtol=1e-9)


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    assert memory_of("wave_gradient", "tcdsl", 2) > 50 * 256 * 256 * 8 / 1e6  # the states of all rounds
