"""The values of a program's tensors, computed when a condition or a data index asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tcdsl.autodiff.cost.cardinality import coordinates
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Read, is_affine_index
from tcdsl.ir.interpreter.expression_evaluation import working_dtype
from tcdsl.ir.interpreter.many_points import Array, PointValues, elementwise
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Fill, Keep, Program, Statement
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.polyhedra.spaces import at_sizes

__all__ = ["TensorValues"]

_BLOCK = 1 << 19


class TensorValues:
    """``TensorValues(program, arrays, sizes)("m")`` is the array that the statement of ``m`` makes, in float64.

    Statements that no value depends on are never executed. Raises `DataIndexError`.
    """

    def __init__(self, program: Program, inputs: Sequence[Array], sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._program = program
        self._given = {tensor.name: array for tensor, array in zip(program.inputs, inputs, strict=True)}
        self._statements = {statement.target.tensor: statement for statement in program.statements}
        self._known: dict[str, Array] = {}

    def __call__(self, name: str) -> Array:
        """The array of the tensor ``name``."""
        if name not in self._known:
            if name in self._given:
                made = self._given[name].astype(working_dtype(str(self._given[name].dtype)))
            else:
                made = self._made(self._statements[name])
            self._known[name] = made
        return self._known[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the tensor ``name``."""
        return tuple(evaluate_size(extent, self.sizes) for extent in self._program.tensor(name).shape)

    def blocks(self, statement: Statement, *, ordered: bool = False) -> Iterator[PointValues]:
        """The points of a statement's domain, some at a time; all at once and in row-major order if ``ordered``."""
        names = statement.domain.variables
        rows: Iterator[Array] = coordinates(at_sizes(statement.domain.set, self.sizes), _BLOCK)
        if ordered:
            every = np.concatenate([np.zeros((0, len(names)), np.int64), *rows])
            rows = iter([every[np.lexsort(every.T[::-1])]] if names else [every])
        for points in rows:
            yield PointValues({name: points[:, k] for k, name in enumerate(names)}, len(points), self.sizes, self)

    def target(self, statement: Statement) -> Read:
        """The cell that a point of a statement writes, as a read whose boundaries say what ``oob`` does."""
        name = statement.target.tensor
        on_data = {"check": Boundary.CHECK, "skip": Boundary.FILL, "clamp": Boundary.CLAMP}[statement.oob]
        indices = statement.target.indices
        boundaries = tuple(Boundary.SKIP if is_affine_index(axis) else on_data for axis in indices)
        return Read(name, indices, boundaries, compute_dtype(self._program.tensor(name).dtype))

    def _made(self, statement: Statement) -> Array:
        cells = self._started(statement)
        ordered = statement.accumulate == "assign" or ACCUMULATORS[statement.accumulate].ordered
        access = self.target(statement)
        for block in self.blocks(statement, ordered=ordered):
            at = np.arange(block.count)
            if statement.condition is not None:
                at = at[block.of(statement.condition, at, {}).astype(bool)]
            positions, outside = block.cells(access, cells.shape, at, {})
            at = at[~outside]
            places = np.ravel_multi_index(tuple(p[~outside] for p in positions), cells.shape) if positions else at * 0
            _accumulate(statement.accumulate, cells.reshape(-1), places, block.of(statement.value, at, {}))
        return cells

    def _started(self, statement: Statement) -> Array:
        tensor = self._program.tensor(statement.target.tensor)
        dtype = working_dtype(tensor.dtype)
        match statement.start:
            case Keep(tensor=earlier):
                return self(earlier).copy()
            case Fill(value=value):
                single = PointValues({}, 1, self.sizes, self)
                start = single.of(value, np.zeros(1, np.int64), {})[0]
            case _:
                start = neutral_element(statement.accumulate, tensor.dtype)
        return np.full(self.shape(tensor.name), start, dtype)


def _accumulate(accumulate: str, cells: Array, places: Array, values: Array) -> None:
    if accumulate == "assign":
        cells[places] = values
        return
    primitive = ACCUMULATORS[accumulate].primitive
    evaluate = PRIMITIVES[primitive].evaluate
    if isinstance(evaluate, np.ufunc):
        with np.errstate(all="ignore"):
            evaluate.at(cells, places, values)
        return
    # One value per cell at a time, in order.
    order = np.argsort(places, kind="stable")
    while len(order):
        first = np.ones(len(order), bool)
        first[1:] = places[order[1:]] != places[order[:-1]]
        now = order[first]
        cells[places[now]] = elementwise(primitive, (cells[places[now]], values[now]))
        order = order[~first]
