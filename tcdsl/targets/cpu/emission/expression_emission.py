"""Expressions of nests as LLVM instructions: typed scalars, or the lanes of vectors.

``and_``, ``or_`` and ``where`` evaluate what they must, and more where that does no harm. Integers wrap. Only indices
and the bounds of loops are exact, so that bounds of their parts say how small they can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tcdsl.ir.dtypes import WIDE_INTEGERS, compute_dtype, is_floating
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, Local, Read, SizeValue, walk
from tcdsl.ir.primitives import LAZY, PRIMITIVES
from tcdsl.targets.cpu.emission.control_flow import ControlFlow, require_one_type
from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, scalar
from tcdsl.targets.cpu.emission.primitive_code import EXTREMES, constant_exponent, primitive_code
from tcdsl.targets.cpu.emission.settled_names import Name, local_name
from tcdsl.targets.cpu.emission.vector_loops import Cell, VectorLoop
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import BufferValue, load
from tcdsl.targets.cpu.intrinsics.lanes import Lanes
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["ExpressionEmission"]

_PLAIN = frozenset(("bool", "int64", "float64"))
"""What Python's own numbers are."""

# Beside comparisons: what may be evaluated for nothing.
_QUICK = frozenset(("add", "sub", "neg", "not_", "id", "stop_gradient"))


