"""`check_grads`: derivatives of a function against differences of its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tcdsl.autodiff.checks import check_adjoint, check_tangent
from tcdsl.errors import ConfigurationError
from tcdsl.ir.dtypes import is_floating
from tcdsl.runtime.calling.arguments import tensor_argument
from tcdsl.runtime.calling.structure import flatten
from tcdsl.runtime.transforms.derivations import Values, kept_staging
from tcdsl.runtime.transforms.pullbacks import vjp
from tcdsl.runtime.transforms.pushforwards import jvp
from tcdsl.tracebacks import user_facing

__all__ = ["check_grads"]


@user_facing
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = ("rev",),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """``check_grads(f, (x, w))`` raises if the derivatives of ``f`` at these arguments are wrong.

    Floating arguments are converted to float64, integer and bool ones stay. In mode ``rev``, random directions and
    cotangents must satisfy ``<dy, J v> = <J^T dy, v>``, with ``J v`` by central differences; in mode ``fwd``, `jvp`
    must agree with the differences. ``rtol`` (1e-6) is relative to the larger of 1 and the two sides. ``order=2``
    checks the derivatives of the pullback too.
    """
    if not modes or not set(modes) <= {"fwd", "rev"}:
        raise ConfigurationError(f"modes={tuple(modes)!r}: choose among 'fwd' and 'rev'")
    if eps is not None:
        raise ConfigurationError("eps cannot be chosen: the differences are of fourth order with a step of 3e-4")
    tolerance = max(t for t in (rtol, atol, 0.0) if t is not None) if (rtol or atol) else 1e-6
    arrays = [_double(position, value) for position, value in enumerate(args)]
    wrt = [k for k, array in enumerate(arrays) if is_floating(str(array.dtype))]

    def values(*given: Any) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in flatten(f(*given), _is_leaf)[0]]

    found = values(*arrays)
    chosen = [k for k, value in enumerate(found) if is_floating(str(value.dtype))]
    if "rev" in modes:
        check_adjoint(values, partial(_pulled, f), arrays, wrt, outputs=chosen, tolerance=tolerance)
    if "fwd" in modes:
        check_tangent(values, partial(_pushed, f, wrt), arrays, wrt, outputs=chosen, tolerance=tolerance)
    if order > 1:
        _check_pullback(f, arrays, wrt, [found[k] for k in chosen], order, tolerance)


def _pulled(f: Callable[..., Any], given: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
    outputs, pullback = vjp(f, *given)
    leaves, structure = flatten(outputs, _is_leaf)
    remaining = iter(seeds)
    cotangents = [next(remaining) if is_floating(str(np.asarray(leaf).dtype)) else leaf for leaf in leaves]
    return [adjoint for adjoint in pullback(structure.build(cotangents)) if adjoint is not None]


def _pushed(f: Callable[..., Any], wrt: Sequence[int], given: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
    moved = dict(zip(wrt, directions, strict=True))
    _, tangents = jvp(f, tuple(given), tuple(moved.get(k) for k in range(len(given))))
    return [leaf for leaf in flatten(tangents, _is_leaf)[0] if leaf is not None]


def _check_pullback(
    f: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    wrt: Sequence[int],
    found: Sequence[np.ndarray],
    order: int,
    tolerance: float,
) -> None:
    from tcdsl.autodiff import adjoint
    from tcdsl.autodiff.checks import check_program_gradient
    from tcdsl.runtime.calling.execution import Executable

    staging = kept_staging(f, Values(()))
    entry, inputs = staging.entry(staging.signature.call(arrays, {}))
    primal = entry.executable.program
    program = adjoint(primal, [primal.inputs[k].name for k in wrt], keep_outputs=False)
    seeds = [np.random.default_rng(7).standard_normal(np.shape(value)) for value in found]
    given = [*inputs, *seeds]
    names = [tensor.name for tensor in program.inputs]
    floating = [names[k] for k in (*wrt, *range(len(inputs), len(given)))]
    executables: dict[Any, Executable] = {}

    def run(which: Any, values: Sequence[Any]) -> list[np.ndarray]:
        executable = executables.setdefault(which, Executable(which))
        # Not np.ascontiguousarray: it gives scalars an axis.
        typed = [np.asarray(value, program_type(which, k), order="C") for k, value in enumerate(values)]
        return executable.run(typed)

    def program_type(which: Any, position: int) -> Any:
        return np.dtype(which.inputs[position].dtype)

    check_program_gradient(program, given, floating, run, order=order - 1, tolerance=tolerance)


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, tuple | list | dict)


def _double(position: int, value: Any) -> np.ndarray:
    argument = tensor_argument("check_grads", f"argument {position}", position, value)
    return np.asarray(argument.array, np.float64) if is_floating(argument.dtype) else argument.array
