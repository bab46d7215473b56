"""The operations of a program, statement by statement: conditions and values at every point, and combining values in
cells.

An accumulation onto a cell that holds nothing yet is no operation, in whichever statement of a chain the cell gets its
first value. So the cells written are known as exactly as the points: sets of isl, or masks where indices are data.
The values of a program's tensors are computed when a condition or a data index asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import islpy as isl
import numpy as np

from tcdsl.autodiff.cost.expression_cost import ExpressionCounter
from tcdsl.autodiff.cost.operations import OperationCount
from tcdsl.autodiff.cost.point_sets import AffinePoints, ListedPoints, at_values, cardinality, coordinates
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.build import constant, index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Constant, Expr, IndexValue, Local, Read, is_affine_index, walk
from tcdsl.ir.interpreter.point_values import Array
from tcdsl.ir.interpreter.tensor_values import TensorValues
from tcdsl.ir.program import Fill, Keep, Program, Repeat, Statement, statement_expressions
from tcdsl.ir.sizes.size_binding import bind_sizes, plan_of
from tcdsl.ir.stages import stages
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.spaces import arranged, at_sizes
from tcdsl.polyhedra.writes import both, cell_map
from tcdsl.simplification.scans import Scan, scan_of

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
    counter.add_all()
    return OperationCount.of(counter.operations)


@dataclass(frozen=True, slots=True)
class _Executed:
    """What the points of a statement did: ``points`` of them gave ``written`` cells a value, and ``changed`` cells
    were written at all, zeros by predicate included.
    """

    points: int
    written: CellSet
    changed: CellSet


class _StatementCounter:
    """Counts the statements of a program in order: ``_StatementCounter(program, values).add(statement)``.

    ``operations`` holds the counts so far.
    """

    def __init__(self, program: Program, values: TensorValues, written: dict[str, ValuedCells] | None = None) -> None:
        self.operations: Counter[str] = Counter()
        self._program = program
        self._values = values
        self._declarations = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
        self._continued = {s.start.tensor for s in program.statements if isinstance(s.start, Keep)}
        self._continued.update(name for repeat in program.repeats for name in repeat.inputs)
        self._continued.update(new for _, new in program.updates)
        self._written: dict[str, ValuedCells] = {} if written is None else written

    def add_all(self) -> None:
        """Count all statements, those of loops as often as they run."""
        for stage in stages(self._program):
            for statement in stage.statements:
                self.add(statement)
            if stage.repeat is not None:
                self._add_rounds(stage.repeat)

    def _add_rounds(self, repeat: Repeat) -> None:
        inputs = zip(repeat.body.inputs[1:], repeat.inputs, strict=True)
        written = {inner.name: self._written[name] for inner, name in inputs if name in self._written}
        for values in self._values.rounds(repeat):
            counter = _StatementCounter(repeat.body, values, dict(written))
            counter.add_all()
            self.operations.update(counter.operations)
            for name, new in repeat.body.updates:
                written.pop(name, None)
                if new in counter._written:
                    written[name] = counter._written[new]
        for result, (name, _) in zip(repeat.results, repeat.body.updates, strict=True):
            if name in written:
                self._written[result] = written[name]

    def add(self, statement: Statement) -> None:
        """Count one statement."""
        before = self._start(statement)
        # Which values are zero by predicate matters where they are added, or where what they leave free is.
        name = statement.target.tensor
        zeros = statement.accumulate in _SUMS or (name in self._continued and statement.accumulate == "assign")
        scan = scan_of(statement, self._declarations[name].shape)
        if scan is not None:
            executed, operations = self._going_on(statement, scan, zeros)
        else:
            executed, operations = self._executed(statement, zeros)
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

    def _start(self, statement: Statement) -> ValuedCells:
        name = statement.target.tensor
        shape = self._values.shape(name)
        match statement.start:
            case Keep(tensor=earlier):
                return self._written.get(earlier, ValuedCells(shape, 0, None))
            case Fill(value=Constant(value=value)):
                return ValuedCells.nowhere(shape, value)
            case Fill(value=value):
                once = AffinePoints(isl.Set("{ [] }"), self._values.sizes)
                counter: ExpressionCounter[AffinePoints] = ExpressionCounter(self._declarations)
                counter.add(value, once)
                self.operations.update(counter.operations)
                return ValuedCells(shape, 0, None)
            case _:
                return ValuedCells.nowhere(shape, neutral_element(statement.accumulate, self._declarations[name].dtype))

    def _executed(self, statement: Statement, zeros: bool) -> tuple[_Executed, Counter[str]]:
        try:
            return self._affine(statement, zeros)
        except NotAffine:
            return self._listed(statement, zeros)

    def _going_on(self, statement: Statement, scan: Scan, zeros: bool) -> tuple[_Executed, Counter[str]]:
        # Each term joins one cell, and all but the first of a row what the cell before has.
        sizes = self._values.sizes
        executed, operations = self._executed(replace(statement, domain=Domain.from_set(scan.points)), zeros)
        written = image(AffinePoints(at_sizes(statement.domain.set, sizes), sizes), statement.target.indices)
        axis = statement.target.indices.index(index(scan.variable))
        terms, rows = executed.points, cardinality(written.project_out(isl.dim_type.set, axis, 1))
        for again in _taken_again(statement, scan):
            taken, more = self._executed(again, zeros)
            operations.update(more)
            terms += taken.points
        rows += sum(self._executed(begun, False)[0].points for begun in _begun_anew(statement, scan))
        return _Executed(terms - min(terms, rows) + cardinality(written), written, written), operations

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


def _taken_again(statement: Statement, scan: Scan) -> list[Statement]:
    # The terms that cells before had too.
    return [
        replace(statement, domain=Domain.from_set(points), condition=both(test, statement.condition))
        for points, test in scan.again(statement.domain.set)
    ]


def _begun_anew(statement: Statement, scan: Scan) -> list[Statement]:
    # The cells behind others that take all terms anew.
    points, value = statement.domain.set, constant(0, statement.value.dtype)
    cells = [axis.name for axis in statement.target.indices if isinstance(axis, IndexValue)]
    restarts = arranged(points, cells).intersect(scan.restarts)
    begun = [(restarts, None), (arranged(points.subtract(scan.points), cells).subtract(restarts), scan.changed())]
    return [
        replace(statement, domain=Domain.from_set(each), value=value, condition=test)
        for each, test in (begun if scan.ends else begun[:1])
    ]


_BLOCK = 1 << 20

CellSet = isl.Set | np.ndarray


@dataclass(frozen=True, slots=True)
class ValuedCells:
    """``cells`` have values (``None``: all), the others hold ``otherwise``; ``shape`` is the tensor's."""

    shape: tuple[int, ...]
    otherwise: bool | int | float
    cells: CellSet | None

    @staticmethod
    def nowhere(shape: tuple[int, ...], otherwise: bool | int | float) -> ValuedCells:
        """All cells hold ``otherwise``."""
        return ValuedCells(shape, otherwise, _nothing(shape))

    def fresh(self, cells: CellSet, neutral: bool | int | float) -> int:
        """How many of ``cells`` hold nothing but ``neutral``, so that a first value needs no operation."""
        if self.cells is None or self.otherwise != neutral:
            return 0
        return number(_without(cells, self.cells, self.shape))

    def after(self, changed: CellSet | None, written: CellSet) -> ValuedCells:
        """What is written after a statement; ``changed`` are cells that lose their value first."""
        if self.cells is None:
            return self
        kept = self.cells if changed is None else _without(self.cells, changed, self.shape)
        return ValuedCells(self.shape, self.otherwise, _together(kept, written, self.shape))


