"""`check_grads`: derivatives of a function against differences of its values.

For an adjoint with seeds ``dy``, a direction ``v`` and the directional derivative ``Jv``, taken numerically in float64,
the dot-product identity ``<dy, Jv> = <J^T dy, v>`` must hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, TcdslError
from tcdsl.frontend.surroundings.draws import KEYS
from tcdsl.ir.dtypes import is_floating
from tcdsl.runtime.calling.arguments import tensor_argument
from tcdsl.runtime.calling.structure import flatten
from tcdsl.runtime.transforms.pullbacks import vjp
from tcdsl.runtime.transforms.pushforwards import jvp
from tcdsl.tracebacks import user_facing

__all__ = ["DerivativeMismatchError", "check_adjoint", "check_grads", "check_tangent", "numeric_directional"]

Arrays = Sequence[np.ndarray]
CheckedFunction = Callable[..., Sequence[Any]]

# With h = 3e-4 the fourth-order difference errs by about h^4 / 30 = 3e-16 times the fifth derivative, and rounding by
# 1e-16 / h = 3e-13 times the value: a relative tolerance of 1e-6 leaves room for both. A function that bends within
# such a step, as many rounds of a loop make it, asks for a smaller one: of the last, rounding errs by 1e-9.
STEPS = tuple(3e-4 / 4**k for k in range(6))
TOLERANCE = 1e-6


class DerivativeMismatchError(TcdslError, AssertionError):
    """A derivative that differs from the differences of values."""


def numeric_directional(
    function: CheckedFunction, arguments: Arrays, directions: Sequence[np.ndarray | None], step: float = STEPS[0]
) -> list[np.ndarray]:
    """The derivative of ``function(*arguments)`` along ``directions``: central differences of fourth order, in float64.

    ``directions`` has one array per argument, or ``None`` for one that stays (integers). The step is relative to 1.
    """

    def moved(step: float) -> list[np.ndarray]:
        shifted = [
            a if d is None else np.asarray(a, np.float64) + step * d for a, d in zip(arguments, directions, strict=True)
        ]
        return [np.asarray(value, np.float64) for value in function(*shifted)]

    near, far = (moved(step), moved(-step)), (moved(2 * step), moved(-2 * step))
    return [
        (8 * _difference(plus, minus) - _difference(plus2, minus2)) / (12 * step)
        for plus, minus, plus2, minus2 in zip(*near, *far, strict=True)
    ]


def _difference(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    # An infinity that stays is a difference of 0: the cells of a maximum that no point writes.
    with np.errstate(invalid="ignore"):
        return np.where(left == right, 0.0, left - right)


def _directions(arguments: Arrays, wrt: Sequence[int], rng: np.random.Generator) -> list[np.ndarray | None]:
    return [rng.standard_normal(np.shape(a)) if k in wrt else None for k, a in enumerate(arguments)]


def _agree(what: str, estimate: Callable[[float], Any], found: Any, tolerance: float) -> None:
    """Compare ``found`` with what ``estimate`` makes of the differences for a step.

    If they differ, the step may be too long: the best is the one whose estimate the next shorter one changes least.
    """
    if _distance(estimate(STEPS[0]), found)[0] <= tolerance:
        return
    estimates = [np.asarray(estimate(step), np.float64) for step in STEPS]
    changes = [_distance(finer, coarser)[0] for coarser, finer in itertools.pairwise(estimates)]
    expected = estimates[1 + int(np.argmin(np.where(np.isnan(changes), np.inf, changes)))]
    relative, worst = _distance(expected, found)
    if not relative <= tolerance:
        found = np.asarray(found, np.float64)
        raise DerivativeMismatchError(
            f"{what}: {found} instead of {expected} (differs by {worst:.3g}, {tolerance:g} allowed)"
        )


def _distance(expected: Any, found: Any) -> tuple[float, float]:
    # Relative to the larger of the numbers expected and 1, and as it is.
    expected, found = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    worst = float(np.max(np.abs(expected - found), initial=0.0))
    return worst / scale, worst


def check_adjoint(
    function: CheckedFunction,
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
        pushed = cache(partial(numeric_directional, function, arguments, directions))
        pulled = [np.asarray(array, np.float64) for array in adjoint(arguments, seeds)]
        for k, position in enumerate(wrt):
            if pulled[k].shape != np.shape(arguments[position]):
                shape = np.shape(arguments[position])
                message = f"the derivative by argument {position} has shape {pulled[k].shape}, not {shape}"
                raise DerivativeMismatchError(message)

        def left(step: float, pushed: Any = pushed, seeds: Any = seeds) -> float:
            return sum(float(np.sum(given * pushed(step)[k])) for given, k in zip(seeds, chosen, strict=True))

        right = sum(float(np.sum(p * np.asarray(directions[k]))) for p, k in zip(pulled, wrt, strict=True))
        _agree("dot-product identity <dy, J v> = <J^T dy, v>", left, right, tolerance)


def check_tangent(
    function: CheckedFunction,
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
    expected = cache(partial(numeric_directional, function, arguments, directions))
    chosen = tuple(range(len(expected(STEPS[0])))) if outputs is None else tuple(outputs)
    found = tangent(arguments, [d for d in directions if d is not None])

    def cells(k: int, step: float) -> np.ndarray:
        return expected(step)[k]

    for k, array in zip(chosen, found, strict=True):
        _agree(f"directional derivative of output {k}", partial(cells, k), array, tolerance)


# Each order differentiates a larger program.
_HIGHEST_ORDER = 8


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
    checks the derivatives of the pullback too. Random numbers that ``f`` draws are the same in all these calls.
    """
    if not callable(f):
        raise ConfigurationError(f"f is a {type(f).__name__}: give a function, and its arguments as a tuple")
    if not isinstance(args, tuple | list):
        raise ConfigurationError(f"args is a {type(args).__name__}: write `check_grads(f, (x, w))`, or `(x,)` for one")
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= _HIGHEST_ORDER:
        raise ConfigurationError(f"order={order!r}: an integer from 1 to {_HIGHEST_ORDER}")
    if not modes or not set(modes) <= {"fwd", "rev"}:
        raise ConfigurationError(f"modes={tuple(modes)!r}: choose among 'fwd' and 'rev'")
    if eps is not None:
        raise ConfigurationError("eps cannot be chosen: differences are of fourth order, with steps of 3e-4 and less")
    f = getattr(f, "in_double", f)  # of a function whose types are declared
    with KEYS.held():
        _check_grads(f, args, order, modes, atol, rtol)


