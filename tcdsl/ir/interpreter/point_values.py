"""Values of expressions at many points at once: the scalar half of the reference interpreter.

Floats are float64, whatever their declared type; integers and bools have their own type and wrap around as in NumPy.
Indices never overflow, nor do conditions on index variables and sizes. Evaluation is lazy: a branch is evaluated at the
points that take it, a local definition where it is needed. Nothing is simplified or reordered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, TcdslError
from tcdsl.ir.boundaries import moved
from tcdsl.ir.dtypes import INTEGER, WIDE_INTEGERS, is_floating
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
    children,
    is_affine_index,
)
from tcdsl.ir.interpreter.index_faults import index_fault
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.span import Span

__all__ = [
    "Array",
    "InternalRangeError",
    "LocalDefinition",
    "LocalDefinitions",
    "PointValues",
    "elementwise",
    "working_dtype",
]

Array = np.ndarray[Any, np.dtype[Any]]

_POSITIONS = {"sub": np.subtract, "mul": np.multiply, "mod": np.mod, "min": np.minimum, "max": np.maximum}


class InternalRangeError(TcdslError):
    """An access that its statement's domain promises to be in range is not: a fault of tcdsl, not of the user."""


def working_dtype(dtype: str) -> str:
    """The type in which the interpreter holds values of ``dtype``."""
    if dtype == INTEGER or dtype in WIDE_INTEGERS:
        return "object"  # Python's integers
    return "float64" if is_floating(dtype) else dtype


@dataclass(slots=True)
class LocalDefinition:
    """A local definition: its value, the definitions that it may use, and its values at the points known so far."""

    value: Expr
    around: LocalDefinitions
    values: Array | None = None
    known: Array | None = None


LocalDefinitions = Mapping[str, LocalDefinition]


