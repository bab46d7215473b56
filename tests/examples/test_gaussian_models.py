"""Gaussian processes and Kalman filters, beside the normal distribution of all observations at once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc

GENERATOR = np.random.default_rng(0)


def log_density(y, mean, covariance):
    """Of a normal distribution."""
    off = y - mean
    _, logarithm = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * off @ np.linalg.solve(covariance, off) - 0.5 * logarithm


def slopes(function, at, step=1e-5):
    """Central differences."""
    return np.array([(function(at + step * d) - function(at - step * d)) / (2 * step) for d in np.eye(len(at))])


def test_factors_and_solutions_are_those_of_numpy(example):
    gaussian_process = example("loops.gaussian_process")
    parts, b = GENERATOR.random((7, 7)), GENERATOR.random(7)
    matrix = parts @ parts.T + np.eye(7)
    lower = gaussian_process.cholesky(matrix)
    assert_allclose(lower, np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-14)
    assert_allclose(gaussian_process.solve_lower(lower, b), np.linalg.solve(lower, b), rtol=1e-12)
    assert_allclose(gaussian_process.solve_upper(lower, b), np.linalg.solve(lower.T, b), rtol=1e-12)


def test_the_gradient_of_the_marginal_likelihood(example):
    gaussian_process = example("loops.gaussian_process")
    x, y = np.sort(GENERATOR.uniform(0, 5, 9)), GENERATOR.normal(size=9)

    def expected(logarithms):
        length, height, noise = np.exp(logarithms)
        K = height**2 * np.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + noise**2 * np.eye(len(x))
        return log_density(y, 0, K)

    at = np.array([0.1, -0.2, -0.7])
    value, gradient = tc.value_and_grad(gaussian_process.log_likelihood)(at, x, y)
    assert_allclose(value, expected(at), rtol=1e-12)
    assert_allclose(gradient, slopes(expected, at), rtol=1e-7)

    found = gaussian_process.main()
    assert found["values"][-1] > found["values"][0] + 30
    assert np.abs(found["slope"]).max() < 0.1
    assert found["noise"] == pytest.approx(0.2, rel=0.1)
    assert found["error"] < 0.15


def test_the_filter_is_the_normal_distribution_of_all_observations(example):
    kalman_filter = example("loops.kalman_filter")
    step, look = np.array([[1.0, 1.0], [-0.1, 0.9]]), np.array([1.0, 0.3])
    first, P = np.array([0.5, -0.2]), np.array([[1.0, 0.2], [0.2, 0.5]])
    seen = GENERATOR.normal(size=6)

    def joint(logarithms):
        """Means and covariances of the states and observations, all in one row."""
        push, noise = np.exp(2 * logarithms)
        means, at, covariances = [], first, {}
        blocks = np.zeros((6, 6, 2, 2))
        variance = P
        for t in range(6):
            at, variance = step @ at, step @ variance @ step.T + push * np.eye(2)
            means.append(at)
            covariances[t] = variance
        for t in range(6):
            for later in range(t, 6):
                blocks[later, t] = np.linalg.matrix_power(step, later - t) @ covariances[t]
                blocks[t, later] = blocks[later, t].T
        return np.array(means), blocks, noise * np.eye(6)

    def expected(logarithms):
        means, blocks, noise = joint(logarithms)
        return log_density(seen, means @ look, np.einsum("a,stab,b->st", look, blocks, look) + noise)

    at = np.array([-0.5, 0.1])
    states, value = kalman_filter.kalman_filter(seen, at, first, P, step, look)
    assert_allclose(value, expected(at), rtol=1e-12)
    # The last state, given all observations.
    means, blocks, noise = joint(at)
    together = np.einsum("tab,b->ta", blocks[5], look)
    of_observations = np.einsum("a,stab,b->st", look, blocks, look) + noise
    last = means[5] + together.T @ np.linalg.solve(of_observations, seen - means @ look)
    assert_allclose(states[5], last, rtol=1e-10)

    gradient = tc.grad(lambda logarithms: kalman_filter.kalman_filter(seen, logarithms, first, P, step, look)[1])
    assert_allclose(gradient(at), slopes(expected, at), rtol=1e-7)


def test_noises_are_found(example):
    found = example("loops.kalman_filter").main()
    assert found["values"][-1] > found["values"][0] + 50
    assert_allclose(found["found"], [0.1, 1.0], rtol=0.25)
    assert found["errors"][1] < 0.7 < found["errors"][0]
