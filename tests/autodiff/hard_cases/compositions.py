"""The derivatives of a program in every composition of the two modes, and oracles for them.

For a program f, a cotangent dy and directions v, u, let L(x) = <dy, f(x)>. Then all of these are known from any one:

=====================  ==================================  ===================
composition            program                             gives
=====================  ==================================  ===================
reverse                ``adjoint(f)``                      dL/dx = J^T dy
forward                ``tangent(f)``                      J v
forward over reverse   ``tangent(adjoint(f))``             H v, H the Hessian of L
reverse over forward   ``adjoint(tangent(f))``             H v
reverse over reverse   ``adjoint(adjoint(f))``             H v, and by dy: J v
forward over forward   ``tangent(tangent(f))``             u^T H v, summed with dy
=====================  ==================================  ===================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tests.autodiff.kept_derivatives import kept_adjoint, kept_tangent

__all__ = ["Found", "Point", "compositions", "derivatives", "inner", "program_of"]

Arrays = Sequence[np.ndarray]
Run = Callable[[Program, Arrays], Sequence[np.ndarray]]


def program_of(function: Any, arguments: Arrays) -> Program:
    """The program of an op for these arguments."""
    if hasattr(function, "program"):
        return function.program(*arguments)
    from tcdsl.runtime.transforms.derivations import DerivationValues, kept_staging

    staging = kept_staging(function, DerivationValues(()))
    return staging.program_of(staging.signature.call(arguments, {}))


def interpreted(program: Program, arrays: Arrays) -> Sequence[np.ndarray]:
    """What the reference interpreter computes."""
    return interpret(program, list(arrays)).outputs


@dataclass(frozen=True, eq=False)
class Point:
    """Where a program is differentiated, and along what: ``v`` and ``u`` by input, ``dy`` by floating output."""

    program: Program
    arguments: tuple[np.ndarray, ...]
    wrt: tuple[str, ...]
    dy: tuple[np.ndarray, ...]
    v: tuple[np.ndarray, ...]
    u: tuple[np.ndarray, ...]

    @staticmethod
    def of(program: Program, arguments: Arrays, run: Run = interpreted, seed: int = 0) -> Point:
        """Random cotangents and directions of the right shapes and types."""
        rng = np.random.default_rng(seed)
        wrt = tuple(tensor.name for tensor in program.inputs if is_floating(tensor.dtype))
        values = run(program, arguments)
        outputs = [value for value, name in zip(values, program.outputs, strict=True) if _real(program, name)]
        inputs = [array for array, tensor in zip(arguments, program.inputs, strict=True) if is_floating(tensor.dtype)]

        def like(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
            return tuple(rng.uniform(-1, 1, array.shape).astype(array.dtype) for array in arrays)

        return Point(program, tuple(arguments), wrt, like(outputs), like(inputs), like(inputs))


def _real(program: Program, name: str) -> bool:
    return is_floating(program.tensor(name).dtype)


@dataclass(frozen=True, eq=False)
class Found:
    """First derivatives, H v by composition, J v by reverse over reverse, and u^T H v by forward over forward."""

    reverse: list[np.ndarray]
    forward: list[np.ndarray]
    products: dict[str, list[np.ndarray]]
    pushed: list[np.ndarray]
    curvature: float


def compositions(program: Program, wrt: tuple[str, ...]) -> dict[str, Program]:
    """The programs of the table above, by name; they serve arguments of every shape."""
    reverse, forward = kept_adjoint(program, wrt), kept_tangent(program, wrt)
    seeds = tuple(tensor.name for tensor in reverse.inputs[len(program.inputs) :])
    return {
        "reverse": reverse,
        "forward": forward,
        "forward over reverse": kept_tangent(reverse, wrt),
        "reverse over forward": kept_adjoint(forward, wrt),
        "reverse over reverse": kept_adjoint(reverse, (*wrt, *seeds)),
        "forward over forward": kept_tangent(forward, wrt),
    }


def derivatives(point: Point, programs: dict[str, Program], run: Run = interpreted) -> Found:
    """Run every composition."""
    x, dy, v, u = point.arguments, point.dy, point.v, point.u
    products = {
        "forward over reverse": (*x, *dy, *v),
        "reverse over forward": (*x, *v, *dy),
    }
    twice = list(run(programs["reverse over reverse"], (*x, *dy, *v)))
    return Found(
        list(run(programs["reverse"], (*x, *dy))),
        list(run(programs["forward"], (*x, *v))),
        {name: list(run(programs[name], given)) for name, given in products.items()}
        | {"reverse over reverse": twice[: len(v)]},
        twice[len(v) :],
        inner(run(programs["forward over forward"], (*x, *v, *u)), dy),
    )


def inner(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> float:
    """The inner product of two lists of arrays."""
    with np.errstate(invalid="ignore"):
        return float(sum(np.sum(a.astype(float) * b) for a, b in zip(left, right, strict=True)))
