"""Values of expressions at many points at once, for what is counted without being run.

As in the reference interpreter, floats are float64 and evaluation is lazy: a branch is evaluated at the points that
take it, a local definition where it is needed. Only what a count depends on is ever evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tcdsl.errors import DataIndexError, Diagnostic
from tcdsl.ir.boundaries import moved
from tcdsl.ir.exact import INDEX_ARITHMETIC
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    Reduction,
    SizeValue,
)
from tcdsl.ir.interpreter.expression_evaluation import working_dtype
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["Array", "Definitions", "LocalDefinition", "PointValues", "elementwise"]

Array = np.ndarray[Any, np.dtype[Any]]

_POSITIONS = {"sub": np.subtract, "mul": np.multiply, "mod": np.mod, "min": np.minimum, "max": np.maximum}


@dataclass(slots=True)
class LocalDefinition:
    """A local definition: its value, the definitions that it may use, and its values at the points known so far."""

    value: Expr
    around: Definitions
    values: Array | None = None
    known: Array | None = field(default=None)


Definitions = Mapping[str, LocalDefinition]


class PointValues:
    """``PointValues({"i": array([0, 1, 2])}, 3, sizes, tensor).of(expr, at, {})``: the value at the points numbered
    ``at``.

    ``coordinates`` gives the value of each index variable, and of each scalar that is no local definition, at each of
    ``count`` points; ``tensor`` the array of a name.
    Raises `DataIndexError` for data indices out of range.
    """

    def __init__(
        self, coordinates: Mapping[str, Array], count: int, sizes: Mapping[str, int], tensor: Callable[[str], Array]
    ) -> None:
        self.coordinates = coordinates
        self.count = count
        self.sizes = sizes
        self.tensor = tensor

    def of(self, expr: Expr, at: Array, local: Definitions) -> Array:
        """One value per number in ``at``."""
        match expr:
            case Constant(value=value, dtype=dtype):
                # Rounded to its own type first, as compiled code has it.
                if working_dtype(dtype) == "object":
                    return np.full(len(at), value, "object")
                return np.full(len(at), np.dtype(dtype).type(value)).astype(working_dtype(dtype))
            case SizeValue(name=name):
                return np.full(len(at), self.sizes[name], np.int64)
            case IndexValue(name=name):
                return self.coordinates[name][at]
            case Local(name=name):
                definition = local.get(name)
                return self.coordinates[name][at] if definition is None else self._local(definition, at, expr.dtype)
            case Let(name=name, value=value, body=body):
                return self.of(body, at, {**local, name: LocalDefinition(value, local)})
            case Cast(operand=operand, dtype=dtype):
                return self.of(operand, at, local).astype(working_dtype(dtype))
            case Read():
                return self._read(expr, at, local)
            case Apply():
                return self._applied(expr, at, local)
            case Reduction():
                raise TypeError("reductions stand in sketches only")

    def _local(self, definition: LocalDefinition, at: Array, dtype: str) -> Array:
        if definition.values is None or definition.known is None:
            definition.values = np.zeros(self.count, working_dtype(dtype))
            definition.known = np.zeros(self.count, bool)
        missing = at[~definition.known[at]]
        if len(missing):
            definition.values[missing] = self.of(definition.value, missing, definition.around)
            definition.known[missing] = True
        return definition.values[at]

    def _applied(self, expr: Apply, at: Array, local: Definitions) -> Array:
        # Along the first arguments in a loop, because sums of hundreds of terms are deep trees.
        spine = [expr]
        while isinstance(inner := spine[-1].arguments[0], Apply):
            spine.append(inner)
        first = self.of(inner, at, local)
        for node in reversed(spine):
            first = self._combined(node, first, at, local)
        return first

    def _combined(self, expr: Apply, first: Array, at: Array, local: Definitions) -> Array:
        rest = expr.arguments[1:]
        match expr.primitive:
            case "where":
                result = np.zeros(len(at), working_dtype(expr.dtype))
                for branch, taken in ((rest[0], first.astype(bool)), (rest[1], ~first.astype(bool))):
                    result[taken] = self.of(branch, at[taken], local)
                return result
            case "and_" | "or_":
                undecided = first.astype(bool) if expr.primitive == "and_" else ~first.astype(bool)
                result = first.astype(bool)
                result[undecided] = self.of(rest[0], at[undecided], local)
                return result
        values = (first, *(self.of(part, at, local) for part in rest))
        return elementwise(expr.primitive, values).astype(working_dtype(expr.dtype))

    def _read(self, expr: Read, at: Array, local: Definitions) -> Array:
        array = self.tensor(expr.tensor)
        positions, outside = self.cells(expr, array.shape, at, local)
        if not positions:
            return np.full(len(at), array)
        if not outside.any():
            return array[positions]
        result = np.zeros(len(at), array.dtype)
        inside = ~outside
        result[inside] = array[tuple(position[inside] for position in positions)]
        if expr.fill is not None:
            result[outside] = self.of(expr.fill, at[outside], local)
        return result

    def cells(
        self, expr: Read, shape: tuple[int, ...], at: Array, local: Definitions
    ) -> tuple[tuple[Array, ...], Array]:
        """The cell that ``expr`` reads at each point, and where it finds none and takes its fill value."""
        outside = np.zeros(len(at), bool)
        positions = []
        for axis, (index, boundary) in enumerate(zip(expr.indices, expr.boundaries, strict=True)):
            extent = shape[axis]
            position = np.zeros(len(at), working_dtype(index.dtype))
            position[~outside] = self.of(index, at[~outside], local)
            beyond = ((position < 0) | (position >= extent)) & ~outside
            if beyond.any():
                if boundary is Boundary.FILL:
                    outside |= beyond
                elif boundary in (Boundary.SKIP, Boundary.CHECK) or extent == 0:
                    fact = f"index {position[beyond][0]} is out of range for axis {axis} of `{expr.tensor}`"
                    raise Diagnostic(DataIndexError, f"{fact}, which has extent {extent}", expr.span).error()
                else:
                    position = _moved(position, extent, boundary)
            positions.append(np.where(outside, 0, position).astype(np.int64))
        return tuple(positions), outside


def _moved(position: Array, extent: int, boundary: Boundary) -> Array:
    def compute(primitive: str, *values: Array) -> Array:
        return np.asarray(_POSITIONS[primitive](*values))

    return moved(position, np.asarray(extent), boundary, compute, np.asarray)


def elementwise(primitive: str, values: tuple[Array, ...]) -> Array:
    """``elementwise("add", (a, b))``: a primitive on arrays of one length."""
    if values[0].dtype == object:
        compute = INDEX_ARITHMETIC[primitive]
        return np.frompyfunc(compute, len(values), 1)(*values)  # type: ignore[no-any-return]
    with np.errstate(all="ignore"):
        return np.asarray(_vectorized(primitive, np.issubdtype(values[0].dtype, np.floating))(*values))


@lru_cache(maxsize=256)
def _vectorized(primitive: str, floating: bool) -> Callable[..., Any]:
    # Rows of the table take scalars; most take arrays as well.
    row = PRIMITIVES[primitive]
    samples = [np.array([0.25, 0.5]) if floating else np.array([1, 2])] * row.arity
    try:
        if np.shape(row.evaluate(*samples)) == (2,) and (floating or primitive != "pow"):
            return row.evaluate
    except (TypeError, ValueError):
        pass
    each = np.frompyfunc(row.evaluate, row.arity, 1)
    return lambda *values: each(*values).astype(values[0].dtype)
