"""Checks of a program's tangent against differences of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.runtime.transforms.checking import TOLERANCE, check_tangent
from tests.autodiff.kept_derivatives import kept_tangent

__all__ = ["check_program_tangent"]


def check_program_tangent(
    program: Program,
    inputs: Sequence[np.ndarray],
    wrt: Sequence[str],
    *,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> None:
    """Check ``tangent(program, wrt)`` at ``inputs`` along one random direction, in the reference interpreter."""
    derivative = kept_tangent(program, tuple(wrt))
    names = [tensor.name for tensor in program.inputs]
    check_tangent(
        lambda *arrays: interpret(program, arrays).outputs,
        lambda arrays, directions: interpret(derivative, [*arrays, *directions]).outputs,
        inputs,
        [names.index(name) for name in wrt],
        outputs=[k for k, name in enumerate(program.outputs) if is_floating(program.tensor(name).dtype)],
        tolerance=tolerance,
        seed=seed,
    )
