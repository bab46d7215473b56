"""Products of arrays by NumPy's names: each is a contraction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.logics.logic_staging import record_einsum
from tcdsl.frontend.numpy_functions.recording import Cell, array_of, computed, filled, tensor_of
from tcdsl.frontend.numpy_functions.shapes import axes_of, one_axis
from tcdsl.frontend.staging.declarations import given_extent
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.ir.build import apply, integer

__all__ = ["PRODUCTS", "PRODUCT_UFUNCS"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _einsum(subscripts: Any, *operands: Any, optimize: Any = False) -> Any:
    """Letters alone, without `...`."""
    session = session_of("np.einsum")
    if not isinstance(subscripts, str) or "." in subscripts:
        hint = "write its letters, or a statement in index notation: `C[i, j] += A[i, k] * B[k, j]`"
        raise session.fault(DslSyntaxError, f"np.einsum of {subscripts!r}", hint)
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    if not arrow:
        output = "".join(each for each in sorted(set(inputs) - {","}) if inputs.count(each) == 1)
    parts = inputs.split(",")
    if len(parts) != len(operands):
        fact = f"np.einsum of {len(operands)} arrays by `{subscripts}`, which names {len(parts)}"
        raise session.fault(ShapeError, fact, "name each array's axes, with commas between the arrays")
    return _contracted(parts, output, operands)


def _contracted(parts: Sequence[str], output: str, operands: Sequence[Any]) -> Any:
    # Pair by pair: what a letter stands for alone, and in no other array, is summed with its own pair.
    parts, held = list(parts), list(operands)
    while len(held) > 2:
        kept = "".join(dict.fromkeys(each for each in parts[0] + parts[1] if each in output + "".join(parts[2:])))
        held[:2] = [record_einsum(f"{parts[0]};{parts[1]}=>{kept}", tuple(held[:2]), "add", "mul")]
        parts[:2] = [kept]
    return record_einsum(f"{';'.join(parts)}=>{output}", tuple(held), "add", "mul" if len(held) == 2 else "id")


def _inner(a: Any, b: Any) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    left, right = _LETTERS[: a.ndim - 1], _LETTERS[a.ndim - 1 : a.ndim + b.ndim - 2]
    return _contracted([f"{left}z", f"{right}z"], left + right, (a, b))


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    session = session_of("np.tensordot")
    if isinstance(axes, int):
        of_a, of_b = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    else:
        of_a, of_b = (axes_of(each.ndim, chosen) for each, chosen in zip((a, b), axes, strict=True))
    if len(of_a) != len(of_b):
        fact = f"np.tensordot over {len(of_a)} axes of the first array and {len(of_b)} of the second"
        raise session.fault(ShapeError, fact, "name as many axes of both")
    left = list(_LETTERS[: a.ndim])
    right = list(_LETTERS[a.ndim : a.ndim + b.ndim])
    for one, other in zip(of_a, of_b, strict=True):
        right[other] = left[one]
    output = [each for k, each in enumerate(left) if k not in of_a]
    output += [each for k, each in enumerate(right) if k not in of_b]
    return _contracted(["".join(left), "".join(right)], "".join(output), (a, b))


def _vecdot(x1: Any, x2: Any) -> Any:
    return np.sum(x1 * x2, axis=-1)


def _vdot(a: Any, b: Any) -> Any:
    return np.sum(np.ravel(a) * np.ravel(b))


def _dot(a: Any, b: Any) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return np.multiply(*(np.asarray(each)[()] if isinstance(each, int | float) else each for each in (a, b)))
    return a @ b if np.ndim(b) <= 2 else _tensordot(a, b, ((-1,), (-2,)))


def _outer(a: Any, b: Any) -> Any:
    return (a if a.ndim == 1 else np.ravel(a))[:, None] * (b if b.ndim == 1 else np.ravel(b))


def _kron(a: Any, b: Any) -> Any:
    rank = max(a.ndim, b.ndim)
    a, b = (each[(None,) * (rank - each.ndim)] if each.ndim < rank else each for each in (a, b))
    every = slice(None)
    apart = a[(every, None) * rank] * b[(None, every) * rank]
    return np.reshape(apart, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


def _cross(a: Any, b: Any, axis: Any = -1) -> Any:
    """Of vectors with three cells."""

    def part(array: Any, k: int) -> Any:
        along = one_axis(array, axis)
        return array[(*(slice(None),) * along, k)]

    for array in (a, b):
        along = one_axis(array, axis)
        fact, session = "np.cross of vectors that have not three cells", session_of("np.cross")
        extent = tensor_of(session, array, "v").extents[along]
        session.builder.require_equal(extent, integer(3), fact, session.location())
    pairs = ((1, 2), (2, 0), (0, 1))
    return np.stack([part(a, i) * part(b, j) - part(a, j) * part(b, i) for i, j in pairs], axis)


def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    session = session_of("np.convolve")
    if mode not in ("full", "same", "valid"):
        raise session.fault(DslSyntaxError, f"np.convolve in the mode {mode!r}", "use full, same or valid")
    one, other = tensor_of(session, a, "a"), tensor_of(session, v, "v")
    if one.rank != 1 or other.rank != 1:
        fact = f"np.convolve of arrays of rank {one.rank} and {other.rank}"
        raise session.fault(ShapeError, fact, "write a statement: `y[i, j] += x[i + k, j + l] * w[k, l]`")
    n = one.extents[0]
    full = given_extent(a.shape[0] + v.shape[0] - 1, session.location())

    def cell(place: Any, term: Any) -> Cell:
        before = apply("sub", place, term)
        product = apply_primitive("mul", (one.cell([before]), other.cell([term])))
        return Cell(product, [place], (apply("ge", before, integer(0)), apply("lt", before, n)))

    made = computed("convolved", [full], 2, cell, accumulate="add")
    if mode == "full":
        return made
    long, short = np.maximum(a.shape[0], v.shape[0]), np.minimum(a.shape[0], v.shape[0])
    start = short - 1 if mode == "valid" else (short - 1) // 2
    return made[start : start + (long - short + 1 if mode == "valid" else long)]


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    return _convolve(a, np.flip(v), mode)


def _matrix_power(a: Any, n: Any) -> Any:
    """By a whole number that is known, and not below 0."""
    session = session_of("np.linalg.matrix_power")
    if not isinstance(n, int | np.integer) or n < 0:
        hint = "give a whole number that is not below 0, or multiply in a loop"
        raise session.fault(DslSyntaxError, f"np.linalg.matrix_power by {n!r}", hint)
    rows, columns = tensor_of(session, a, "a").extents[-2:]
    fact = f"np.linalg.matrix_power of a matrix of {valued(rows)} rows and {valued(columns)} columns"
    session.builder.require_equal(rows, columns, fact, session.location())
    found, power, left = None, a, int(n)
    while left:
        if left % 2:
            found = power if found is None else found @ power
        left //= 2
        power = power @ power if left else power
    if found is not None:
        return found
    return filled(np.full, a.shape, filled(np.eye, a.shape[-1], dtype=str(a.dtype)), dtype=str(a.dtype))


def _product_of(arrays: Sequence[Any]) -> Any:
    # Several products in one: the fewest operations at the sizes of the call decide the order.
    found = array_of(arrays[0])
    for each in map(array_of, arrays[1:]):
        found = found @ each
    return found


def _diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


def _trace_of(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return np.sum(_diagonal(x, offset=offset), axis=-1, dtype=dtype)


PRODUCTS: Mapping[Any, Callable[..., Any]] = {
    np.einsum: _einsum,
    np.dot: _dot,
    np.outer: _outer,
    np.inner: _inner,
    np.vdot: _vdot,
    np.tensordot: _tensordot,
    np.kron: _kron,
    np.cross: _cross,
    np.trace: _trace,
    np.convolve: _convolve,
    np.correlate: _correlate,
    np.linalg.cross: lambda x1, x2, /, *, axis=-1: _cross(x1, x2, axis),
    np.linalg.diagonal: _diagonal,
    np.linalg.matmul: lambda x1, x2, /: x1 @ x2,
    np.linalg.outer: _outer,
    np.linalg.tensordot: lambda x1, x2, /, *, axes=2: _tensordot(x1, x2, axes),
    np.linalg.trace: _trace_of,
    np.linalg.vecdot: lambda x1, x2, /, *, axis=-1: np.sum(x1 * x2, axis=axis),
    np.linalg.matrix_power: _matrix_power,
    np.linalg.multi_dot: _product_of,
}
PRODUCT_UFUNCS: Mapping[Any, Callable[..., Any]] = {np.vecdot: _vecdot} if hasattr(np, "vecdot") else {}
