"""The shapes of results: pointwise operations, composition, transposition, specs of the generalized einsum notation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.rows.inference.equations.affine_axes import ReadAxis, WrittenAxis
from tcdsl.rows.inference.equations.facts import set_least, set_minimum
from tcdsl.rows.inference.equations.row_equations import Meeting, equate_rows, row_of
from tcdsl.rows.inference.equations.row_joins import join_rows
from tcdsl.rows.inference.variables.origin import Contradiction, Origin, Reason, SourcePlace
from tcdsl.rows.inference.variables.row import EMPTY, Dimension, Row, RowVariable
from tcdsl.rows.inference.variables.shape import Shape
from tcdsl.rows.inference.variables.transaction import Transaction
from tcdsl.rows.spec import ROWS, AxisSpec, RowSpec, Spec, SpecSyntaxError, parse_spec

__all__ = ["compose", "describe", "einsum", "equate", "names_of", "pointwise", "transpose"]


def pointwise(operands: Sequence[Shape], origin: Origin) -> Shape:
    """``100 | 2`` and ``2`` give ``100 | 2``: the least shape that all operands broadcast to, each row by itself.

    Rows are aligned at the right. An axis of size 1 stretches. `ShapeError` where two other sizes, or two labels, meet.
    """
    if not operands:
        raise ValueError("a pointwise operation has operands")
    with Transaction(origin, describe(operands, origin)) as transaction:
        rows = [
            join_rows(transaction, [shape.rows[place] for shape in operands], row) for place, row in enumerate(ROWS)
        ]
    return Shape(rows[0].resolved, rows[1].resolved, rows[2].resolved)


def compose(left: Shape, right: Shape, origin: Origin) -> Shape:
    """``3 -> 5`` after ``100 | 2 -> 3`` is ``100 | 2 -> 5``: the logic ``"@"``.

    The output axes of ``right`` are the input axes of ``left``, one by one. They do not stretch: what is summed over is
    said by both operands, since a sum of copies is hardly ever meant. Batch rows broadcast.
    """
    names = names_of((left, right), origin)
    with Transaction(origin, describe((left, right), origin)) as transaction:
        hint = _NO_INPUT if left.input == EMPTY else _NO_BATCH if right.batch == EMPTY else ""
        meeting = Meeting(names[0], names[1], "input", "output", hint=hint)
        equate_rows(transaction, left.input, right.output, meeting)
        batch = join_rows(transaction, [left.batch, right.batch], "batch")
    return Shape(batch.resolved, right.input.resolved, left.output.resolved)


def transpose(operand: Shape, origin: Origin) -> Shape:
    """``100 | 2 -> 3`` becomes ``100 | 3 -> 2``: the logic ``"T"``. Nothing can go wrong, whatever ``origin`` is."""
    del origin
    return Shape(operand.batch, operand.output, operand.input)


def equate(left: Shape, right: Shape, origin: Origin) -> None:
    """Both have the same axes in each row: what a loop carries, before a round and after it."""
    names = names_of((left, right), origin)
    with Transaction(origin, describe((left, right), origin)) as transaction:
        for one, other, row in zip(left.rows, right.rows, ROWS, strict=True):
            meeting = Meeting(f"{names[0]} before a round", f"{names[1]} after it", row, row)
            equate_rows(transaction, one, other, meeting)


_NO_INPUT = (
    "`@` sums over the input axes of what is on its left; `tensor(x, input=1)` says how many trailing axes of an array "
    "are input axes"
)
_NO_BATCH = (
    "all axes of a plain array are output axes; `tensor(x, batch=1)` says how many leading ones count the samples of a "
    "batch"
)


def names_of(shapes: Sequence[Shape], origin: Origin) -> list[str]:
    """How messages call the operands."""
    given = [*origin.operands, *([""] * len(shapes))]
    found = []
    for place, shape in enumerate(shapes):
        name = given[place] or shape.name
        found.append(f"`{name}`" if name else f"operand {place + 1}")
    return found


def describe(shapes: Sequence[Shape], origin: Origin) -> Callable[[], list[str]]:
    """The lines that show the operands' shapes in a message: ``x: 100 | 2``."""

    def lines() -> list[str]:
        names = [name.strip("`") for name in names_of(shapes, origin)]
        return [f"{name}: {shape}" for name, shape in zip(names, shapes, strict=True)]

    return lines


def einsum(spec: str, operands: Sequence[Shape], origin: Origin) -> Shape:
    """``einsum("ij;jk=>ik", (a, b), origin)`` is the shape of the contraction.

    - A name is one size, wherever it stands. Nothing stretches.
    - What a row variable stands for broadcasts: on the left it is the least row that all its uses on the right
      broadcast to.
    - Axes that a row of an operand has beyond those of a spec without row variable are reduced, as are rows that the
      spec leaves out.
    - A position on the right needs a larger axis; on the left the axis has the size that the positions need.
    - An affine axis on the right has "valid" size, on the left 1 + the largest index.

    `ShapeError` at the place in the spec; `DslSyntaxError` for a spec that does not parse.
    """
    parsed = _parsed(spec, origin)
    with Transaction(origin, describe(operands, origin)) as transaction:
        if len(parsed.operands) != len(operands):
            extra = parsed.operands[min(len(operands), len(parsed.operands) - 1)]
            raise Contradiction(
                f"the spec has {len(parsed.operands)} operands, and {len(operands)} are given",
                place=SourcePlace(parsed.text, *extra.place),
            )
        result = _Einsum(transaction, parsed, names_of(operands, origin)).result(operands)
    return Shape(result.batch.resolved, result.input.resolved, result.output.resolved)


