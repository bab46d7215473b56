"""Systems in time, step by step, beside loops of NumPy; gradients beside differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc


def lorenz_trajectory(u, steps, width):
    def speed(u):
        return np.array([10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2]])

    for _ in range(steps):
        a = speed(u)
        b = speed(u + width / 2 * a)
        c = speed(u + width / 2 * b)
        u = u + width / 6 * (a + 2 * b + 2 * c + speed(u + width * c))
    return u


def test_the_lorenz_system_and_its_derivatives(example):
    lorenz = example("loops.lorenz")
    u, steps, width = np.array([1.0, 2.0, 20.0]), 100, 0.01
    assert_allclose(lorenz.trajectory(u, steps, width), lorenz_trajectory(u, steps, width), rtol=1e-10)
    high, low = ([lorenz_trajectory(u + d, steps, width)[2] for d in s * np.eye(3)] for s in (1e-6, -1e-6))
    assert_allclose(lorenz.slope(u, steps, width), np.subtract(high, low) / 2e-6, rtol=1e-6)
    found = lorenz.main()
    assert found["growth"] == pytest.approx(0.906, abs=0.05)  # the largest Lyapunov exponent
    # The orbit AB of Viswanath, "The fractal property of the Lorenz attractor" (2004).
    assert found["period"] == pytest.approx(1.5586522107162, abs=1e-9)
    assert_allclose(found["state"], [-13.763610682134, -19.578751942452, 27], atol=1e-9)
    assert found["off"] < 1e-10


def seismograms(speed, pulse, rows):
    shots = np.arange(len(rows))
    before = now = np.zeros((len(rows), *speed.shape))
    heard = []
    for given in pulse:
        framed = np.pad(now, ((0, 0), (1, 1), (1, 1)))
        beside = framed[:, :-2, 1:-1] + framed[:, 2:, 1:-1] + framed[:, 1:-1, :-2] + framed[:, 1:-1, 2:]
        after = 2 * now - before + speed**2 * (beside - 4 * now)
        after[shots, rows, 0] += given
        before, now = now, after
        heard.append(now[:, :, -1])
    return np.array(heard)


def test_waves_and_the_gradient_by_the_field(example):
    wave = example("loops.wave")
    generator = np.random.default_rng(0)
    speed, pulse, rows = generator.uniform(0.3, 0.5, (6, 7)), generator.random(20), np.array([1, 4])
    heard = seismograms(speed, pulse, rows)
    assert_allclose(wave.seismograms(speed, pulse, rows), heard, rtol=1e-10, atol=1e-12)

    guess, direction = np.full((6, 7), 0.4), generator.normal(size=(6, 7))
    value, slope = tc.value_and_grad(wave.misfit)(guess, pulse, rows, heard)
    high, low = (np.sum((seismograms(guess + s * direction, pulse, rows) - heard) ** 2) for s in (1e-6, -1e-6))
    assert_allclose(np.sum(slope * direction), (high - low) / 2e-6, rtol=1e-6)
    assert_allclose(value, np.sum((seismograms(guess, pulse, rows) - heard) ** 2), rtol=1e-10)


def test_the_field_is_found(example, tmp_path):
    found = example("loops.wave").main(rounds=80, output=tmp_path / "wave.png")
    assert found["values"][-1] < 1 < 500 < found["values"][0]
    assert found["errors"][1] < 0.5 * found["errors"][0]
    assert (tmp_path / "wave.png").stat().st_size > 1000