def _check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int, modes: Sequence[str], atol: float | None, rtol: float | None
) -> None:
    tolerance = max(t for t in (rtol, atol, 0.0) if t is not None) if (rtol or atol) else 1e-6
    arrays = [_double(position, value) for position, value in enumerate(args)]
    wrt = [k for k, given in enumerate(arrays) if _is_real(given)]

    def values(*given: Any) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in flatten(f(*given), _is_leaf)[0]]

    found = values(*arrays)
    chosen = [k for k, value in enumerate(found) if _is_real(value)]
    if "rev" in modes:
        check_adjoint(values, partial(_pulled, f), arrays, wrt, outputs=chosen, tolerance=tolerance)
    if "fwd" in modes:
        check_tangent(values, partial(_pushed, f, wrt), arrays, wrt, outputs=chosen, tolerance=tolerance)
    if order > 1:
        seeds = [np.random.default_rng(7).standard_normal(np.shape(found[k])) for k in chosen]
        count = len(arrays)

        def pullback(*given: Any) -> list[Any]:
            return _pulled(f, given[:count], given[count:])

        check_grads(pullback, (*arrays, *seeds), order - 1, rtol=tolerance)


def _pulled(f: Callable[..., Any], given: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
    outputs, pullback = vjp(f, *given)
    leaves, structure = flatten(outputs, _is_leaf)
    remaining = iter(seeds)
    cotangents = [next(remaining) if _is_real(leaf) else leaf for leaf in leaves]
    return [adjoint for adjoint in pullback(structure.build(cotangents)) if adjoint is not None]


def _pushed(f: Callable[..., Any], wrt: Sequence[int], given: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
    moved = dict(zip(wrt, directions, strict=True))
    _, tangents = jvp(f, tuple(given), tuple(moved.get(k) for k in range(len(given))))
    return [leaf for leaf in flatten(tangents, _is_leaf)[0] if leaf is not None]


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, tuple | list | dict)


def _is_real(leaf: Any) -> bool:
    return is_floating(str(leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype))


def _double(position: int, value: Any) -> Any:
    if value is None:
        return None  # an argument that is left out
    argument = tensor_argument("check_grads", f"argument {position}", position, value)
    if isinstance(value, int):
        return value  # a number of the call, which may be an extent
    return np.asarray(argument.array, np.float64) if is_floating(argument.dtype) else argument.array
