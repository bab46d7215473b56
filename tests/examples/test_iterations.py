"""Loops that end when something is small: solutions beside NumPy's, derivatives beside differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc


def conduction(size):
    """The matrix of `conduct`, with a metal of 1."""
    line = 2 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)
    return np.kron(line, np.eye(size)) + np.kron(np.eye(size), line)


def test_conjugate_gradients_solve_and_so_do_their_derivatives(example):
    found = example("loops.conjugate_gradient").main(size=12)
    inverse = np.linalg.inv(conduction(12))
    heat = np.zeros((12, 12))
    heat[3, 3] = heat[6, 4] = 1.0
    assert_allclose(found["x"].ravel(), inverse @ heat.ravel() / 2, atol=1e-9)
    assert found["left"] < 1e-9
    assert 5 < found["rounds"] < 144
    assert_allclose(found["d_heat"].ravel(), inverse[-1] / 2, atol=1e-9)
    assert_allclose(found["d_metal"], -inverse[-1] @ heat.ravel() / 4, atol=1e-9)  # x is as 1 / metal


def test_k_means_is_lloyds_algorithm(example):
    k_means = example("loops.k_means")
    found = k_means.main()
    points, centres = found["points"], found["start"]
    for _ in range(100):
        nearest = np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=1)
        centres = np.array([points[nearest == c].mean(axis=0) for c in range(3)])
    np.testing.assert_array_equal(found["nearest"], nearest)
    assert_allclose(found["centres"], centres, rtol=1e-12)
    assert found["spread"] == pytest.approx(0.64, rel=0.1)  # that with which the points were drawn
    # A centre without points stays where it is.
    centres, nearest, rounds = k_means.k_means(np.array([[0.0], [1.0]]), np.array([[0.5], [9.0]]))
    assert (centres.tolist(), nearest.tolist(), rounds) == ([[0.5], [9.0]], [0, 0], 1)


def test_angles_of_an_orbit_and_their_implicit_derivatives(example):
    kepler = example("loops.kepler")
    M, e = np.array([0.1, 1.0, 2.0, 3.0]), np.array(0.7)
    E = kepler.anomaly(M, e)
    assert_allclose(E - e * np.sin(E), M, rtol=1e-14)

    def weighted(M, e):
        return kepler.anomaly(M, e) @ np.array([1.0, -2.0, 3.0, 0.5])

    d_M, d_e = tc.grad(weighted, argnums=(0, 1))(M, e)
    high, low = weighted(M, e + 1e-6), weighted(M, e - 1e-6)
    assert_allclose(d_e, (high - low) / 2e-6, rtol=1e-8)
    differences = [(weighted(M + d, e) - weighted(M - d, e)) / 2e-6 for d in 1e-6 * np.eye(4)]
    assert_allclose(d_M, differences, rtol=1e-8)

    found = kepler.main()
    assert found["values"][-1] < 1e-4 < 0.5 < found["values"][0]
    assert_allclose(found["shape"], found["true"], atol=0.01)