class ExpressionEmission(ControlFlow):
    """The values of a nest that is being written; see `tcdsl.targets.cpu.emission.nest_emission`."""

    def __init__(self, function: ir.Function, flags: str) -> None:
        super().__init__(function, flags, moving=True)
        self._memory: dict[str, BufferValue] = {}
        self._sizes: dict[str, Scalar] = {}
        #: Those of the loop around whose steps are made at once.
        self._lanes: Lanes | None = None
        #: The loop at hand, if nothing but its steps is made at once.
        self._vectors: VectorLoop | None = None
        #: Whether the expression at hand is a position of a cell, or the bound of a loop.
        self._in_index = False
        #: How many tests of these steps stand around.
        self._tests = 0
        self._settled: frozenset[Name] = frozenset()
        #: The cell that the node at hand stores into, so that it can be read.
        self._cell: Cell | None = None

    @property
    def _here(self) -> Lanes | None:
        # Those of the loop at hand, if nothing but its steps is made at once.
        return None if self._vectors is None else self._lanes

    def _scalar(self, expr: Expr) -> Scalar:
        return scalar(self._builder, self._value(expr))

    def _positions(self, indices: Sequence[Expr]) -> list[Scalar]:
        return [scalar(self._builder, each) for each in self._indices(indices)]

    def _indices(self, parts: Sequence[Expr]) -> list[Any]:
        within, self._in_index = self._in_index, True
        values = [self._value(part) for part in parts]
        self._in_index = within
        return values

    def _value(self, expr: Expr) -> Any:
        # A scalar of the code, or a number of Python's.
        match expr:
            case Constant(value=value, dtype=dtype):
                return self._constant(value, compute_dtype(dtype))
            case SizeValue(name=size):
                return self._sizes[size]
            case IndexValue(name=variable):
                if self._here is not None and not self._in_index and variable == self._here.variable:
                    return self._here.numbers()
                return self._held("", variable)
            case Local(name=local, dtype=dtype):
                return self._held(*local_name(local, dtype))
            case Read(tensor=buffer, indices=indices):
                return self._load(buffer, indices)
            case Cast(operand=operand, dtype=dtype):
                return self._converted(self._value(operand), dtype)
            case Apply(primitive=primitive, arguments=arguments) if primitive in LAZY:
                if primitive == "where":
                    return self._choice(*arguments)
                return self._logical(primitive == "and_", *arguments)
            case Apply():
                return self._applied(expr)
        raise TypeError(f"not an expression of a nest: {expr!r}")

    def _held(self, kind: str, name: str) -> Any:
        return self._named((kind, name)) if (kind, name) in self._places else self._values[kind, name]

    def _constant(self, value: bool | int | float, dtype: str) -> Any:
        if is_floating(dtype):
            value = float(value)
        if dtype in _PLAIN:
            return value
        wide = dtype in WIDE_INTEGERS and not -(2**63) <= value < 2**63
        return self._converted(str(value) if wide else value, dtype)

    def _converted(self, value: Any, dtype: str) -> Any:
        return FUNCTIONS["bool_" if dtype == "bool" else dtype](self._builder, value)

    def _applied(self, expr: Apply) -> Any:
        arguments = expr.arguments
        exponent = constant_exponent(expr)
        if exponent is not None:
            return FUNCTIONS["power"](self._builder, self._value(arguments[0]), exponent)
        if expr.primitive in EXTREMES:
            return self._extreme(expr, True)
        if expr.primitive == "add" and is_floating(expr.dtype):
            for early, last in (arguments, arguments[::-1]):
                if isinstance(last, Apply) and last.primitive in EXTREMES and _is_no_negative_zero(early):
                    name, (first, late) = f"sum_of_late_{EXTREMES[last.primitive]}", last.arguments
                    known = self._known_extreme(first, last.primitive)
                    return FUNCTIONS[name](self._builder, self._value(early), known, self._value(late))
        as_bytes = PRIMITIVES[expr.primitive].kind == "compare" and arguments[0].dtype == "bool"

        def value(k: int) -> Any:
            given = self._value(arguments[k])
            return self._converted(given, "uint8") if as_bytes else given

        return primitive_code(expr.primitive).write(self._builder, value, self._in_index)

    def _extreme(self, expr: Apply, outermost: bool) -> Any:
        name, (first, last) = f"late_{EXTREMES[expr.primitive]}", expr.arguments
        known = self._known_extreme(first, expr.primitive)
        # Of several operands the last one comes late.
        if outermost and isinstance(last, Apply) and last.primitive == "add" and is_floating(last.dtype):
            return FUNCTIONS[f"{name}_of_sum"](self._builder, known, *map(self._value, last.arguments))
        return FUNCTIONS[name](self._builder, known, self._value(last))

    def _known_extreme(self, expr: Expr, primitive: str) -> Any:
        same = isinstance(expr, Apply) and expr.primitive == primitive
        return self._extreme(expr, False) if isinstance(expr, Apply) and same else self._value(expr)

    # -- choices

    def _logical(self, conjunction: bool, left: Expr, right: Expr) -> Scalar:
        first = self._scalar(left)
        if self._here is None and not self._is_quick(right):
            return self._short_circuit(conjunction, first, lambda: self._scalar(right))
        if self._here is not None and any(isinstance(part, Read) for part in walk(right)):
            rest = self._where(first if conjunction else ~first, lambda: self._scalar(right))
        else:
            rest = self._scalar(right)
        known = first.constant(not conjunction)
        return first.choose(rest, known) if conjunction else first.choose(known, rest)

    def _choice(self, condition: Expr, body: Expr, otherwise: Expr) -> Scalar:
        test = self._scalar(condition)
        if self._is_quick(body) and self._is_quick(otherwise):
            first, second = self._scalar(body), self._scalar(otherwise)
            require_one_type(first, second)
            return test.choose(first, second)
        if test.lanes:
            chosen = self._where(test, lambda: self._scalar(body))
            return test.choose(chosen, self._where(~test, lambda: self._scalar(otherwise)))
        lanes = 0 if self._here is None or self._in_index else self._here.count
        return self._either(test, lambda: self._scalar(body), lambda: self._scalar(otherwise), lanes=lanes)

    def _is_quick(self, expr: Expr) -> bool:
        # Whether it may be evaluated for nothing.
        match expr:
            case Constant() | SizeValue() | IndexValue() | Local():
                return True
            case Read(tensor=buffer, indices=indices):
                return (buffer, indices) == self._cell
            case Apply(primitive=primitive, arguments=arguments):
                simple = primitive in _QUICK or PRIMITIVES[primitive].kind == "compare"
                return simple and all(map(self._is_quick, arguments))
        return False

    # -- memory

    def _load(self, buffer: str, indices: Sequence[Expr]) -> Scalar:
        memory, positions = self._memory[buffer], self._positions(indices)
        lanes = self._lanes_of(indices)
        certain = True
        if self._vectors is not None and self._tests:
            certain = (buffer, indices) in self._vectors.certain
        if lanes is not None:
            backwards = self._vectors is not None and (buffer, indices) in self._vectors.backwards
            return lanes.load(memory, positions, certain=certain, backwards=backwards)
        if not certain and self._lanes is not None:
            return self._lanes.load_one(memory, positions)
        alone = self._vectors is not None
        in_lanes = self._lanes is not None and not alone
        return load(self._builder, memory, positions, unchanged=alone, in_lanes=in_lanes)

    def _lanes_of(self, indices: Sequence[Expr]) -> Lanes | None:
        # The lanes in which a cell is another one.
        lanes = self._lanes
        if lanes is None:
            return None
        named = any(isinstance(p, IndexValue) and p.name == lanes.variable for index in indices for p in walk(index))
        return lanes if named else None

    def _where(self, test: Scalar, write: Callable[[], Any]) -> Any:
        # What happens in the lanes where ``test`` holds.
        assert self._lanes is not None
        return self._in_lanes(self._lanes.where(test), write)

    def _in_lanes(self, some: Lanes, write: Callable[[], Any]) -> Any:
        # What happens in some of the lanes.
        lanes, self._lanes = self._lanes, some
        self._tests += 1
        written = write()
        self._tests -= 1
        self._lanes = lanes
        return written


def _is_no_negative_zero(expr: Expr) -> bool:
    # Whether a float is sure not to be -0.0.
    match expr:
        case Constant(value=value):
            return value != 0 or math.copysign(1, value) > 0
        case Apply(primitive="abs" | "square" | "exp"):
            return True
        case Apply(primitive="add", arguments=arguments):
            return any(map(_is_no_negative_zero, arguments))
    return False
