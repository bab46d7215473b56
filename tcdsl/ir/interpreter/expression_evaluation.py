"""Expressions as Python functions of a point: the scalar half of the reference interpreter.

Floats are float64, whatever their declared type; integers and bools have their own type and wrap around as in NumPy.
Indices are Python's integers and never overflow, nor do conditions on index variables and sizes. An expression becomes
nested closures once per statement; nothing is simplified, vectorized or reordered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, TcdslError
from tcdsl.ir.boundaries import moved_integer
from tcdsl.ir.dtypes import INTEGER, WIDE_INTEGERS, is_floating
from tcdsl.ir.exact import EXACT, INDEX_ARITHMETIC
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
    is_affine_index,
)
from tcdsl.ir.interpreter.index_faults import index_fault
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.span import Span

__all__ = ["Frame", "InternalRangeError", "PointEvaluator", "ScalarFunction", "working_dtype"]

# The values of the index variables, then those of the local definitions, None where not computed yet.
Frame = list[Any]
ScalarFunction = Callable[[Frame], Any]


class InternalRangeError(TcdslError):
    """An access that its statement's domain promises to be in range is not: a fault of tcdsl, not of the user."""


def working_dtype(dtype: str) -> str:
    """The type in which the interpreter holds values of ``dtype``."""
    if dtype == INTEGER or dtype in WIDE_INTEGERS:
        return "object"  # Python's integers
    return "float64" if is_floating(dtype) else dtype