class PointValues:
    """``PointValues({"i": array([0, 1, 2])}, 3, sizes, tensor).of(expr, at, {})``: the value at the points numbered
    ``at``.

    ``coordinates`` gives the value of each index variable, and of each scalar that is no local definition, at each of
    ``count`` points; ``tensor`` the array of a name. For errors, ``label`` says what users call a tensor, and ``span``
    is the statement's. Raises `DataIndexError` for data indices out of range.
    """

    def __init__(
        self,
        coordinates: Mapping[str, Array],
        count: int,
        sizes: Mapping[str, int],
        tensor: Callable[[str], Array],
        label: Callable[[str], str] = str,
        span: Span | None = None,
    ) -> None:
        self.coordinates = coordinates
        self.count = count
        self.sizes = sizes
        self.tensor = tensor
        self.label = label
        self.span = span

    def of(self, expr: Expr, at: Array, local: LocalDefinitions) -> Array:
        """One value per number in ``at``."""
        match expr:
            case Constant(value=value, dtype=dtype):
                if working_dtype(dtype) == "object":
                    return np.full(len(at), value, "object")
                # Rounded to its own type first: 0.1 as a float32 is the number that compiled code compares with.
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
                held = self._index(operand, at, local) if dtype == INTEGER else self.of(operand, at, local)
                if dtype == "float32" and operand.dtype == "float64":
                    # Held without rounding, but for what is more than the type can hold.
                    narrow = held.astype(np.float32)
                    held = np.where(np.isinf(narrow), narrow, held)
                return held.astype(working_dtype(dtype))
            case Read():
                return self._read(expr, at, local)
            case Apply():
                return self._applied(expr, at, local)
            case Reduction():
                raise TypeError("reductions stand in sketches only")

    def single(self, expr: Expr) -> Any:
        """The value at the only point."""
        return self.of(expr, np.zeros(1, np.int64), {})[0]

    def exact(self, expr: Expr) -> int:
        """The value of a number of rounds, or of an index, at the only point."""
        return int(self._index(expr, np.zeros(1, np.int64), {})[0])

    def _local(self, definition: LocalDefinition, at: Array, dtype: str) -> Array:
        if definition.values is None or definition.known is None:
            definition.values = np.zeros(self.count, working_dtype(dtype))
            definition.known = np.zeros(self.count, bool)
        missing = at[~definition.known[at]]
        if len(missing):
            definition.values[missing] = self.of(definition.value, missing, definition.around)
            definition.known[missing] = True
        return definition.values[at]

    def _applied(self, expr: Apply, at: Array, local: LocalDefinitions) -> Array:
        # Along the first arguments in a loop, because sums of hundreds of terms are deep trees.
        spine = [expr]
        while not _compares_indices(spine[-1]) and isinstance(inner := spine[-1].arguments[0], Apply):
            spine.append(inner)
        if _compares_indices(spine[-1]):
            node = spine.pop()
            values = tuple(self._index(part, at, local) for part in node.arguments)
            if any(value.dtype == object for value in values):
                values = tuple(value.astype(object) for value in values)
            first = elementwise(node.primitive, values).astype(bool)
        else:
            first = self.of(spine[-1].arguments[0], at, local)
        for node in reversed(spine):
            first = self._combined(node, first, at, local)
        return first

    def _combined(self, expr: Apply, first: Array, at: Array, local: LocalDefinitions) -> Array:
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

    # -- indices

    def _index(self, expr: Expr, at: Array, local: LocalDefinitions) -> Array:
        """An index, in Python's integers where int64 might not hold what it is made of."""
        if isinstance(expr, Apply) and expr.primitive == "where" and expr.dtype != INTEGER:
            condition, *branches = expr.arguments
            chosen = self.of(condition, at, local).astype(bool)
            result = np.zeros(len(at), object)
            for branch, taken in zip(branches, (chosen, ~chosen), strict=True):
                result[taken] = self._index(branch, at[taken], local)
            return result
        if type(expr) is not Apply or expr.dtype == INTEGER or not is_affine_index(expr) or self._largest(expr) < 2**63:
            return self.of(expr, at, local)
        return self._exact(expr, at)

    def _largest(self, expr: Expr) -> int:
        # What no part of an index exceeds in absolute value.
        match expr:
            case Constant(value=value):
                return abs(int(value))
            case SizeValue(name=name):
                return abs(self.sizes[name])
            case IndexValue(name=name):
                held = self.coordinates[name]
                return max(abs(int(held.min())), abs(int(held.max()))) if len(held) else 0
        parts = [self._largest(part) for part in children(expr)]
        if isinstance(expr, Apply) and expr.primitive in ("add", "sub"):
            return sum(parts)
        product = parts[0] * parts[1] if isinstance(expr, Apply) and expr.primitive == "mul" else 0
        return max(product, *parts)

    def _exact(self, expr: Expr, at: Array) -> Array:
        if isinstance(expr, Apply):
            return elementwise(expr.primitive, tuple(self._exact(part, at) for part in expr.arguments))
        if isinstance(expr, Constant):
            return np.full(len(at), expr.value, object)
        return self.of(expr, at, {}).astype(object)

    # -- reads

    def _read(self, expr: Read, at: Array, local: LocalDefinitions) -> Array:
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
        self, expr: Read, shape: tuple[int, ...], at: Array, local: LocalDefinitions
    ) -> tuple[tuple[Array, ...], Array]:
        """The cell that ``expr`` reads at each point, and where it finds none and takes its fill value."""
        outside = np.zeros(len(at), bool)
        positions = []
        # Axis by axis: the first one out of range that fills or fails decides.
        some_outside = False
        for axis, (index, boundary) in enumerate(zip(expr.indices, expr.boundaries, strict=True)):
            extent = shape[axis]
            if some_outside:
                found = self._index(index, at[~outside], local)
                position = np.zeros(len(at), found.dtype)
                position[~outside] = found
            else:
                position = self._index(index, at, local)
            some = len(at) and (position.min() < 0 or position.max() >= extent)
            beyond = ((position < 0) | (position >= extent)).astype(bool) & ~outside if some else outside
            if some and beyond.any():
                if boundary is Boundary.FILL:
                    some_outside = True
                    outside |= beyond
                elif boundary in (Boundary.SKIP, Boundary.CHECK) or extent == 0:
                    first = int(np.argmax(beyond))
                    raise self._out_of_range(expr, axis, int(position[first]), extent, at[first])
                else:
                    position = _moved(position, extent, boundary)
            kept = np.where(outside, 0, position) if some_outside else position
            positions.append(kept.astype(np.int64, copy=False))
        return tuple(positions), outside

    def _out_of_range(self, expr: Read, axis: int, position: int, extent: int, number: int) -> TcdslError:
        point = ", ".join(f"{name} = {values[number]}" for name, values in self.coordinates.items())
        notes = (f"at {point}",) if point else ()
        fault = index_fault(self.label(expr.tensor), axis, position, extent, expr.span or self.span, notes)
        if expr.boundaries[axis] is Boundary.SKIP:
            fact = f"{fault.fact}, although its domain says that it is in range"
            return Diagnostic(InternalRangeError, fact, fault.span, notes).error()
        return fault.error()


def _compares_indices(expr: Apply) -> bool:
    # What index variables and sizes make, or indices.
    arguments = expr.arguments
    if PRIMITIVES[expr.primitive].kind != "compare":
        return False
    return arguments[0].dtype == INTEGER or (arguments[0].dtype == "int64" and all(map(is_affine_index, arguments)))


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
        return np.asarray(_vectorized(primitive, values[0].dtype.kind == "f")(*values))


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
    return lambda *values: np.array([row.evaluate(*each) for each in zip(*values, strict=True)], values[0].dtype)
