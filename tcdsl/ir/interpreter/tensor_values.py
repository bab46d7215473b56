"""The values of a program's tensors, each computed when something asks for it: the statements of the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tcdsl.errors import Diagnostic, ShapeError, TcdslError
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.dtypes import compute_dtype, is_floating, numpy_dtype
from tcdsl.ir.expressions import Boundary, Read, is_affine_index
from tcdsl.ir.interpreter.host_code import host_code, told_where
from tcdsl.ir.interpreter.index_faults import in_round
from tcdsl.ir.interpreter.point_values import Array, PointValues, elementwise, working_dtype
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Fill, Keep, Program, Repeat, Statement, Unset
from tcdsl.ir.sizes.size_binding import evaluate_size, plan_of

__all__ = ["TensorValues"]


class TensorValues:
    """``TensorValues(program, arrays, sizes)("m")`` is the array that the statement of ``m`` makes, in float64.

    Statements that no value depends on are never executed. Raises `DataIndexError`, and `ShapeError` where a statement
    that promises to write each cell once does not.
    """

    def __init__(self, program: Program, inputs: Sequence[Array], sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._program = program
        self._given = {tensor.name: array for tensor, array in zip(program.inputs, inputs, strict=True)}
        self._statements = {statement.target.tensor: statement for statement in program.statements}
        self._repeats = {name: repeat for repeat in program.repeats for name in repeat.results}
        self._known: dict[str, Array] = {}

    def __call__(self, name: str) -> Array:
        """The array of the tensor ``name``."""
        if name not in self._known:
            if name in self._given:
                made = self._given[name].astype(working_dtype(self._program.tensor(name).dtype))
            elif name in self._repeats:
                for _ in TensorValues.rounds(self, self._repeats[name]):
                    pass
                return self._known[name]
            else:
                made = self._made(self._statements[name])
            self._known[name] = made
        return self._known[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the tensor ``name``."""
        return tuple(evaluate_size(extent, self.sizes) for extent in self._program.tensor(name).shape)

    def label(self, name: str) -> str:
        """What users call the tensor ``name``."""
        return self._program.tensor(name).label or name

    def points(self, statement: Statement, *, ordered: bool) -> Iterator[Array]:
        """The points of a statement's domain, a row for each; all at once and in row-major order if ``ordered``."""
        del ordered
        yield statement.domain.cells(self.sizes)

    def blocks(self, statement: Statement, *, ordered: bool = False) -> Iterator[PointValues]:
        """`points`, for the expressions of the statement."""
        for points in self.points(statement, ordered=ordered):
            coordinates = {name: points[:, k] for k, name in enumerate(statement.domain.variables)}
            yield PointValues(coordinates, len(points), self.sizes, self, self.label, statement.span)

    def target(self, statement: Statement) -> Read:
        """The cell that a point of a statement writes, as a read whose boundaries say what ``oob`` does."""
        name = statement.target.tensor
        on_data = {"check": Boundary.CHECK, "skip": Boundary.FILL, "clamp": Boundary.CLAMP}[statement.oob]
        indices = statement.target.indices
        boundaries = tuple(Boundary.SKIP if is_affine_index(axis) else on_data for axis in indices)
        dtype = compute_dtype(self._program.tensor(name).dtype)
        return Read(name, indices, boundaries, dtype, span=statement.target.span)

    def _made(self, statement: Statement) -> Array:
        ordered = statement.accumulate == "assign" or ACCUMULATORS[statement.accumulate].ordered
        execution = _Execution(self, statement, self._started(statement))
        with np.errstate(all="ignore"):
            for block in self.blocks(statement, ordered=ordered or statement.unique):
                execution.run(block, np.arange(block.count))
        return execution.cells

    def rounds(self, repeat: Repeat) -> Iterator[TensorValues]:
        """The values of a loop's body, in each round that runs; after the last one its results are known here."""
        body, (counter, *inputs) = repeat.body, repeat.body.inputs
        if repeat.host:
            self._hosted(repeat)
            return
        state = {tensor.name: self(name) for tensor, name in zip(inputs, repeat.inputs, strict=True)}
        plan = plan_of(body)
        for number in self.numbers(repeat):
            if repeat.condition is not None and not state[repeat.condition]:
                break
            of_round = np.empty(number, bool) if counter.shape else np.array(number)
            arrays = [of_round, *state.values()]
            values = type(self)(body, arrays, plan.bind([array.shape for array in arrays]))
            yield values
            try:
                state |= {name: values(new) for name, new in body.updates}
            except TcdslError as error:
                raise in_round(error, repeat.number, number) from None
        for result, (name, _) in zip(repeat.results, body.updates, strict=True):
            self._known[result] = state[name]

    def _hosted(self, repeat: Repeat) -> None:
        cells, *given = repeat.only_given
        code = host_code(int(self(cells)[1]))
        arrays = [self(name).astype(numpy_dtype(self._program.tensor(name).dtype)) for name in given]
        try:
            made = code.run(arrays, [self.shape(name) for name in repeat.results])
        except BaseException as fault:
            raise told_where(fault, code.name, repeat.span) from None
        for name, array in zip(repeat.results, made, strict=True):
            self._known[name] = array.astype(working_dtype(self._program.tensor(name).dtype))

    def numbers(self, repeat: Repeat) -> range:
        """The numbers of the rounds, if no condition ends the loop before."""
        point = PointValues({}, 1, self.sizes, self, self.label, repeat.span)
        return range(*map(point.exact, repeat.ends))

    def _started(self, statement: Statement) -> Array:
        tensor = self._program.tensor(statement.target.tensor)
        dtype = working_dtype(tensor.dtype)
        match statement.start:
            case Keep(tensor=earlier):
                return self(earlier).copy()
            case Fill(value=value):
                start = PointValues({}, 1, self.sizes, self, self.label, statement.span).single(value)
            case Unset():
                start = np.nan if is_floating(tensor.dtype) else 0  # NaN shows who reads it
            case _:
                start = neutral_element(statement.accumulate, tensor.dtype)
        return np.full(self.shape(tensor.name), start, dtype)


