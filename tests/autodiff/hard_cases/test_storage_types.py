"""Half precision is a type of storage: values are rounded when they are stored, and ties are ties of stored values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import op
from tcdsl.autodiff import adjoint, tangent
from tcdsl.ir.program import Program
from tcdsl.runtime.calling.execution import Executable
from tests.autodiff.hard_cases.compositions import interpreted
from tests.range_checks import verify_deeply


def compiled(program: Program, arrays: Any) -> Any:
    return Executable(program).run(list(arrays))


RUNS = pytest.mark.parametrize("run", [interpreted, compiled], ids=["interpreted", "compiled"])


@op
def sum_of_squares(x):
    h: float16[2]
    h[i] += x[i, k] * x[i, k]
    y[i] = float64(h[i]) * float64(h[i])
    return y


@RUNS
def test_sums_in_half_precision(run: Any) -> None:
    x = np.array([[1.0, 2.0], [0.5, -1.0]])
    program = sum_of_squares.program(x)
    reverse = adjoint(program, ["x"], keep_outputs=False)
    np.testing.assert_array_equal(run(reverse, (x, np.ones(2)))[0], 4 * x * [[5], [1.25]])
    forward = tangent(program, ["x"], keep_outputs=False)
    np.testing.assert_array_equal(run(forward, (x, np.ones((2, 2))))[0], [60, -2.5])
    curved = tangent(reverse, ["x"], keep_outputs=False)
    verify_deeply(curved)
    # h^2 by h = x . x: 4 h v + 8 x (x . v)
    np.testing.assert_array_equal(run(curved, (x, np.ones(2), np.ones((2, 2))))[0], [[44, 68], [3, 9]])


@op
def rounded_maximum(x):
    h: float16[()]
    h[()] >>= x[i]
    return h


def test_values_that_are_rounded_to_one_maximum_share() -> None:
    # Compiled only: the interpreter rounds nothing but its results, so there these are two values.
    x = np.array([1.0, 1.0001, 0.5])
    program = rounded_maximum.program(x)
    found = compiled(adjoint(program, ["x"], keep_outputs=False), (x, np.array(6, np.float16)))[0]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [3, 3, 0])


@op
def half_arguments(x, w):
    y[i] = x[i] * x[i] * w[i]
    y[i] *= x[0]
    return y


@RUNS
@pytest.mark.parametrize("other", ["float16", "float32", "float64"])
def test_arguments_in_half_precision(run: Any, other: str) -> None:
    x, w = np.array([2.0, 3.0], np.float16), np.array([1.0, 0.5], other)
    program = half_arguments.program(x, w)
    dtype = program.tensor(program.outputs[0]).dtype
    reverse = adjoint(program, ["x", "w"], keep_outputs=False)
    dx, dw = run(reverse, (x, w, np.ones(2, dtype)))
    assert (dx.dtype, dw.dtype) == ("float16", other)
    # y = [x0^3 w0, x1^2 w1 x0]
    np.testing.assert_array_equal(dx, [12 + 4.5, 6])
    np.testing.assert_array_equal(dw, [8, 18])
    curved = tangent(reverse, ["x", "w"], keep_outputs=False)
    verify_deeply(curved)
    ddx, ddw = run(curved, (x, w, np.ones(2, dtype), np.array([1, 0], np.float16), np.array([0, 1], other)))
    np.testing.assert_array_equal(ddx, [6 * 2 * 1 + 9, 3 + 6 * 2])
    np.testing.assert_array_equal(ddw, [12, 9])


@op
def narrowed_and_widened(x):
    y[i] = float64(float32(x[i]) * float32(x[i])) * float64(int64(x[i]))
    return y


@RUNS
def test_casts_between_precisions_and_integers(run: Any) -> None:
    x = np.array([2.5, -3.5])
    program = narrowed_and_widened.program(x)
    reverse = adjoint(program, ["x"], keep_outputs=False)
    np.testing.assert_array_equal(run(reverse, (x, np.ones(2)))[0], [2 * 2.5 * 2, 2 * 3.5 * 3])
    forward = tangent(program, ["x"], keep_outputs=False)
    np.testing.assert_array_equal(run(forward, (x, np.ones(2)))[0], [10, 21])
    curved = adjoint(forward, ["x"], keep_outputs=False)
    np.testing.assert_array_equal(run(curved, (x, np.ones(2), np.ones(2)))[0], [4, -6])
