"""Second derivatives of random functions with loops, in both orders of the modes, against differences of the first."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.autodiff.loop_derivatives.random_loops import source

STEP = 1e-5
X, Y = np.array([0.8, 0.3]), np.array([0.7, 0.4])
ALONG = (np.array([0.3, -0.5]), np.array([1.0, 0.6]))


def imported(text: str, folder: Path) -> Any:
    """The module with the text."""
    path = folder / "program.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"program_{abs(hash(text))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(text: str, folder: Path, number: Any) -> None:
    """Compare the Hessian times `ALONG`, forward over reverse and reverse over reverse."""
    module = imported(
        f"""{text}

@tc.op
def slope(x, y, q, u, w):
    d_x, d_y = tc.grad(f, (0, 1))(x, y, q)
    return sum(d_x[i] * u[i]) + sum(d_y[i] * w[i])
""",
        folder,
    )
    first, (u, w) = tc.grad(module.f, (0, 1)), ALONG
    more, less = (first(X + e * u, Y + e * w, number) for e in (STEP, -STEP))
    expected = [(a - b) / (2 * STEP) for a, b in zip(more, less, strict=True)]
    forward = tc.hvp(lambda x, y: module.f(x, y, number), (X, Y), (u, w))
    backward = tc.grad(module.slope, (0, 1))(X, Y, number, u, w)
    for found in (forward, backward):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=text)


@pytest.mark.parametrize("seed", range(4))
def test_second_derivatives(seed: int, tmp_path: Path) -> None:
    check(source(seed), tmp_path, np.array(3))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 300))
def test_more_second_derivatives(seed: int, tmp_path: Path) -> None:
    check(source(seed), tmp_path, np.array(3) if seed % 2 else 3)


BEHIND_A_LOOP = """import numpy as np
import tcdsl as tc

@tc.op
def f(x, y, q):
    v = y * 1
    for _ in range(q):
        v = sin(v) * y
    m, n = np.zeros(1), 0
    {head}
        n += 1
        m[0] += v[0] * v[0]
    return m[0]
"""


@pytest.mark.parametrize(
    "head", ["while n < q and x[0] < 100:", "while n < q and m[0] < 9:", "for _ in tc.loop(q, checkpoints=2):"]
)
def test_what_a_loop_reads_may_come_from_a_loop(head: str, tmp_path: Path) -> None:
    # The adjoint of m is 1 in all rounds: a constant, which is there before v is.
    check(BEHIND_A_LOOP.format(head=head), tmp_path, np.array(3))
