"""Checks of derivatives against differences of values.

For an adjoint with seeds ``dy``, a direction ``v`` and the directional derivative ``Jv``, taken numerically in float64,
the dot-product identity ``<dy, Jv> = <J^T dy, v>`` must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcdsl.errors import TcdslError
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program

__all__ = [
    "DerivativeMismatchError",
    "check_adjoint",
    "check_program_gradient",
    "check_tangent",
    "numeric_directional",
]

Arrays = Sequence[np.ndarray]
Function = Callable[..., Sequence[Any]]

# With h = 3e-4 the fourth-order difference errs by about h^4 / 30 = 3e-16 times the fifth derivative, and rounding by
# 1e-16 / h = 3e-13 times the value: a relative tolerance of 1e-6 leaves room for both.
STEP = 3e-4
TOLERANCE = 1e-6


class DerivativeMismatchError(TcdslError, AssertionError):
    """A derivative that differs from the differences of values."""


def numeric_directional(
    function: Function, arguments: Arrays, directions: Sequence[np.ndarray | None]
) -> list[np.ndarray]:
    """The derivative of ``function(*arguments)`` along ``directions``: central differences of fourth order, in float64.

    ``directions`` has one array per argument, or ``None`` for one that stays (integers). The step is relative to 1.
    """

    def moved(step: float) -> list[np.ndarray]:
        shifted = [
            a if d is None else np.asarray(a, np.float64) + step * d for a, d in zip(arguments, directions, strict=True)
        ]
        return [np.asarray(value, np.float64) for value in function(*shifted)]

    near, far = (moved(STEP), moved(-STEP)), (moved(2 * STEP), moved(-2 * STEP))
    return [
        (8 * _difference(plus, minus) - _difference(plus2, minus2)) / (12 * STEP)
        for plus, minus, plus2, minus2 in zip(*near, *far, strict=True)
    ]


def _difference(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    # An infinity that stays is a difference of 0: the cells of a maximum that no point writes.
    with np.errstate(invalid="ignore"):
        return np.where(left == right, 0.0, left - right)


def _directions(arguments: Arrays, wrt: Sequence[int], rng: np.random.Generator) -> list[np.ndarray | None]:
    return [rng.standard_normal(np.shape(a)) if k in wrt else None for k, a in enumerate(arguments)]


def _agree(what: str, expected: Any, found: Any, tolerance: float) -> None:
    # Relative to the larger of the numbers and 1.
    expected, found = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    worst = float(np.max(np.abs(expected - found), initial=0.0))
    if not worst <= tolerance * scale:
        raise DerivativeMismatchError(
            f"{what}: {found} instead of {expected} (differs by {worst:.3g}, {tolerance:g} allowed)"
        )


def check_adjoint(
    function: Function,
    adjoint: Callable[[Arrays, Arrays], Sequence[Any]],
    arguments: Arrays,
    wrt: Sequence[int],
    *,
    outputs: Sequence[int] | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> None:
    """Check ``adjoint(arguments, seeds)``, one array per position in ``wrt``, against differences of ``function``.

    ``function(*arguments)`` returns a sequence of arrays; ``outputs`` are the positions of those that have seeds (all
    by default). Two random directions and seeds; raises `DerivativeMismatchError` if the two sides of the dot-product
    identity differ by more than ``tolerance`` times the larger of 1 and their size.
    """
    rng = np.random.default_rng(seed)
    values = [np.asarray(value) for value in function(*arguments)]
    chosen = tuple(range(len(values))) if outputs is None else tuple(outputs)
    for _ in range(2):
        directions = _directions(arguments, wrt, rng)
        seeds = [rng.standard_normal(values[k].shape) for k in chosen]
        pushed = numeric_directional(function, arguments, directions)
        pulled = [np.asarray(array, np.float64) for array in adjoint(arguments, seeds)]
        for k, position in enumerate(wrt):
            if pulled[k].shape != np.shape(arguments[position]):
                shape = np.shape(arguments[position])
                message = f"the derivative by argument {position} has shape {pulled[k].shape}, not {shape}"
                raise DerivativeMismatchError(message)
        left = sum(float(np.sum(given * pushed[k])) for given, k in zip(seeds, chosen, strict=True))
        right = sum(float(np.sum(p * np.asarray(directions[k]))) for p, k in zip(pulled, wrt, strict=True))
        _agree("dot-product identity <dy, J v> = <J^T dy, v>", left, right, tolerance)


def check_tangent(
    function: Function,
    tangent: Callable[[Arrays, Arrays], Sequence[Any]],
    arguments: Arrays,
    wrt: Sequence[int],
    *,
    outputs: Sequence[int] | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> None:
    """Check ``tangent(arguments, directions)``, one array per chosen output, against differences of ``function``."""
    rng = np.random.default_rng(seed)
    directions = _directions(arguments, wrt, rng)
    expected = numeric_directional(function, arguments, directions)
    chosen = tuple(range(len(expected))) if outputs is None else tuple(outputs)
    found = tangent(arguments, [d for d in directions if d is not None])
    for k, array in zip(chosen, found, strict=True):
        _agree(f"directional derivative of output {k}", expected[k], array, tolerance)


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
    from tcdsl.autodiff.adjoint import adjoint

    derivative = adjoint(program, wrt, keep_outputs=False)
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
