"""Code as one writes it for NumPy, which changes its arguments: it runs as it stands, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcdsl import cd

GENERATOR = np.random.default_rng(4)


def diffused(u, out, coefficients):
    I, J = out.shape[0], out.shape[1]
    lap = 4.0 * u[1 : I + 3, 1 : J + 3] - (u[2 : I + 4, 1 : J + 3] + u[: I + 2, 1 : J + 3])
    res = lap[1:, 1 : J + 1] - lap[:-1, 1 : J + 1]
    x = np.where(res * (u[2 : I + 3, 2 : J + 2] - u[1 : I + 2, 2 : J + 2]) > 0, 0, res)
    res = lap[1 : I + 1, 1:] - lap[1 : I + 1, :-1]
    res[res * (u[2 : I + 2, 2 : J + 3] - u[2 : I + 2, 1 : J + 2]) > 0] = 0
    out[:, :] = u[2 : I + 2, 2 : J + 2] - coefficients * (x[1:] - x[:-1] + res[:, 1:] - res[:, :-1])


def factored(A, block):
    n = A.shape[0]
    for k in range(0, n, block):
        e = min(k + block, n)
        for j in range(k, e):
            A[j + 1 :, j] /= A[j, j]
            A[j + 1 :, j + 1 : e] -= A[j + 1 :, j : j + 1] * A[j : j + 1, j + 1 : e]
        for j in range(k, e):
            A[j + 1 : e, e:] -= A[j + 1 : e, j : j + 1] * A[j : j + 1, e:]
        A[e:, e:] -= A[e:, k:e] @ A[k:e, e:]


def decoded(transitions, emissions, path, scores):
    back = np.zeros(emissions.shape, np.int64)
    scores[:] = emissions[0]
    for t in range(1, len(path)):
        ways = scores[:, None] + transitions
        back[t, :] = np.argmax(ways, axis=0)
        scores[:] = np.max(ways, axis=0) + emissions[t]
    path[-1] = np.argmax(scores)
    for t in range(len(path) - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]


def pulled(positions, mass, speeds, steps, dt):
    for _ in range(steps):
        x, y = positions[:, 0:1], positions[:, 1:2]
        dx, dy = x.T - x, y.T - y
        inverse = dx**2 + dy**2
        inverse[inverse > 0] = inverse[inverse > 0] ** -1.5
        speeds += dt * np.stack(((dx * inverse) @ mass, (dy * inverse) @ mass), axis=1)
        positions += dt * speeds


CODE: dict[Callable[..., None], tuple[Any, ...]] = {
    diffused: (GENERATOR.random((9, 8)), np.zeros((5, 4)), GENERATOR.random((5, 4))),
    factored: (GENERATOR.random((7, 7)) + 7 * np.eye(7), 3),
    decoded: (GENERATOR.random((3, 3)), GENERATOR.random((6, 3)), np.zeros(6, np.int64), np.zeros(3)),
    pulled: (GENERATOR.random((4, 2)), GENERATOR.random(4), GENERATOR.random((4, 2)), 3, 0.01),
}


@pytest.mark.parametrize("function", CODE, ids=lambda function: function.__name__)
def test_it_changes_what_numpy_changes(function: Callable[..., None]) -> None:
    found, wanted = ([np.array(each) if np.ndim(each) else each for each in CODE[function]] for _ in range(2))
    cd(function)(*found)
    function(*wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