_cached = lru_cache(maxsize=1024)(parse_spec)


def _parsed(text: str, origin: Origin) -> Spec:
    try:
        return _cached(text)
    except SpecSyntaxError as error:
        place = SourcePlace(text, error.start, error.stop)
        found = Contradiction(error.fact, hint=error.hint, place=place).diagnostic(origin, None)
        raise Diagnostic(DslSyntaxError, found.fact, found.span, found.notes, found.hint).error() from None


class _Einsum:
    def __init__(self, transaction: Transaction, spec: Spec, names: Sequence[str]) -> None:
        self._transaction = transaction
        self._spec = spec
        self._names = names
        self._sizes: dict[str, Dimension] = {}
        self._read: set[str] = set()
        self._uses: dict[str, list[Row]] = {}
        self._places: dict[str, SourcePlace] = {}

    def result(self, operands: Sequence[Shape]) -> Shape:
        for place, (shape, spec) in enumerate(zip(operands, self._spec.operands, strict=True)):
            for row, given, wanted in zip(ROWS, shape.rows, spec.rows, strict=True):
                self._operand(self._names[place], row, given, wanted or RowSpec(place=spec.place))
        joined = {name: self._joined(name, rows) for name, rows in self._uses.items()}
        made = [EMPTY if wanted is None else self._made(wanted, joined) for wanted in self._spec.result.rows]
        return Shape(made[0], made[1], made[2])

    def _place(self, place: tuple[int, int]) -> SourcePlace:
        return SourcePlace(self._spec.text, *place)

    def _size(self, name: str) -> Dimension:
        return self._sizes.setdefault(name, Dimension())

    # -- operands

    def _operand(self, name: str, row: str, given: Row, wanted: RowSpec) -> None:
        # Without a row variable, any axes may be to the left; closing adds none.
        rest = RowVariable(least=wanted.variable is None)
        if wanted.variable is not None:
            self._uses.setdefault(wanted.variable, []).append(Row((), rest))
            self._places.setdefault(wanted.variable, self._place(wanted.place))
        leading = tuple(self._read_axis(axis) for axis in wanted.leading)
        trailing = tuple(self._read_axis(axis) for axis in wanted.trailing)
        places = (
            tuple(self._place(axis.place) for axis in wanted.leading),
            tuple(self._place(axis.place) for axis in wanted.trailing),
        )
        meeting = Meeting(name, "the spec", row, row, self._place(wanted.place), places)
        equate_rows(self._transaction, given, Row(leading, rest, trailing), meeting)

    def _joined(self, name: str, rows: Sequence[Row]) -> Row:
        # What is reduced is no part of the result, and still has to fit.
        written = {row.variable for row in self._spec.result.rows if row is not None}
        shown = name if name in ROWS else ""
        return join_rows(self._transaction, rows, shown, self._places[name], kept=name not in written)

    def _read_axis(self, axis: AxisSpec) -> Dimension:
        self._read.update(name for _, name in axis.terms)
        if axis.name is not None:
            return self._size(axis.name)
        made = Dimension()
        place = self._place(axis.place)
        if axis.position is not None:
            set_minimum(self._transaction, made, axis.position + 1, self._position(axis), place)
        elif axis.terms:
            self._transaction.add(ReadAxis(made, self._terms(axis), axis.offset, self._transaction.origin, place))
        return made

    def _terms(self, axis: AxisSpec) -> tuple[tuple[int, str, Dimension], ...]:
        return tuple((coefficient, name, self._size(name)) for coefficient, name in axis.terms)

    def _position(self, axis: AxisSpec) -> Reason:
        return Reason(text=f"position {axis.position} in `{self._spec.text}`")

    # -- the result

    def _made(self, wanted: RowSpec, joined: Mapping[str, Row]) -> Row:
        leading = tuple(self._written_axis(axis) for axis in wanted.leading)
        trailing = tuple(self._written_axis(axis) for axis in wanted.trailing)
        if wanted.variable is None:
            return row_of(leading + trailing)
        middle = joined.get(wanted.variable, EMPTY).resolved
        if middle.variable is None:
            return row_of(leading + middle.trailing + trailing)
        return Row(leading + middle.leading, middle.variable, middle.trailing + trailing)

    def _written_axis(self, axis: AxisSpec) -> Dimension:
        place = self._place(axis.place)
        for _, name in axis.terms:
            if name not in self._read:
                raise Contradiction(
                    f"nothing determines the size of `{name}`, which the result alone has",
                    hint=f"name `{name}` in an operand, or write to a target that has this axis",
                    place=place,
                )
        if axis.name is not None:
            return self._size(axis.name)
        found = Dimension()
        if axis.terms:
            self._transaction.add(WrittenAxis(found, self._terms(axis), axis.offset, self._transaction.origin, place))
            return found
        least = 1
        if axis.position is not None:
            least = axis.position + 1
            set_minimum(self._transaction, found, least, self._position(axis), place)
        set_least(self._transaction, found, least)
        return found
