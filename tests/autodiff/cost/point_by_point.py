"""Operations counted one by one, by executing a program point by point: what the counter must find without doing so.

It evaluates lazily, as the reference interpreter does, and follows zeros by predicate through values and cells.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.autodiff.cost.operations import OperationCount, operations_of
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.boundaries import moved
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.exact import EXACT
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
    SizeValue,
    is_affine_index,
    walk,
)
from tcdsl.ir.interpreter.point_values import working_dtype
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Fill, Keep, Program, Statement, Tensor
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.simplification.scans import scan_of

__all__ = ["counted"]

# A value, and whether it is zero by predicate.
Result = tuple[Any, bool]


def counted(program: Program, inputs: Sequence[Any]) -> OperationCount:
    """The operations of a run."""
    run = _Run(program, [np.asarray(array) for array in inputs])
    with np.errstate(all="ignore"):
        for statement in program.statements:
            run.execute(statement)
    return OperationCount.of(run.operations)


def exactly(primitive: str, *values: int) -> int:
    """What a primitive gives of integers of Python."""
    return EXACT[primitive](*values)


@dataclass
class _Cells:
    """The values of a tensor and where it has been given any; elsewhere it holds ``otherwise``."""

    values: np.ndarray
    given: np.ndarray
    otherwise: Any


def _cell_names(statement: Statement) -> list[str]:
    return [index.name for index in statement.target.indices if isinstance(index, IndexValue)]


def _running_axis(
    statement: Statement, points: Sequence[tuple[int, ...]], tensor: Tensor, shape: tuple[int, ...]
) -> int | None:
    """The axis along which a sum goes on from the cell before, for all sizes; here no cell may lack a term of that."""
    scan = scan_of(statement, tensor.shape) if statement.accumulate in ("add", "subtract") else None
    if scan is None:
        return None
    names, variables = _cell_names(statement), statement.domain.variables
    terms: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for point in points:
        at = dict(zip(variables, point, strict=True))
        term = tuple(at[name] for name in variables if name not in names)
        terms.setdefault(tuple(at[name] for name in names), set()).add(term)
    axis = names.index(scan.variable)
    for around in np.ndindex(*shape[:axis], *shape[axis + 1 :]):
        row = [terms.get((*around[:axis], k, *around[axis:]), set()) for k in range(shape[axis])]
        assert all(one <= other for one, other in itertools.pairwise(row[::-1] if scan.descending else row))
    return axis


class _Run:
    def __init__(self, program: Program, inputs: Sequence[np.ndarray]) -> None:
        self.operations: Counter[str] = Counter()
        self.program = program
        self.sizes = bind_sizes(program, [array.shape for array in inputs])
        self.tensors = {
            tensor.name: _Cells(array.astype(working_dtype(tensor.dtype)), np.ones(array.shape, bool), 0)
            for tensor, array in zip(program.inputs, inputs, strict=True)
        }

    def execute(self, statement: Statement) -> None:
        name = statement.target.tensor
        dtype = self.program.tensor(name).dtype
        cells = self.tensors[name] = self.started(statement)
        evaluate = PRIMITIVES[ACCUMULATORS[statement.accumulate].primitive].evaluate
        neutral = neutral_element(statement.accumulate, dtype)
        points = list(statement.domain.points(self.sizes))
        axis = _running_axis(statement, points, self.program.tensor(name), cells.values.shape)
        if axis is not None:
            self.add_running(statement, points, axis, cells)
            return
        for point in points:
            indices = dict(zip(statement.domain.variables, map(np.int64, point), strict=True))
            if statement.condition is not None and not self.value(statement.condition, indices, {})[0]:
                continue
            cell = self.target(statement, cells.values.shape, indices)
            if cell is None:
                continue
            value, zero = self.value(statement.value, indices, {})
            if statement.accumulate == "assign":
                cells.values[cell], cells.given[cell] = value, not zero
                continue
            if is_floating(dtype) and not (zero and statement.accumulate in ("add", "subtract")):
                first = not cells.given[cell] and cells.otherwise == neutral
                self.combine(statement.accumulate, first)
                cells.given[cell] = True
            cells.values[cell] = evaluate(cells.values[cell], value)

    def add_running(self, statement: Statement, points: Sequence[tuple[int, ...]], axis: int, cells: _Cells) -> None:
        """A sum whose cells along an axis have the terms of the one before: each term joins a row once."""
        rows, reached = set[tuple[Any, ...]](), set[tuple[int, ...]]()
        known = set[tuple[Any, ...]]()
        for point in points:
            indices = dict(zip(statement.domain.variables, map(np.int64, point), strict=True))
            if statement.condition is not None and not self.value(statement.condition, indices, {})[0]:
                continue
            cell = self.target(statement, cells.values.shape, indices)
            row = (*cell[:axis], *cell[axis + 1 :])
            term = tuple(value for name, value in indices.items() if name not in _cell_names(statement))
            before = Counter(self.operations)
            value, _ = self.value(statement.value, indices, {})
            if (row, term) in known:
                self.operations = before
            else:
                self.combine(statement.accumulate, row not in rows)
            known.add((row, term))
            rows.add(row)
            if cell not in reached and (cells.given[cell] or cells.otherwise != 0):
                self.combine(statement.accumulate, False)
            reached.add(cell)
            cells.values[cell] += value if statement.accumulate == "add" else -value
        for cell in reached:
            cells.given[cell] = True

    def combine(self, accumulate: str, first: bool) -> None:
        own = {"add": "add", "subtract": "add", "multiply": "mul", "divide": "div"}
        operation = own.get(accumulate, ACCUMULATORS[accumulate].primitive)
        if not first or accumulate == "divide":
            self.operations[operation] += 1

    def started(self, statement: Statement) -> _Cells:
        tensor = self.program.tensor(statement.target.tensor)
        shape = tuple(evaluate_size(extent, self.sizes) for extent in tensor.shape)
        match statement.start:
            case Keep(tensor=earlier):
                found = self.tensors[earlier]
                return _Cells(found.values.copy(), found.given.copy(), found.otherwise)
            case Fill(value=value):
                start = self.value(value, {}, {})[0]
                given = not isinstance(value, Constant)
            case _:
                start, given = neutral_element(statement.accumulate, tensor.dtype), False
        return _Cells(np.full(shape, start, working_dtype(tensor.dtype)), np.full(shape, given), start)

    def target(self, statement: Statement, shape: tuple[int, ...], indices: Mapping[str, Any]) -> Any:
        cell = []
        for index, extent in zip(statement.target.indices, shape, strict=True):
            position = int(self.value(index, indices, {})[0])
            if not 0 <= position < extent:
                assert not is_affine_index(index)
                assert statement.oob != "check"
                if statement.oob == "skip":
                    return None
                position = moved(position, extent, Boundary.CLAMP, exactly, int)
            cell.append(position)
        return tuple(cell)

    def value(self, expr: Expr, indices: Mapping[str, Any], local: Mapping[str, Callable[[], Result]]) -> Result:
        match expr:
            case Constant(value=value, dtype=dtype):
                return np.dtype(dtype).type(value).astype(working_dtype(dtype)), False
            case SizeValue(name=name):
                return np.int64(self.sizes[name]), False
            case IndexValue(name=name):
                return indices[name], False
            case Local(name=name):
                return local[name]()
            case Let(name=name, value=value, body=body):
                return self.value(body, indices, {**local, name: self.once(value, indices, local)})
            case Cast(operand=operand, dtype=dtype):
                found, zero = self.value(operand, indices, local)
                return found.astype(working_dtype(dtype)), zero
            case Read():
                return self.read(expr, indices, local)
            case Apply():
                return self.applied(expr, indices, local)

    def once(
        self, value: Expr, indices: Mapping[str, Any], local: Mapping[str, Callable[[], Result]]
    ) -> Callable[[], Result]:
        known: list[Result] = []

        def get() -> Result:
            if not known:
                known.append(self.value(value, indices, local))
            return known[0]

        return get

    def read(self, expr: Read, indices: Mapping[str, Any], local: Mapping[str, Callable[[], Result]]) -> Result:
        array = self.tensors[expr.tensor].values
        cell = []
        for index, boundary, extent in zip(expr.indices, expr.boundaries, array.shape, strict=True):
            position = int(self.value(index, indices, local)[0])
            if not 0 <= position < extent:
                if boundary is Boundary.FILL and expr.fill is not None:
                    found, zero = self.value(expr.fill, indices, local)
                    return found, zero or _is_zero(expr.fill)
                position = moved(position, extent, boundary, exactly, int)
            cell.append(position)
        assert all(0 <= position < extent for position, extent in zip(cell, array.shape, strict=True))
        return array[tuple(cell)], False

    def applied(self, expr: Apply, indices: Mapping[str, Any], local: Mapping[str, Callable[[], Result]]) -> Result:
        first, zero = self.value(expr.arguments[0], indices, local)
        match expr.primitive:
            case "where":
                branch = expr.arguments[1 if first else 2]
                found, zero = self.value(branch, indices, local)
                return found, zero or _is_zero(branch)
            case "and_" | "or_" if bool(first) == (expr.primitive == "or_"):
                return np.bool_(first), False
        rest = [self.value(part, indices, local) for part in expr.arguments[1:]]
        values, zeros = [first, *(each[0] for each in rest)], [zero, *(each[1] for each in rest)]
        result = np.dtype(working_dtype(expr.dtype)).type(PRIMITIVES[expr.primitive].evaluate(*values))
        operations = Counter(operations_of(expr)) if _mentions_points(expr) else Counter[str]()
        zero = False
        match expr.primitive:
            case "add" | "sub":
                zero = all(zeros)
                free = any(zeros)
            case "fma":
                zero = any(zeros[:2]) and zeros[2]
                free = any(zeros[:2]) or zeros[2]
            case "mul":
                zero, free = any(zeros), False
            case _:
                zero, free = zeros[0] and expr.primitive in ("neg", "div", "id"), False
        if free:
            operations["add"] = 0
        self.operations.update(operations)
        return result, zero


def _mentions_points(expr: Expr) -> bool:
    return any(isinstance(node, Read | IndexValue | Local) for node in walk(expr))


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Constant) and expr.value == 0