class _Execution:
    def __init__(self, tensors: TensorValues, statement: Statement, cells: Array) -> None:
        self.cells = cells
        self._label = tensors.label
        self._statement = statement
        self._access = tensors.target(statement)
        self._written: dict[int, int] = {}

    def run(self, block: PointValues, at: Array) -> None:
        """Execute the statement at these points of ``block``, in order."""
        try:
            places, values = self._evaluated(block, at)
        except TcdslError:
            if len(at) < 2:
                raise
            # Nothing has been written: what fails first in the order of the points is to be told.
            for half in np.array_split(at, 2):
                self.run(block, half)
            return
        _accumulate(self._statement.accumulate, self.cells.reshape(-1), places, values)

    def _evaluated(self, block: PointValues, at: Array) -> tuple[Array, Array]:
        # The numbers of the cells that the points write, and what they write there.
        statement = self._statement
        if statement.condition is not None:
            at = at[block.of(statement.condition, at, {}).astype(bool)]
        positions, outside = block.cells(self._access, self.cells.shape, at, {})
        if outside.any():
            at = at[~outside]
            positions = tuple(position[~outside] for position in positions)
        places = np.ravel_multi_index(positions, self.cells.shape) if positions else at * 0
        if statement.unique:
            for place, number in zip(places.tolist(), at.tolist(), strict=True):
                first = self._written.setdefault(place, number)
                if first != number:
                    raise self._written_twice(block, place, (first, number))
        return places, block.of(statement.value, at, {})

    def _written_twice(self, block: PointValues, place: int, numbers: tuple[int, int]) -> TcdslError:
        cell = ", ".join(map(str, np.unravel_index(place, self.cells.shape)))
        points = [", ".join(f"{name} = {values[k]}" for name, values in block.coordinates.items()) for k in numbers]
        return Diagnostic(
            ShapeError,
            f"`=` writes each cell once, but {self._label(self._access.tensor)}[{cell}] is written twice",
            self._statement.span,
            (f"first at {points[0]}, again at {points[1]}",),
            "write an accumulator such as += or >>=, or make the indices unique",
        ).error()


def _accumulate(accumulate: str, cells: Array, places: Array, values: Array) -> None:
    if accumulate == "assign":
        cells[places] = values
        return
    primitive = ACCUMULATORS[accumulate].primitive
    evaluate = PRIMITIVES[primitive].evaluate
    if isinstance(evaluate, np.ufunc):
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
