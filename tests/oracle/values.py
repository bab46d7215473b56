"""The value of an expression at one point: lazily, in Python, with out-of-range reads raising `OutOfRangeError`.

Floats are float64 whatever their type, as in the reference interpreter; integers wrap in their own type.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.oracle.kinds import COMPARISONS, concrete, is_bool, is_float, is_whole, kind_of
from tests.oracle.nodes import BOUNDARIES, Axis, Cell, Fold, Node, Number, Operation, Variable
from tests.oracle.outcome import DataIndexFaultError, FaultError, UnspecifiedError

__all__ = ["INTEGERS", "OutOfRangeError", "Values", "at_an_end", "combine", "neutral"]


# Stands for all integers: extents are tiny, so whatever reaches an end of it is unbounded.
INTEGERS = range(-45, 62)


def at_an_end(value: int) -> bool:
    """Whether an index variable that reaches ``value`` is unbounded."""
    return not INTEGERS.start + 6 <= value < INTEGERS.stop - 6


class OutOfRangeError(Exception):
    """A read at this point is out of range: the point is skipped, or drops out of its reduction."""


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "neg": operator.neg,
    "//": operator.floordiv,
    "%": operator.mod,
    "abs": abs,
    "max": np.maximum,
    "min": np.minimum,
    "/": np.divide,
    "**": np.power,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "log": np.log,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "square": lambda a: a * a,
    "relu": lambda a: np.maximum(a, 0),
}

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda old, new: new,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.divide,
    "**": np.power,
    ">>": np.maximum,
    "<<": np.minimum,
    "|": lambda old, new: bool(old) or bool(new),
    "&": lambda old, new: bool(old) and bool(new),
}

FOLDED = {"sum": "+", "mean": "+", "prod": "*", "max": ">>", "min": "<<", "any": "|", "all": "&"}


def combine(accumulate: str, dtype: np.dtype, old: Any, new: Any) -> Any:
    """The cell after ``new`` is accumulated onto ``old``, both of ``dtype`` (floats in float64)."""
    if dtype.kind in "iu":
        return dtype.type(_COMBINE[accumulate](dtype.type(old), dtype.type(new)))
    return _COMBINE[accumulate](old, new)


def neutral(accumulate: str, dtype: np.dtype) -> Any:
    """What a cell of ``dtype`` starts from; plain ``=`` leaves 0 in cells that no point writes."""
    if accumulate in ("+", "-", "=", "|"):
        return _stored(0, dtype)
    if accumulate in ("*", "/", "**", "&"):
        return _stored(1, dtype)
    lowest = accumulate == ">>"
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return dtype.type(ends.min if lowest else ends.max)
    if dtype.kind == "b":
        return not lowest
    return np.float64(-np.inf if lowest else np.inf)


def _stored(value: Any, dtype: Any) -> Any:
    # value as one of the types in which values are computed here: float64, the integer type itself, or bool.
    if is_float(dtype):
        return np.float64(value)
    if is_whole(dtype):
        return np.uint64(int(value) % 2**64).astype(dtype)
    return bool(value) if is_bool(dtype) else value


class Values:
    """Evaluates nodes.

    ``candidates`` gives the integers to try for a reduction's variable, ``required(fold, point)`` whether the accesses
    that a reduction surely evaluates are in range.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        candidates: Mapping[str, range],
        required: Callable[[Fold, Mapping[str, int]], bool] = lambda fold, point: True,
    ) -> None:
        self.arrays = arrays
        self.required = required
        self.candidates = candidates
        self.dtypes = {name: array.dtype for name, array in arrays.items()}
        # By node, which is kept: the identity of one that is gone may become another's.
        self._kinds: dict[Node, Any] = {}

    def kind(self, node: Node) -> Any:
        found = self._kinds.get(node)
        if found is None:
            found = self._kinds[node] = kind_of(node, self.dtypes)
        return found

    def cast(self, value: Any, kind: Any) -> Any:
        """``value`` in ``kind``, for accumulation."""
        return _stored(value, concrete(kind))

    def at(self, node: Node, point: Mapping[str, int]) -> Any:
        """The value of ``node`` where the index variables have the values of ``point``."""
        match node:
            case Number(value=value):
                return value
            case Variable(name=name):
                return point[name]
            case Cell():
                return self._cell(node, point)
            case Fold():
                return self._fold(node, point)
        return self._operation(node, point)

    def place(self, index: Node, extent: int, point: Mapping[str, int]) -> int:
        """Where an index of a target says, on an axis of ``extent``: a negative number counts from the end."""
        match index:
            case Operation(name=mode, arguments=(moved,)) if mode in BOUNDARIES:
                if extent == 0:
                    raise UnspecifiedError("a boundary of an empty axis")
                return _moved(mode, int(self.at(moved, point)), extent)
        found = int(self.at(index, point))
        return found + extent if isinstance(index, Number) and found < 0 else found

    def _cell(self, node: Cell, point: Mapping[str, int]) -> Any:
        array = self.arrays[node.tensor]
        place = []
        for number, axis in enumerate(node.axes):
            index = self._index(node, number, axis, point)
            if index is None:
                assert node.fill is not None
                return _stored(self.at(node.fill, point), array.dtype)
            place.append(index)
        return _stored(array[tuple(place)].item() if array.dtype.kind != "f" else array[tuple(place)], array.dtype)

    def _index(self, node: Cell, number: int, axis: Axis, point: Mapping[str, int]) -> int | None:
        extent = self.arrays[node.tensor].shape[number]
        index = int(self.at(axis.index, point))
        if axis.mode == "direct" and isinstance(axis.index, Number) and index < 0:
            index += extent
        if axis.mode not in ("direct", "data"):
            if extent == 0:
                raise UnspecifiedError("a boundary of an empty axis")
            return _moved(axis.mode, index, extent)
        if 0 <= index < extent:
            return index
        if node.fill is not None:
            return None
        if axis.mode == "data":
            raise DataIndexFaultError(f"{node.tensor} has no index {index} on axis {number}")
        raise OutOfRangeError

    def _operation(self, node: Operation, point: Mapping[str, int]) -> Any:
        name, arguments = node.name, node.arguments
        kind = self.kind(node)
        if name == "and":
            return all(bool(self.at(argument, point)) for argument in arguments)
        if name == "or":
            return any(bool(self.at(argument, point)) for argument in arguments)
        if name == "not":
            return not self.at(arguments[0], point)
        if name in ("if", "where"):
            taken = arguments[1] if self.at(arguments[0], point) else arguments[2]
            return self._converted(self.at(taken, point), kind)
        if name in COMPARISONS:
            return bool(_COMPARE[name](*(self.at(argument, point) for argument in arguments)))
        if name == "product":
            return self._product(node, point)
        if name in ("float32", "float64", "int32", "int64"):
            return _stored(self.at(arguments[0], point), np.dtype(name))
        values = [self._converted(self.at(argument, point), kind) for argument in arguments]
        return self._converted(_FUNCTIONS[name](*values), kind)

    def _converted(self, value: Any, kind: Any) -> Any:
        if kind is float:
            return np.float64(value)
        return _stored(value, kind) if isinstance(kind, np.dtype) else value

    def _product(self, node: Operation, point: Mapping[str, int]) -> Any:
        kind = self.kind(node)
        brackets = [factor for factor in node.arguments if is_bool(self.kind(factor))]
        for bracket in brackets:
            if not self.at(bracket, point):
                return self._converted(0, kind)
        result = self._converted(1, kind)
        for factor in node.arguments:
            if factor not in brackets:
                result = self._converted(result * self._converted(self.at(factor, point), kind), kind)
        return result

    def vanishes(self, node: Node, point: Mapping[str, int]) -> bool:
        """Whether ``node`` is a product with a false bracket: it adds nothing to a sum, like a false condition."""
        if not isinstance(node, Operation) or node.name != "product":
            return False
        brackets = (factor for factor in node.arguments if is_bool(self.kind(factor)))
        return not all(self.at(bracket, point) for bracket in brackets)

    def _fold(self, node: Fold, point: Mapping[str, int]) -> Any:
        found: list[tuple[tuple[int, ...], Any]] = []
        limits = {name: (low, high) for name, low, high in node.ranges}
        choices = [self.candidates[name] for name in node.variables]
        for place in itertools.product(*choices):
            inner = {**point, **dict(zip(node.variables, place, strict=True))}
            if any(not low <= inner[name] < high for name, (low, high) in limits.items()):
                continue
            if not self.required(node, inner):
                continue
            try:
                if not all(self.at(condition, inner) for condition in node.conditions):
                    continue
                found.append((place, self.at(node.body, inner)))
            except OutOfRangeError:
                continue
            if node.kind == "sum" and self.vanishes(node.body, inner):
                continue
            if any(map(at_an_end, place)):
                raise FaultError("nothing bounds a reduction's variable: write a range")
        if node.kind in ("argmax", "argmin"):
            return self._winner(node, found)
        dtype = concrete(self.kind(node))
        accumulate = FOLDED[node.kind]
        total = neutral(accumulate, dtype)
        for _, value in found:
            total = combine(accumulate, dtype, total, _stored(value, dtype))
        if node.kind == "mean":
            return total / np.float64(len(found)) if found else np.float64(math.nan)
        return total

    def _winner(self, node: Fold, found: list[tuple[tuple[int, ...], Any]]) -> int:
        if not found:
            raise UnspecifiedError("the position of the largest of no values")
        # Of several ranges the position is that among all of their points, in the order in which they are written.
        highs = [high for _, _, high in node.ranges] if len(node.variables) > 1 else [0]
        order = [node.variables.index(name) for name, _, _ in node.ranges] if len(highs) > 1 else [0]
        places = [(functools.reduce(lambda n, k: n * highs[order.index(k)] + p[k], order, 0), v) for p, v in found]
        best = min(places)
        for place, value in sorted(places, key=operator.itemgetter(0)):
            if (value > best[1]) if node.kind == "argmax" else (value < best[1]):
                best = (place, value)
        return best[0]


def _moved(mode: str, index: int, extent: int) -> int:
    if mode == "clamp":
        return min(max(index, 0), extent - 1)
    if mode == "wrap":
        return index % extent
    if mode == "reflect":
        period = 2 * (extent - 1)
        index = index % period if period else 0
        return min(index, period - index)
    index %= 2 * extent
    return min(index, 2 * extent - 1 - index)
