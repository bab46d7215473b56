"""Stencils of stencils are made a tile at a time, unless what is in between is needed as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.lowering.loopir.loops import Kernel, LocalBuffer
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tcdsl.lowering.scheduling import stencil_chains
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import staged

RNG = np.random.default_rng(11)


def _sum(x: np.ndarray) -> np.ndarray:
    return x[:-1, :-2] + x[:-1, 2:] * x[1:, 1:-1]


@op
def twice(x):
    a[i, j] = x[i, j] + x[i, j + 2] * x[i + 1, j + 1]
    b[i, j] = a[i, j] + a[i, j + 2] * a[i + 1, j + 1]
    return b


@op
def forked(x):
    """Two tensors between, one of which is read by the other too."""
    a[i, j] = x[i, j] + x[i, j + 2] * x[i + 1, j + 1]
    b[i, j] = a[i + 1, j] * x[i + 2, j + 3] - a[i, j + 1]
    c[i, j] = b[i, j] + b[i + 1, j + 1] * a[i + 2, j + 2]
    return c


def _forked(x: np.ndarray) -> np.ndarray:
    a = _sum(x)
    b = a[1:, :-1] * x[2:, 3:] - a[:-1, 1:]
    return b[:-1, :-1] + b[1:, 1:] * a[2:, 2:]


@op
def batched(x: real[B, H, W]):
    a[n, i, j] = x[n, i, j] + x[n, i, j + 2] * x[n, i + 1, j + 1]
    b[n, i, j] = a[n, i, j] + a[n, i, j + 2] * a[n, i + 1, j + 1]
    return b


@op
def both(x):
    """The first one is a result."""
    a[i, j] = x[i, j] + x[i, j + 2] * x[i + 1, j + 1]
    b[i, j] = a[i, j] + a[i, j + 2] * a[i + 1, j + 1]
    return b, a


@op
def turned(x: real[N, N]):
    """All of it is read along the columns."""
    a[i, j] = x[i, j] * x[i, j] + exp(x[i, j]) * 3
    b[i, j] = a[i, j] + a[j, i] * 2
    return b


@op
def far(x):
    a[i, j] = x[i, j] + x[i, j + 2] * x[i + 1, j + 1]
    b[i, j] = a[i, j] + a[i + 9, j] * a[i, j]
    return b


@cd
def replaced(x: real[H, W]):
    """The cells that the first one reads are overwritten by the last one."""
    a[i, j] = x[i, j] + x[i, j + 2] * x[i + 1, j + 1]
    b[i, j] = a[i, j] + a[i, j + 2] * a[i + 1, j + 1]
    x[i, j] = b[i, j] * b[i + 1, j], i < H - 3, j < W - 4


def _lowered(function: Any, *arrays: np.ndarray) -> tuple[Kernel, int]:
    # And how many tensors are whole that are not given.
    kernel = lower(staged(function, *arrays))
    return kernel, sum(buffer.kind == "temporary" for buffer in kernel.buffers)


@pytest.mark.parametrize("columns", [3, 64])
def test_values(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_COLUMNS", (columns,)), ("_ROWS", columns // 3 + 1), ("_FEWEST_ROWS", 1)):
        monkeypatch.setattr(stencil_chains, name, value)
    x = RNG.normal(size=(11, 14))
    for function, wanted in ((twice, lambda x: _sum(_sum(x))), (forked, _forked)):
        kernel, found = _lowered(function, x)
        assert not found
        for shape in ((11, 14), (4, 6), (3, 5), (2, 14), (0, 0)):
            given = np.ascontiguousarray(x[: shape[0], : shape[1]])
            plain = function.interpret(given)
            made = execute(kernel, [given], lambda steps: list(reversed(steps))).outputs[0]
            np.testing.assert_array_equal(made, plain)
            if plain.size:
                np.testing.assert_allclose(made, wanted(given), rtol=1e-12)
    planes = np.stack([x, 2 * x, x - 1])
    kernel, found = _lowered(batched, planes)
    assert not found
    np.testing.assert_allclose(execute(kernel, [planes]).outputs[0], [_sum(_sum(plane)) for plane in planes])


def test_what_is_needed_as_a_whole_stays() -> None:
    x = RNG.normal(size=(14, 14))
    assert [_lowered(function, x)[1] for function in (both, turned, far)] == [0, 1, 1]
    assert not any(
        isinstance(node, LocalBuffer) for nest in _lowered(both, x)[0].nests for node in walk_nodes(nest.body)
    )
    given = x.copy()
    replaced(given)
    b = _sum(_sum(x))
    np.testing.assert_allclose(given[:11, :10], b[:-1] * b[1:], rtol=1e-12)
    np.testing.assert_array_equal(given[11:], x[11:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_machine_code(dtype: str) -> None:
    x = RNG.normal(size=(150, 530)).astype(dtype)
    found = twice(x)
    assert "local tile_a" in twice.explain("loops", x)
    np.testing.assert_allclose(found, _sum(_sum(x)), rtol=1e-5, atol=1e-5)
    with tc.config(optimize="-chains"):
        np.testing.assert_array_equal(found, twice(x))
        assert "local" not in twice.explain("loops", x)
