"""Second derivatives of random functions with loops, in all orders of the modes, against differences of the first."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.autodiff.loop_derivatives.random_loops import source
from tests.long_variants import few

STEP = 1e-5
X, Y = np.array([0.8, 0.3]), np.array([0.7, 0.4])
POSITIONS = np.array([1, 0])
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


ORDERS = (
    "forward over reverse",
    "reverse over reverse",
    "reverse over forward",
    "tangent of the gradient",
    "hessian",
)


def check(text: str, folder: Path, number: Any, orders: Sequence[str] = ORDERS[:2]) -> None:
    """Compare the Hessian times `ALONG` in some orders of the modes."""
    module = imported(
        f"""{text}

@tc.op
def slope(x, y, q, p, u, w):
    d_x, d_y = tc.grad(f, (0, 1))(x, y, q, p)
    return sum(d_x[i] * u[i]) + sum(d_y[i] * w[i])

@tc.op
def pushed(x, y, q, p, u, w):
    return tc.jvp(lambda x, y: f(x, y, q, p), (x, y), (u, w))[1]
""",
        folder,
    )
    given, along = (number, POSITIONS), (number, POSITIONS, *ALONG)
    first, (u, w) = tc.grad(module.f, (0, 1)), ALONG
    more, less = (first(X + e * u, Y + e * w, *given) for e in (STEP, -STEP))
    expected = [(a - b) / (2 * STEP) for a, b in zip(more, less, strict=True)]

    def function(x: Any, y: Any) -> Any:
        return module.f(x, y, *given)

    def product() -> Any:
        rows = tc.hessian(function, (0, 1))(X, Y)
        return [row[0] @ u + row[1] @ w for row in rows]

    ways = {
        "forward over reverse": lambda: tc.hvp(function, (X, Y), (u, w)),
        "reverse over reverse": lambda: tc.grad(module.slope, (0, 1))(X, Y, *along),
        "reverse over forward": lambda: tc.grad(module.pushed, (0, 1))(X, Y, *along),
        "tangent of the gradient": lambda: tc.jvp(lambda x, y: first(x, y, *given), (X, Y), (u, w))[1],
        "hessian": product,
    }
    scale = max(1.0, *(float(np.abs(each).max()) for each in expected))
    for order in orders:
        for one, other in zip(ways[order](), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6 * scale, err_msg=f"{order}\n{text}")


@pytest.mark.parametrize("seed", few(range(5), {"1", "2"}))
def test_second_derivatives(seed: int, tmp_path: Path) -> None:
    check(source(seed), tmp_path, np.array(3), ORDERS[seed : seed + 1])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5, 300))
def test_more_second_derivatives(seed: int, tmp_path: Path) -> None:
    check(source(seed), tmp_path, np.array(3) if seed % 2 else 3, ORDERS)


BEHIND_A_LOOP = """import numpy as np
import tcdsl as tc

@tc.op
def f(x, y, q, p):
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
