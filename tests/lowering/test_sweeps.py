"""Reductions of rows share the loop over these rows with what else goes through them, unless that waits for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.lower import lower
from tcdsl.lowering.nests import parallel_reductions
from tcdsl.lowering.scheduling import sweeps
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import staged

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(11, 5)), RNG.normal(size=(11, 5))


@op
def cells(x):
    """Each cell is done by itself, so that columns may be apart."""
    e[i, j] = exp(x[i, j])
    s[j] += e[k, j]
    return e, s


@op
def rows(x, w):
    """What is left of each row, and two sums of columns of it."""
    m[i] = sum(x[i, j])
    y[i, j] = (x[i, j] - m[i]) * w[i, j]
    s[j] += y[k, j]
    t[j] -= w[k, j] * m[k]
    return y, s, t


@op
def waiting(x):
    """Rows in the order of what is read, which no row may wait for."""
    e[i, j] = exp(x[i, j])
    s[j] += e[x.shape[0] - 1 - k, j]
    return e, s


@op
def reading(x):
    """All rows need the sum."""
    s[j] += x[k, j]
    e[i, j] = exp(x[i, j]) * s[j]
    return s, e


def _rows(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    m = x.sum(1)
    y = (x - m[:, None]) * w
    return y, y.sum(0), -(w * m[:, None]).sum(0)


@pytest.mark.parametrize(
    ("function", "arrays", "wanted", "nests"),
    [
        (cells, (X,), lambda x: (np.exp(x), np.exp(x).sum(0)), 2),
        (rows, (X, W), _rows, 3),
        (waiting, (X,), lambda x: (np.exp(x), np.exp(x).sum(0)), 3),
        (reading, (X,), lambda x: (x.sum(0), np.exp(x) * x.sum(0)), 3),
    ],
    ids=["cells", "rows", "waiting", "reading"],
)
def test_rows_are_gone_through_once(
    function: Any,
    arrays: tuple[np.ndarray, ...],
    wanted: Callable[..., tuple[np.ndarray, ...]],
    nests: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel_reductions, "STEPS", 3)
    monkeypatch.setattr(sweeps, "STEPS", 3)
    monkeypatch.setattr(sweeps, "COLUMNS", 2)
    monkeypatch.setattr(sweeps, "_FEWER_STEPS", 3)
    monkeypatch.setattr(sweeps, "_LEAST_STEPS", 1)
    program = staged(function, *arrays)
    for machine in (Machine(near_bytes=16), Machine()):
        kernel = lower(program, machine=machine)
        # Partial results are joined in a nest of their own.
        assert len(kernel.nests) == nests
        for shape in (arrays[0].shape, (1, 5), (7, 1), (0, 4), (4, 0)):
            given = [np.ascontiguousarray(array[: shape[0], : shape[1]]) for array in arrays]
            for order in (None, lambda steps: list(reversed(steps))):
                found = execute(kernel, given, order).outputs
                for one, other in zip(found, wanted(*given), strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_sums_beside_rows_are_the_same_without_it() -> None:
    @op
    def normalized(x, g, w):
        m[i] = sum(x[i, j]) / x.shape[1]
        v[i] = sum(square(x[i, j] - m[i])) / x.shape[1]
        y[i, j] = (x[i, j] - m[i]) / sqrt(v[i] + 1e-5) * g[j]
        total[()] += y[i, j] * w[i, j]
        return total

    x, w = RNG.normal(size=(300, 20)), RNG.normal(size=(300, 20))
    gradient = tc.grad(normalized, argnums=(0, 1))
    found = gradient(x, np.ones(20), w)
    assert gradient.explain("loops", x, np.ones(20), w).count("parallel for") == 2
    with tc.config(optimize="-sweeps"):
        other = gradient(x, np.ones(20), w)
    for one, two in zip(found, other, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)
