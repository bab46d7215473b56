"""Compiled derivatives against interpreted ones: first derivatives in single precision, second ones in double."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tcdsl.autodiff import adjoint
from tcdsl.ir.program import Program
from tcdsl.runtime.calling.execution import Executable
from tests.autodiff.hard_cases.cases import HardCase
from tests.autodiff.hard_cases.compositions import Point, interpreted, program_of
from tests.autodiff.hard_cases.rows import ROWS
from tests.autodiff.kept_derivatives import kept_adjoint, kept_tangent

rows = pytest.mark.parametrize("row", [row for row in ROWS if row.compiled], ids=str)


def compiled(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    typed = [np.asarray(array, tensor.dtype, order="C") for array, tensor in zip(arrays, program.inputs, strict=True)]
    return Executable(program).run(typed)


def agree(program: Program, arrays: Sequence[np.ndarray], tolerance: float) -> None:
    for one, other in zip(compiled(program, arrays), interpreted(program, arrays), strict=True):
        assert one.dtype == other.dtype
        scale = max(1.0, float(np.max(np.abs(other), initial=0)))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


@rows
def test_first_derivatives_in_single_precision(row: HardCase) -> None:
    arguments = row.typed("float32")
    point = Point.of(program_of(row.function, arguments), arguments)
    agree(adjoint(point.program, point.wrt), (*arguments, *point.dy), 1e-4)


@rows
def test_second_derivatives_in_double_precision(row: HardCase) -> None:
    arguments = row.typed("float64")
    point = Point.of(program_of(row.function, arguments), arguments)
    twice = kept_tangent(kept_adjoint(point.program, point.wrt), point.wrt)
    agree(twice, (*arguments, *point.dy, *point.v), 1e-10)