class PointEvaluator:
    """Makes functions of the points of one statement, over the arrays made so far.

    ``labels`` says what users call the tensors; ``span`` is the statement's, for errors at nodes that have none.
    """

    def __init__(
        self,
        variables: Sequence[str],
        sizes: Mapping[str, int],
        arrays: Mapping[str, np.ndarray],
        labels: Mapping[str, str],
        span: Span | None = None,
    ) -> None:
        self.variables = tuple(variables)
        self.sizes = sizes
        self.arrays = arrays
        self.labels = labels
        self.span = span
        self._slots = len(self.variables)
        self._locals: dict[str, ScalarFunction] = {}

    def frame(self) -> Frame:
        """A frame for the functions made so far."""
        return [None] * self._slots

    def function(self, expr: Expr) -> ScalarFunction:
        """``expr`` as a function of a frame, which gives a NumPy scalar, or Python's integer for type ``integer``."""
        match expr:
            case Constant(dtype=dtype) | Cast(dtype=dtype) | Apply(dtype=dtype) if dtype == INTEGER:
                return self.integer(expr)
            case Constant(value=value, dtype=dtype):
                # Rounded to its own type first: 0.1 as a float32 is the number that compiled code compares with.
                number = np.dtype(working_dtype(dtype)).type(np.dtype(dtype).type(value))
                return lambda frame: number
            case SizeValue(name=name):
                size = np.int64(self.sizes[name])
                return lambda frame: size
            case IndexValue(name=name):
                slot = self.variables.index(name)
                return lambda frame: frame[slot]
            case Local(name=name):
                return self._locals[name]
            case Read():
                return self._read(expr)
            case Cast(operand=operand, dtype=dtype):
                inner, wanted = self.function(operand), working_dtype(dtype)
                if operand.dtype == INTEGER:
                    return lambda frame: np.array(inner(frame)).astype(wanted)[()]
                return lambda frame: inner(frame).astype(wanted)
            case Let():
                return self._let(expr)
            case Apply():
                return self._apply(expr)
            case Reduction():
                raise TypeError("reductions stand in sketches only")

    def index(self, expr: Expr) -> Callable[[Frame], int]:
        """The index ``expr`` as a function of a frame; it returns Python's integer."""
        if is_affine_index(expr):
            return self.integer(expr)
        value = self.function(expr)
        return lambda frame: int(value(frame))

    def integer(self, expr: Expr) -> Callable[[Frame], int]:
        """``expr``, made of index variables and sizes or of type ``integer``, computed in integers of any size."""
        match expr:
            case Constant(value=value):
                number = int(value)
                return lambda frame: number
            case Cast(operand=operand):
                return self.index(operand)
            case Apply(primitive="where", arguments=(condition, *branches)):
                decide = self.function(condition)
                chosen, other = map(self.integer, branches)
                return lambda frame: chosen(frame) if decide(frame) else other(frame)
            case Apply(primitive=primitive, arguments=arguments):
                compute = INDEX_ARITHMETIC[primitive]
                parts = [self.integer(part) for part in arguments]
                return lambda frame: compute(*[part(frame) for part in parts])
            case _:
                held = self.function(expr)
                return lambda frame: int(held(frame))

    def _compare(self, expr: Apply) -> ScalarFunction:
        # Of indices.
        compare = EXACT[expr.primitive]
        left, right = map(self.integer, expr.arguments)
        return lambda frame: np.bool_(compare(left(frame), right(frame)))

    def _apply(self, expr: Apply) -> ScalarFunction:
        if PRIMITIVES[expr.primitive].kind == "compare" and _is_about_indices(expr):
            return self._compare(expr)
        # A loop along the first arguments, because sums of hundreds of terms are deep trees.
        spine = [expr]
        while isinstance(first := spine[-1].arguments[0], Apply) and not _is_about_indices(first):
            spine.append(first)
        result = self.function(first)
        for node in reversed(spine):
            result = self._combined(node, [result, *map(self.function, node.arguments[1:])])
        return result

    def _combined(self, expr: Apply, parts: list[ScalarFunction]) -> ScalarFunction:
        match expr.primitive, parts:
            case "where", [condition, chosen, other]:
                return lambda frame: chosen(frame) if condition(frame) else other(frame)
            case "and_", [first, second]:
                return lambda frame: second(frame) if first(frame) else np.False_
            case "or_", [first, second]:
                return lambda frame: np.True_ if first(frame) else second(frame)
        evaluate = PRIMITIVES[expr.primitive].evaluate
        scalar = np.dtype(working_dtype(expr.dtype)).type
        if len(parts) == 1:
            (single,) = parts
            return lambda frame: scalar(evaluate(single(frame)))
        if len(parts) == 2:
            first, second = parts
            return lambda frame: scalar(evaluate(first(frame), second(frame)))
        return lambda frame: scalar(evaluate(*[part(frame) for part in parts]))

    def _let(self, expr: Let) -> ScalarFunction:
        value = self.function(expr.value)
        slot = self._slots
        self._slots += 1

        def local(frame: Frame) -> Any:
            # Computed when it is first needed, and not again at this point.
            if frame[slot] is None:
                frame[slot] = value(frame)
            return frame[slot]

        hidden = self._locals.get(expr.name)
        self._locals[expr.name] = local
        body = self.function(expr.body)
        if hidden is None:
            del self._locals[expr.name]
        else:
            self._locals[expr.name] = hidden

        def run(frame: Frame) -> Any:
            frame[slot] = None
            return body(frame)

        return run

    def _read(self, expr: Read) -> ScalarFunction:
        array = self.arrays[expr.tensor]
        fill = None if expr.fill is None else self.function(expr.fill)
        axes = [
            (axis, array.shape[axis], self.index(index), boundary)
            for axis, (index, boundary) in enumerate(zip(expr.indices, expr.boundaries, strict=True))
        ]

        def read(frame: Frame) -> Any:
            # Axis by axis: the first one out of range that fills or fails decides.
            cell = []
            for axis, extent, index, boundary in axes:
                position = index(frame)
                if not 0 <= position < extent:
                    if boundary is Boundary.FILL and fill is not None:
                        return fill(frame)
                    if boundary in (Boundary.SKIP, Boundary.CHECK, Boundary.FILL) or extent == 0:
                        raise self.out_of_range(expr.tensor, axis, position, boundary, frame, expr.span)
                    position = moved_integer(position, extent, boundary)
                cell.append(position)
            return array[tuple(cell)]

        return read

    def out_of_range(
        self, tensor: str, axis: int, position: int, boundary: Boundary, frame: Frame, span: Span | None
    ) -> TcdslError:
        """The error for an index ``position`` outside ``axis`` of ``tensor``, at the point in ``frame``."""
        label, extent = self.labels[tensor], self.arrays[tensor].shape[axis]
        point = ", ".join(f"{name} = {value}" for name, value in zip(self.variables, frame, strict=False))
        notes = (f"at {point}",) if point else ()
        fault = index_fault(label, axis, position, extent, span or self.span, notes)
        if boundary is Boundary.SKIP:
            fact = f"{fault.fact}, although its domain says that it is in range"
            return Diagnostic(InternalRangeError, fact, span or self.span, notes).error()
        return fault.error()


def _is_about_indices(expr: Apply) -> bool:
    # Comparisons of what index variables and sizes make, and of indices, and their arithmetic.
    arguments = expr.arguments
    if PRIMITIVES[expr.primitive].kind != "compare":
        return expr.dtype == INTEGER
    return arguments[0].dtype == INTEGER or (arguments[0].dtype == "int64" and all(map(is_affine_index, arguments)))
