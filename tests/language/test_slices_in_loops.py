"""Slices whose ends are numbers of rounds: how they meet other arrays, products of them, and where they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.outcomes import refusal
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(11)
X, V, P, D = (GENERATOR.random(shape) for shape in (4, 8, (3, 4), (5, 4)))


def as_python_runs_it(body: str, parameters: str, arguments: tuple[Any, ...]) -> Any:
    names: dict[str, Any] = {"np": np, "output": lambda *extents: np.zeros(extents)}
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    exec(f"def f({parameters}):\n{lines}", names)
    return names["f"](*(np.array(each) if isinstance(each, np.ndarray) else each for each in arguments))


ONE_CELL = [
    ("s = x * 0\nfor t in range(n):\n    s = s + x[t:t + 1]\nreturn s", "x, n", (X, 3)),
    ("y = p * 0\nfor t in range(n):\n    y = y + x * p[:, t:t + 1]\nreturn y", "p, x, n", (P, X, 4)),
    ("y = p * 0\nfor t in range(x.shape[0]):\n    y = y + p[:, t:t + 1] * x\nreturn y", "p, x", (P, X)),
    ("y = p * 0\nfor t in range(1, len(x)):\n    y += x[:-1].sum() * p[:, t - 1:t]\nreturn y", "p, x", (P, X)),
    ("for i in range(y.shape[0] // 2):\n    y[2*i:2*i + 2] = v[2*i:2*i + 1]\nreturn y", "y, v", (V * 0, V)),
    ("for i in range(len(y)):\n    y[i, :] = v[i:i + 1]\nreturn y", "y, v", (D * 0, V)),
    ("y = d * 1\nfor t in range(n):\n    y = y - d[:, t:t + 1] * d[t:t + 1, :]\nreturn y", "d, n", (D, 3)),
    ("for t in range(n):\n    for k in range(t):\n        x = x + x[t:t + 1] * x[k:k + 1]\nreturn x", "x, n", (X, 4)),
]  # fmt: skip


NO_CELL = [
    ("for t in range(n):\n    x[t:t] = x[t:t + 1]\nreturn x", "x, n", (X, 3)),
    ("for t in range(n):\n    d[:0] -= d[:0, t:t + 1] * d[t:t + 1, :]\nreturn d", "d, n", (D, 3)),
]


@pytest.mark.parametrize(("body", "parameters", "arguments"), NO_CELL)
def test_a_slice_of_one_cell_meets_one_without_any(body: str, parameters: str, arguments: tuple[Any, ...]) -> None:
    check(program(body, parameters), arguments, as_python_runs_it(body, parameters, arguments))


@pytest.mark.parametrize(("body", "parameters", "arguments"), ONE_CELL)
def test_a_slice_of_one_cell_stretches(body: str, parameters: str, arguments: tuple[Any, ...]) -> None:
    f = program(body, parameters)
    check(f, arguments, as_python_runs_it(body, parameters, arguments))
    tc.check_grads(f, arguments)


def test_a_slice_beyond_the_end_does_not() -> None:
    body, parameters, (x, _) = ONE_CELL[0]
    message = refusal(tc.ShapeError, program(body, parameters), x, 5)
    assert "the arrays do not broadcast: extents x_0 = 4 and" in message
    assert "at t = 4" in message


@pytest.mark.parametrize("value", ["p[:t + 1]", "p[t:t + 2]"])
def test_axes_that_a_part_lacks_have_one_cell_in_every_round(value: str) -> None:
    f = program(f"y = p * 0\nfor t in range(len(p)):\n    y[t] = {value}\nreturn y", "p")
    assert "and 1 meet on one axis of what is stored into" in refusal(tc.ShapeError, f, P)
    f = program("y = p * 0\nfor t in range(len(p)):\n    y[t] = p[t:t + 1]\nreturn y", "p")
    check(f, (P,), P)


PRODUCTS = [
    "c[i, i:M] = d[:, i] @ d[:, i:M]",
    "c[i, i:] = d[:, i:].T @ d[:, i] / (i + 1.0)",
    "c[:i, :i] += d[:, :i].T @ d[:, :i]",
    "c[i:M, i] = c[i, i:M] = d[:, i] @ d[:, i:M] / (M - 1.0)",
    "c[i:, i] = c[i, i:] = (d[:, i:] * d[:, i:i + 1]).max(axis=0)",
]


@pytest.mark.parametrize("statement", PRODUCTS)
@pytest.mark.parametrize("rows", [5, 700])
def test_products_of_slices_that_become_shorter(statement: str, rows: int) -> None:
    body = f"M = d.shape[1]\nc = np.zeros((M, M))\nfor i in range(M):\n    {statement}\nreturn c"
    data = GENERATOR.random((rows, 4))
    check(program(body, "d"), (data,), as_python_runs_it(body, "d", (data,)))


CHAINED = [
    ("y = x * 1\ny[1:] = y[:3] = x[1:] * 2\nreturn y", "x", (X,)),
    ("y = x * 1\nz = x * 2\ny[0] = z[1] = k = y[2] + z[3]\nreturn y, z, k", "x", (X,)),
    ("y = x * 0\nz = x * 0\nfor t in range(len(x)):\n    y[t] = z[x.shape[0] - 1 - t] = x[t]\nreturn y, z", "x", (X,)),
    ("y = x * 0\nheld = {}\ny[0] = held['a'] = x[1]\nreturn y, held['a']", "x", (X,)),
    ("y = x * 0\ny[...] = z = 3.0\nreturn y + z", "x", (X,)),
]


@pytest.mark.parametrize(("body", "parameters", "arguments"), CHAINED)
def test_several_targets_take_one_value(body: str, parameters: str, arguments: tuple[Any, ...]) -> None:
    check(program(body, parameters), arguments, as_python_runs_it(body, parameters, arguments))


def test_several_index_lists_and_memory_take_one_value() -> None:
    check(program("y[i] = z[i] = x[i] * 2\nreturn y, z", "x"), (X,), (2 * X, 2 * X))
    body = "for i in range(M):\n    c[i:M, i] = c[i, i:M] = d[:, i] @ d[:, i:M]\n    c[0, 0] = d[0, 0] = d[1, 1] * 2.0"
    found, wanted = (D.copy(), np.zeros((4, 4))), (D.copy(), np.zeros((4, 4)))
    program(f"M = d.shape[1]\n{body}", "d, c", decorator="cd")(*found)
    names: dict[str, Any] = {"d": wanted[0], "c": wanted[1], "M": 4}
    exec(body, names)
    np.testing.assert_allclose(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1])
