"""The operations of a program, statement by statement: conditions and values at every point, and combining values in
cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import islpy as isl
import numpy as np

from tcdsl.autodiff.cost.expression_cost import ExpressionCounter
from tcdsl.autodiff.cost.first_writes import Cells, WrittenCells, image
from tcdsl.autodiff.cost.operations import OperationCount
from tcdsl.autodiff.cost.point_sets import AffinePoints, ListedPoints
from tcdsl.autodiff.cost.tensors import CountedValues
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Constant, is_affine_index
from tcdsl.ir.program import Fill, Keep, Program, Statement
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.spaces import at_sizes

__all__ = ["count_operations"]

_SUMS = ("add", "subtract")


def count_operations(program: Program, inputs: Sequence[Any]) -> OperationCount:
    """``count_operations(matmul, [A, B])``: the operations that ``program`` executes on these arrays.

    Exact, and quick where conditions and indices are affine: then the arrays' values are never looked at, and
    ``np.broadcast_to(0.0, shape)`` stands for an array of any size. What depends on data is found from the data.
    `tcdsl.autodiff.cost.operations` says what counts. Raises `ShapeError` and `DataIndexError` as a call would.
    """
    arrays = [np.asarray(array) for array in inputs]
    sizes = bind_sizes(program, [array.shape for array in arrays])
    counter = _StatementCounter(program, CountedValues(program, arrays, sizes))
    for statement in program.statements:
        counter.add(statement)
    return OperationCount.of(counter.operations)


@dataclass(frozen=True, slots=True)
class _Executed:
    """What the points of a statement did: ``points`` of them gave ``written`` cells a value, and ``changed`` cells
    were written at all, zeros by predicate included.
    """

    points: int
    written: Cells
    changed: Cells


class _StatementCounter:
    """Counts the statements of a program in order: ``_StatementCounter(program, values).add(statement)``.

    ``operations`` holds the counts so far.
    """

    def __init__(self, program: Program, values: CountedValues) -> None:
        self.operations: Counter[str] = Counter()
        self._program = program
        self._values = values
        self._declarations = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
        self._continued = {s.start.tensor for s in program.statements if isinstance(s.start, Keep)}
        self._written: dict[str, WrittenCells] = {}

    def add(self, statement: Statement) -> None:
        """Count one statement."""
        before = self._start(statement)
        # Which values are zero by predicate matters where they are added, or where what they leave free is.
        name = statement.target.tensor
        zeros = statement.accumulate in _SUMS or (name in self._continued and statement.accumulate == "assign")
        try:
            executed, operations = self._affine(statement, zeros)
        except NotAffine:
            executed, operations = self._listed(statement, zeros)
        self.operations.update(operations)
        if not is_floating(self._declarations[name].dtype):
            return
        neutral = neutral_element(statement.accumulate, self._declarations[name].dtype)
        if statement.accumulate != "assign":
            self._combine(statement.accumulate, executed.points, before.fresh(executed.written, neutral))
        if name in self._continued:
            changed = executed.changed if statement.accumulate == "assign" else None
            self._written[name] = before.after(changed, executed.written)

    def _combine(self, accumulate: str, points: int, fresh: int) -> None:
        """``points`` values joined with what cells hold, ``fresh`` of which hold nothing."""
        operation = "add" if accumulate in _SUMS else ACCUMULATORS[accumulate].primitive
        self.operations[operation] += points - (0 if accumulate == "divide" else fresh)

    def _start(self, statement: Statement) -> WrittenCells:
        name = statement.target.tensor
        shape = self._values.shape(name)
        match statement.start:
            case Keep(tensor=earlier):
                return self._written.get(earlier, WrittenCells(shape, 0, None))
            case Fill(value=Constant(value=value)):
                return WrittenCells.nowhere(shape, value)
            case Fill(value=value):
                once = AffinePoints(isl.Set("{ [] }"), self._values.sizes)
                counter: ExpressionCounter[AffinePoints] = ExpressionCounter(self._declarations)
                counter.add(value, once)
                self.operations.update(counter.operations)
                return WrittenCells(shape, 0, None)
            case _:
                return WrittenCells.nowhere(
                    shape, neutral_element(statement.accumulate, self._declarations[name].dtype)
                )

    def _affine(self, statement: Statement, zeros: bool) -> tuple[_Executed, Counter[str]]:
        if not all(is_affine_index(axis) for axis in statement.target.indices):
            raise NotAffine(statement.target)
        counter: ExpressionCounter[AffinePoints] = ExpressionCounter(self._declarations)
        sizes = self._values.sizes
        points = AffinePoints(at_sizes(statement.domain.set, sizes), sizes)
        if statement.condition is not None:
            counter.add(statement.condition, points, zeros=False)
            points = points.where(statement.condition, {})
        vanishing = counter.add(statement.value, points, zeros)
        true = points if vanishing is None else points.minus(vanishing)
        changed = image(points, statement.target.indices)
        written = changed if vanishing is None else image(true, statement.target.indices)
        return _Executed(true.count, written, changed), counter.operations

    def _listed(self, statement: Statement, zeros: bool) -> tuple[_Executed, Counter[str]]:
        counter: ExpressionCounter[ListedPoints] = ExpressionCounter(self._declarations)
        access = self._values.target(statement)
        shape = self._values.shape(access.tensor)
        written, changed = np.zeros(shape, bool), np.zeros(shape, bool)
        count = 0
        for block in self._values.blocks(statement):
            points = ListedPoints(block, np.ones(block.count, bool))
            if statement.condition is not None:
                counter.add(statement.condition, points, zeros=False)
                points = points.where(statement.condition, {})
            positions, outside = block.cells(access, shape, points.numbers, {})
            if outside.any():
                inside = np.zeros(block.count, bool)
                inside[points.numbers[~outside]] = True
                points = ListedPoints(block, inside)
                positions = tuple(position[~outside] for position in positions)
            vanishing = counter.add(statement.value, points, zeros)
            true = np.ones(points.count, bool) if vanishing is None else ~vanishing.mask[points.numbers]
            for cells, chosen in ((changed, np.ones_like(true)), (written, true)):
                # Without axes there is one cell to mark, but only if there is a point.
                if chosen.any():
                    cells[tuple(position[chosen] for position in positions)] = True
            count += int(true.sum())
        return _Executed(count, written, changed), counter.operations
