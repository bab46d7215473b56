"""Temporaries of single iterations are memory for a few of them; what others read stays whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.expressions import Constant
from tcdsl.lowering.loop_passes import row_buffers
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import staged

X = np.random.default_rng(2).normal(size=(11, 6))


@op
def rows(x):
    e[i, j] = exp(x[i, j])
    s[i] = sum(e[i, j])
    y[i, j] = e[i, j] / s[i] + e[i, x.shape[1] - 1 - j]
    return y


@op
def read_later(x):
    e[i, j] = exp(x[i, j])
    s[i] = sum(e[i, j])
    y[i, j] = e[x.shape[0] - 1 - i, j] / s[i]
    return y


def _rows(x: np.ndarray) -> np.ndarray:
    e = np.exp(x)
    return e / e.sum(1, keepdims=True) + e[:, ::-1]


def _read_later(x: np.ndarray) -> np.ndarray:
    e = np.exp(x)
    return e[::-1] / e.sum(1, keepdims=True)


@pytest.mark.parametrize(("function", "wanted", "shorter"), [(rows, _rows, True), (read_later, _read_later, False)])
def test_values(function: Any, wanted: Any, shorter: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for blocks in (1, 3, 64):
        monkeypatch.setattr(row_buffers, "_BLOCKS", blocks)
        kernel = lower(staged(function, X))
        most = [buffer.shape[0] for buffer in kernel.buffers if buffer.kind == "temporary" and len(buffer.shape) == 2]
        assert len(most) == 1
        assert (Constant(blocks, "int64") in getattr(most[0], "arguments", ())) == shorter
        for count in (11, 4, 1, 0):
            found = execute(kernel, [X[:count]], lambda steps: list(reversed(steps))).outputs[0]
            np.testing.assert_allclose(found, wanted(X[:count]), rtol=1e-12)


def test_machine_code_takes_less_memory() -> None:
    x = np.random.default_rng(2).normal(size=(1000, 50))
    found = rows(x)
    np.testing.assert_allclose(found, _rows(x), rtol=1e-12)
    assert f"{64 * 50 * 8} of temporaries" in rows.explain("loops", x)
    with tc.config(optimize="-row_buffers"):
        np.testing.assert_array_equal(rows(x), found)
        assert f"{1000 * 50 * 8} of temporaries" in rows.explain("loops", x)
