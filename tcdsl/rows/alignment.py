"""Which index variable runs over which axis, for operands of known rows that a spec relates.

::

    align(parse_spec("...|i->o; i => o"), [RowRanks(1, 1, 1), RowRanks(output=1)])

    operands    [j, o, i], [i]          in the order of storage: batch, output, input
    result      [o], one output axis    j, which the result lacks, is reduced

Sizes play no part here: axes of row variables are marked as those that may stretch, and who stretches is decided where
extents are known (`tcdsl.frontend.logics.logic_staging`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from tcdsl.rows.ranks import RowRanks, counted
from tcdsl.rows.spec import ROWS, AxisSpec, RowSpec, ShapeSpec, Spec, SpecShapeError

__all__ = ["LETTERS", "Alignment", "align"]

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"
"""Index variables for axes that have no name, in this order."""

_STORAGE = (0, 2, 1)  # batch, output, input, as positions in ROWS


@dataclass(frozen=True, slots=True)
class Alignment:
    """The indices of each operand and of the result, in the order of storage, and the result's rows.

    Each is the axis as a spec writes it, on which every name is an index variable. ``text`` is the spec, for messages.
    """

    operands: tuple[tuple[AxisSpec, ...], ...]
    result: tuple[AxisSpec, ...]
    rows: RowRanks
    text: str = field(default="", compare=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """All index variables: those of the result first."""
        axes = (axis for indices in (self.result, *self.operands) for axis in indices)
        return tuple(dict.fromkeys(name for axis in axes for _, name in axis.terms))


def align(spec: Spec, operands: Sequence[RowRanks], target: RowRanks | None = None) -> Alignment:
    """The alignment of operands of these rows, and of a target that exists, if ``target`` is given.

    `SpecShapeError` for an operand that has fewer axes than the spec names, for a target whose rows are not those of
    the result, and for a name that stands in the result alone. As many operands as the spec has.
    """
    return _Aligner(spec).align(operands, target)


class _Aligner:
    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        shapes = (*spec.operands, spec.result)
        axes = [axis for shape in shapes for row in shape.rows if row is not None for axis in row.axes]
        self._names = {name for axis in axes for _, name in axis.terms}
        self._fresh = self._unused()
        self._variables: dict[tuple[str, int], str] = {}
        self._lengths: dict[str, int] = {}

    def _unused(self) -> Iterator[str]:
        yield from (letter for letter in LETTERS if letter not in self._names)
        yield from (name for name in (f"axis_{k}" for k in count()) if name not in self._names)

    def align(self, operands: Sequence[RowRanks], target: RowRanks | None) -> Alignment:
        for shape, ranks in zip(self._spec.operands, operands, strict=True):
            self._measure(shape, ranks)
        # The result's axes get their letters first: they are those of the target.
        result, rows = self._result(target)
        aligned = tuple(self._operand(shape, ranks) for shape, ranks in zip(self._spec.operands, operands, strict=True))
        if target is None:
            self._check_determined(result, aligned)
        return Alignment(aligned, result, rows, self._spec.text)

    def _fault(self, fact: str, place: tuple[int, int], hint: str = "") -> SpecShapeError:
        return SpecShapeError(fact, self._spec.text, *place, hint)

    # -- lengths

    def _measure(self, shape: ShapeSpec, ranks: RowRanks) -> None:
        """Check that the operand has the axes that are named, and note how long its row variables are."""
        for name, row in zip(ROWS, shape.rows, strict=True):
            length = ranks.of(name)
            if row is None:
                continue
            rest = length - len(row.axes)
            if rest < 0:
                given = "none" if not length else f"only {length}"
                fact = f"the spec has {counted(len(row.axes), f'{name} axis')} here, but the operand has {given}"
                hint = "" if length or not ranks.plain or name == "output" else _WRAP
                raise self._fault(fact, row.place, hint)
            if row.variable is not None:
                self._lengths[row.variable] = max(rest, self._lengths.get(row.variable, 0))

    def _result(self, target: RowRanks | None) -> tuple[tuple[AxisSpec, ...], RowRanks]:
        found: list[tuple[AxisSpec, ...]] = []
        for name, row in zip(ROWS, self._spec.result.rows, strict=True):
            given = None if target is None else target.of(name)
            if row is None:
                if given:
                    what = f"the result has no {name} axes, but the target has {given}"
                    raise self._fault(what, self._spec.result.place, f"write the {name} row of the result")
                found.append(())
                continue
            own = self._lengths.get(row.variable, 0) if row.variable is not None else 0
            rest = own if given is None else given - len(row.axes)
            if rest < 0 or (rest > 0 and row.variable is None) or rest < own:
                least = "at least " if row.variable is not None else ""
                needed = counted(len(row.axes) + own, f"{name} axis")
                fact = f"the result has {least}{needed} here, but the target has {given}"
                raise self._fault(fact, row.place)
            found.append(self._row(row, rest, made=target is None))
        ranks = [len(axes) for axes in found]
        return tuple(axis for k in _STORAGE for axis in found[k]), RowRanks(ranks[0], ranks[2], ranks[1])

    def _operand(self, shape: ShapeSpec, ranks: RowRanks) -> tuple[AxisSpec, ...]:
        found = []
        for name, row in zip(ROWS, shape.rows, strict=True):
            length = ranks.of(name)
            if row is None or row.variable is None:
                # Axes that the spec does not speak of, to the left of those that it does: each is reduced.
                axes = () if row is None else row.axes
                place = shape.place if row is None else row.place
                left = tuple(AxisSpec(((1, next(self._fresh)),), place=place) for _ in range(length - len(axes)))
                found.append((*left, *(self._axis(axis) for axis in axes)))
            else:
                found.append(self._row(row, length - len(row.axes)))
        return tuple(axis for k in _STORAGE for axis in found[k])

    # -- axes

    def _row(self, row: RowSpec, length: int, made: bool = False) -> tuple[AxisSpec, ...]:
        middle: tuple[AxisSpec, ...] = ()
        if row.variable is not None:
            variable = row.variable
            names = [self._row_variable(variable, k) for k in reversed(range(length))]
            middle = tuple(AxisSpec(((1, name),), stretches=True, place=row.place) for name in names)
        leading = tuple(self._axis(axis, made) for axis in row.leading)
        return (*leading, *middle, *(self._axis(axis, made) for axis in row.trailing))

    def _row_variable(self, variable: str, position: int) -> str:
        # Rows are aligned at the right, so axes are counted from there.
        key = (variable, position)
        if key not in self._variables:
            self._variables[key] = next(self._fresh)
        return self._variables[key]

    def _axis(self, axis: AxisSpec, made: bool = False) -> AxisSpec:
        if not axis.placeholder:
            return axis
        if made:
            # `_` of a target that is made here: nothing gives the axis more than one cell.
            return AxisSpec(place=axis.place)
        return AxisSpec(((1, next(self._fresh)),), place=axis.place)

    def _check_determined(self, result: Sequence[AxisSpec], operands: Sequence[Sequence[AxisSpec]]) -> None:
        known = {name for indices in operands for axis in indices for _, name in axis.terms}
        for axis in result:
            for _, name in axis.terms:
                if name not in known:
                    fact = f"`{name}` stands in the result only, so nothing determines its range"
                    raise self._fault(fact, axis.place, "use it in an operand, or declare the target with its extents")


_WRAP = "a plain array has output axes only; `tensor(x, batch=1, input=1)` says which axes are batch and input axes"
