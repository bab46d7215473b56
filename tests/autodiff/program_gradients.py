"""Adjoints of programs against differences of what the programs compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.runtime.transforms.checking import TOLERANCE, Arrays, check_adjoint
from tests.autodiff.hard_cases.compositions import program_of
from tests.autodiff.kept_derivatives import kept_adjoint

__all__ = ["check_interpreted_gradient", "check_program_gradient"]


def check_interpreted_gradient(function: Callable[..., Any], arguments: Arrays) -> None:
    """What ``tc.check_grads(function, arguments)`` does, by the reference interpreter: nothing is compiled."""
    arrays = [np.asarray(each, np.float64) if np.asarray(each).dtype.kind == "f" else each for each in arguments]
    program = program_of(function, arrays)
    check_program_gradient(program, arrays, [each.name for each in program.inputs if is_floating(each.dtype)])


def _interpreted(program: Program, arrays: Arrays) -> Sequence[np.ndarray]:
    return interpret(program, arrays).outputs


def check_program_gradient(
    program: Program,
    inputs: Arrays,
    wrt: Sequence[str],
    run: Callable[[Program, Arrays], Sequence[Any]] = _interpreted,
    *,
    order: int = 1,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> None:
    """Check ``adjoint(program, wrt)`` at ``inputs``; with ``order=2`` the adjoint of the adjoint too, and so on.

    ``run(program, arrays)`` executes a program and returns its outputs; by default the reference interpreter does, in
    float64.
    """
    derivative = kept_adjoint(program, tuple(wrt))
    positions, floating = _positions(program, wrt), _floating_outputs(program)

    def function(*arrays: np.ndarray) -> Sequence[Any]:
        return run(program, arrays)

    def pulled(arrays: Arrays, seeds: Arrays) -> Sequence[Any]:
        return run(derivative, [*arrays, *seeds])

    check_adjoint(function, pulled, inputs, positions, outputs=floating, tolerance=tolerance, seed=seed)
    if order > 1:
        rng = np.random.default_rng(seed + 1)
        values = run(program, inputs)
        seeds = [rng.standard_normal(np.shape(values[k])) for k in floating]
        deeper = [*wrt, *(tensor.name for tensor in derivative.inputs[len(program.inputs) :])]
        arguments = [*inputs, *seeds]
        check_program_gradient(derivative, arguments, deeper, run, order=order - 1, tolerance=tolerance, seed=seed + 2)


def _positions(program: Program, wrt: Sequence[str]) -> list[int]:
    names = [tensor.name for tensor in program.inputs]
    return [names.index(name) for name in wrt]


def _floating_outputs(program: Program) -> list[int]:
    return [k for k, name in enumerate(program.outputs) if is_floating(program.tensor(name).dtype)]