def image(points: AffinePoints, indices: Sequence[Expr]) -> isl.Set:
    """The cells at ``indices``, over the points. `NotAffine` if an index is data."""
    cells = cell_map(points.points, [at_values(axis, points.sizes) for axis in indices])
    return points.points.reset_tuple_id().apply(cells).coalesce()


def number(cells: CellSet) -> int:
    """How many cells there are."""
    return int(np.count_nonzero(cells)) if isinstance(cells, np.ndarray) else cardinality(cells)


def _nothing(shape: tuple[int, ...]) -> isl.Set:
    return isl.Set.empty(isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(shape)))


def _mask(cells: CellSet, shape: tuple[int, ...]) -> np.ndarray:
    if isinstance(cells, np.ndarray):
        return cells
    mask = np.zeros(shape, bool)
    for rows in coordinates(cells, _BLOCK):
        mask[tuple(rows.T)] = True
    return mask


def _without(cells: CellSet, others: CellSet, shape: tuple[int, ...]) -> CellSet:
    if isinstance(cells, np.ndarray) or isinstance(others, np.ndarray):
        # NumPy makes scalars of arrays without axes.
        return np.asarray(_mask(cells, shape) & ~_mask(others, shape))
    return cells.subtract(others)


def _together(cells: CellSet, others: CellSet, shape: tuple[int, ...]) -> CellSet:
    if isinstance(cells, np.ndarray) or isinstance(others, np.ndarray):
        return np.asarray(_mask(cells, shape) | _mask(others, shape))
    return cells.union(others).coalesce()


_BLOCK = 1 << 19


class CountedValues(TensorValues):
    """`TensorValues` of large domains: their points some at a time."""

    def points(self, statement: Statement, *, ordered: bool) -> Iterator[Array]:
        """The points of a statement's domain, as isl's sets say them; in any order unless ``ordered``."""
        rows: Iterator[Array] = coordinates(at_sizes(statement.domain.set, self.sizes), _BLOCK)
        if not ordered:
            yield from rows
            return
        names = statement.domain.variables
        every = np.concatenate([np.zeros((0, len(names)), np.int64), *rows])
        yield every[np.lexsort(every.T[::-1])] if names else every

    def rounds(self, repeat: Repeat) -> Iterator[TensorValues]:
        """The rounds of a loop; where nothing asks for values, none are computed."""
        if _depends_on_values(repeat):
            yield from super().rounds(repeat)
            return
        body = repeat.body
        shapes = [self.shape(name) for name in repeat.inputs]
        arrays = [
            np.broadcast_to(np.zeros((), tensor.dtype), shape)
            for tensor, shape in zip(body.inputs[1:], shapes, strict=True)
        ]
        plan = plan_of(body)
        for number in self.numbers(repeat):
            of_round = np.empty(number, bool) if body.inputs[0].shape else np.array(number)
            yield type(self)(body, [of_round, *arrays], plan.bind([of_round.shape, *shapes]))


def _depends_on_values(repeat: Repeat) -> bool:
    """Whether the operations of a loop's rounds depend on data: on conditions, indices or numbers of rounds."""
    body = repeat.body
    tests: list[Expr] = [end for inner in body.repeats for end in inner.ends]
    for statement in body.statements:
        tests.extend(statement.target.indices)
        if statement.condition is not None:
            tests.append(statement.condition)
        for node in (node for expr in statement_expressions(statement) for node in walk(expr)):
            if isinstance(node, Read):
                tests.extend(node.indices)
            elif isinstance(node, Apply) and node.primitive in ("where", "and_", "or_"):
                tests.append(node.arguments[0])
    return (
        repeat.condition is not None
        or any(isinstance(part, Read | Local) for test in tests for part in walk(test))
        or any(map(_depends_on_values, body.repeats))
    )
