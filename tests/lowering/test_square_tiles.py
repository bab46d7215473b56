"""What is read across rows is read in tiles: the same results for sizes around theirs, on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.indices import b, c, i, j, k
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.primitives import where
from tests.lowering.cases import real
from tests.lowering.loop_interpreter import execute

Arrays = list[np.ndarray]
Case = tuple[Callable[..., Any], Callable[..., Any], Callable[[int, int], Arrays]]


@tc.op
def add(x: Any, z: Any) -> Any:
    y = tc.output()
    y[i, j] = x[j, i] + z[i, j]
    return y


@tc.op
def differences(x: Any) -> Any:
    y = tc.output()
    y[i, j] = x[j, i + 1] - x[j, i]
    return y


@tc.op
def symmetric(x: Any) -> Any:
    y = tc.output()
    y[i, j] = x[i, j] + x[j, i]
    return y


@tc.op
def rows_and_columns(x: Any, z: Any) -> Any:
    s = tc.output()
    s[j] += x[j, i] * z[i, j]
    return s


@tc.op
def everything(x: Any, z: Any) -> Any:
    t = tc.output()
    t[()] += x[j, i] * z[i, j]
    return t


@tc.op
def largest(x: Any, z: Any) -> Any:
    s = tc.output()
    s[j] = max(x[j, i] - z[i, j])
    return s


@tc.op
def rotated(x: Any) -> Any:
    y = tc.output()
    y[i, j, k] = x[k, i, j] + 1
    return y


@tc.op
def backwards(x: Any) -> Any:
    y = tc.output()
    y[i, j, k] = x[k, j, i] + 1
    return y


@tc.op
def products(x: Any, z: Any) -> Any:
    y = tc.output()
    y[i, j] += z[k, i] * x[j, k]
    return y


@tc.op
def in_batches(x: Any, z: Any) -> Any:
    y = tc.output()
    y[b, i, j] += z[b, k, i] * x[b, j, k]
    return y


@tc.op
def forces(x: Any, r: Any) -> Any:
    s = tc.output()
    s[c, j] += x[c, i] * (r[i, j] - r[j, i])
    return s


@tc.op
def guarded(x: Any, z: Any) -> Any:
    y = tc.output()
    y[i, j] = where(z[i, j] > 0, x[j, i], 0)
    return y


@tc.cd
def in_place(x: Any, z: Any) -> None:
    z[i, j] += x[j, i]


def both(n: int, m: int) -> Arrays:
    return [real(m, n), real(n, m)]


def square(n: int, m: int) -> Arrays:
    return [real(n, n)]


def box(n: int, m: int) -> Arrays:
    return [real(m, 3, n)]


TILED: dict[str, Case] = {
    "add": (add, lambda x, z: x.T + z, both),
    "integers": (add, lambda x, z: x.T + z, lambda n, m: [each.astype("int32") for each in both(n, m)]),
    "symmetric": (symmetric, lambda x: x + x.T, square),
    "rows and columns": (rows_and_columns, lambda x, z: (x.T * z).sum(0), both),
    "everything": (everything, lambda x, z: (x.T * z).sum(dtype="float32"), both),
    "rotated": (rotated, lambda x: x.transpose(1, 2, 0) + 1, box),
    "backwards": (backwards, lambda x: x.transpose(2, 1, 0) + 1, box),
}
SHARED: dict[str, Case] = {
    "products": (products, lambda x, z: z.T @ x.T, lambda n, m: [real(m, n), real(n, 3)]),
    "products of many rows": (products, lambda x, z: z.T @ x.T, lambda n, m: [real(5, n), real(n, m)]),
    "in batches": (
        in_batches,
        lambda x, z: z.transpose(0, 2, 1) @ x.transpose(0, 2, 1),
        lambda n, m: [real(2, m, n), real(2, n, 3)],
    ),
    "forces": (forces, lambda x, r: x @ (r - r.T), lambda n, m: [real(3, n), real(n, n)]),
    "forces in double precision": (
        forces,
        lambda x, r: x @ (r - r.T),
        lambda n, m: [real(m, n, dtype="float64"), real(n, n, dtype="float64")],
    ),
}
NOT_EMPTY: dict[str, Case] = {
    "differences": (differences, lambda x: np.diff(x, axis=1).T, lambda n, m: [real(m, n)]),
    "largest": (largest, lambda x, z: (x.T - z).max(0), both),
}


# Few points are done without tiles, and so are narrow parts at the ends of rows.
SIZES = ((0, 2), (1, 0), (1, 1), (2, 65), (64, 63), (65, 1), (513, 65), (192, 191), (79, 431), (207, 208))


def loops(function: Callable[..., Any], arrays: Arrays) -> str:
    # As they are for few rows.
    with tc.config(optimize="-panels"):
        return str(function.explain("loops", *arrays))  # type: ignore[attr-defined]


def tiles(function: Callable[..., Any], arrays: Arrays) -> int:
    return loops(function, arrays).count("local tile")


@pytest.mark.parametrize("name", [*TILED, *SHARED, *NOT_EMPTY])
def test_sizes_around_tiles(name: str) -> None:
    function, numpy, inputs = {**TILED, **SHARED, **NOT_EMPTY}[name]
    for n, m in SIZES:
        if name not in NOT_EMPTY or min(n, m):
            arrays = inputs(n, m)
            found, expected = function(*arrays), numpy(*arrays)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert tiles(function, inputs(65, 65)) == 1


def test_in_place() -> None:
    x, z = both(200, 210)
    expected = z + x.T
    assert tiles(in_place, [x, z]) == 1
    in_place(x, z)
    np.testing.assert_array_equal(z, expected)


def test_what_is_not_tiled() -> None:
    # A guarded read may be out of range where it is not made; narrow arrays are near.
    x, z = both(65, 64)
    assert tiles(guarded, [x, z]) == 0
    np.testing.assert_array_equal(guarded(x, z), np.where(z > 0, x.T, 0))
    triangle = "y[i, j] += x[j, i]  for [i, j]: 0 <= i < N and 0 <= j < M and j < i"
    narrow = "y[i, j] = x[j, i]  for [i, j]: 0 <= i < N and 0 <= j < 8"
    for statement in (triangle, narrow):
        text = f"program p\ninput x: float32[M, N]\ntensor y: float32[N, M]\n{statement}\nreturn y\n"
        assert "LocalBuffer" not in repr(lower(parse_program(text)).nests)


@pytest.mark.parametrize("statement", ["y[i, k, j] = x[j, k, i]", "y[j, k, i] += x[j, k, i] * u[i, k, j]"])
def test_nests_read_and_write_in_range(statement: str) -> None:
    text = f"""program p
input x: float32[M, K, N]
input u: float32[N, K, M]
tensor y: float32[{"N, K, M" if statement.startswith("y[i") else "M, K, N"}]
{statement}  for [i, k, j]: 0 <= i < N and 0 <= k < K and 0 <= j < M
return y
"""
    program = parse_program(text)
    kernel = lower(program)
    assert "LocalBuffer" in repr(kernel.nests)
    for n, p, m in ((0, 1, 1), (17, 2, 65), (80, 1, 79)):
        arrays = [real(m, p, n), real(n, p, m)]
        for order in (None, lambda steps: list(reversed(steps))):
            (found,) = execute(kernel, arrays, order).outputs
            np.testing.assert_array_equal(found, interpret(program, arrays).outputs[0])


def test_the_same_bits_on_any_number_of_threads() -> None:
    arrays = [np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in ((300, 500), (500, 300))]
    for function in (rows_and_columns, everything, products):
        with tc.config(threads=1):
            alone = function(*arrays)
        with tc.config(threads=2):
            np.testing.assert_array_equal(function(*arrays), alone)
