"""Logics: the strings that say how the axes of operands and result meet, for operands of known rows.

::

    "."             pointwise, each row aligned at the right
    "@"             the output axes of the second operand meet the input axes of the first
    "T"             input and output axes are swapped
    "ij;jk=>ik"     a spec

On plain arrays, which have output axes only, "@" is NumPy's matmul and "T" reverses the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from tcdsl.rows.alignment import LETTERS, Alignment, align
from tcdsl.rows.ranks import RowRanks, counted
from tcdsl.rows.spec import AxisSpec, SpecShapeError, parse_spec

__all__ = ["COMPOSE", "POINTWISE", "TRANSPOSE", "aligned", "result_may_grow"]

POINTWISE, COMPOSE, TRANSPOSE = ".", "@", "T"

_EVERY = "...|...->..."


@lru_cache(maxsize=4096)
def aligned(logic: str, operands: tuple[RowRanks, ...], target: RowRanks | None = None) -> Alignment:
    """The indices of operands of these rows, and of a target that exists, under ``logic``.

    `SpecSyntaxError` and `SpecShapeError` have the place of the fault in ``logic``.
    """
    if logic.strip() not in _BUILT_IN:
        spec = parse_spec(logic)
        if len(spec.operands) != len(operands):
            wrong = spec.operands[min(len(operands), len(spec.operands)) - 1]
            given = f"the spec has {counted(len(spec.operands), 'operand')}, but {len(operands)} are given"
            raise SpecShapeError(
                given, logic, *wrong.place, "separate the operands by `;`; that of a number is empty, as in `ij;=>i`"
            )
        return align(spec, operands, target)
    try:
        found = _BUILT_IN[logic.strip()](operands, target)
    except SpecShapeError as error:
        # What the built-in logic is short for is not what the user wrote.
        raise SpecShapeError(error.fact, logic, 0, len(logic), error.hint) from None
    whole = (0, len(logic))
    placed = tuple(tuple(replace(axis, place=whole) for axis in indices) for indices in found.operands)
    return Alignment(placed, tuple(replace(axis, place=whole) for axis in found.result), found.rows, logic)


def result_may_grow(logic: str) -> bool:
    """Whether the result has an axis whose operands only say how large it is at least: ``i0``, ``2*i``, ``_``."""
    if logic.strip() in _BUILT_IN:
        return False
    rows = [row for row in parse_spec(logic).result.rows if row is not None]
    return any(axis.name is None for row in rows for axis in (*row.leading, *row.trailing))


def _fault(fact: str, hint: str = "") -> SpecShapeError:
    return SpecShapeError(fact, "", 0, 0, hint)


def _pointwise(operands: Sequence[RowRanks], target: RowRanks | None) -> Alignment:
    return align(parse_spec(f"{';'.join([_EVERY] * len(operands))} => {_EVERY}"), operands, target)


def _transpose(operands: Sequence[RowRanks], target: RowRanks | None) -> Alignment:
    if len(operands) != 1:
        raise _fault(f'the logic "T" has one operand, not {len(operands)}', 'write a spec, as in "ij;jk=>ki"')
    if operands[0].plain and (target is None or target.plain):
        names = [f"axis_{k}" for k in range(operands[0].output)]
        if len(names) <= len(LETTERS):
            names = list(LETTERS[: len(names)])
        text = f"{', '.join(names)}, => {', '.join(reversed(names))}" if names else "=>"
        return align(parse_spec(text), operands, target)
    return align(parse_spec("...|..inner..->..outer.. => ...|..outer..->..inner.."), operands, target)


def _compose(operands: Sequence[RowRanks], target: RowRanks | None) -> Alignment:
    if len(operands) not in (2, 3):
        raise _fault(
            f'the logic "@" has two operands, not {len(operands)}', 'connect two operands, as in `c["@"] = sum(a * b)`'
        )
    left, right = operands[:2]
    if not left.input:
        return _matrix_product(operands, target)
    if left.input != right.output:
        raise _fault(
            f"`@` sums over the input axes of the left operand, of which there are {left.input}, and the output axes "
            f"of the right one, of which there are {right.output}"
        )
    shapes = ["...|..middle..->..outer..", "...|..inner..->..middle.."]
    result = "...|..inner..->..outer.."
    found = align(parse_spec(f"{';'.join([*shapes, result][: len(operands)])} => {result}"), operands, target)
    # The axes that meet are summed over: they do not stretch.
    middle = {name for axis in found.operands[0][left.batch + left.output :] for _, name in axis.terms}

    def fixed(axis: AxisSpec) -> AxisSpec:
        return replace(axis, stretches=axis.stretches and axis.name not in middle)

    return replace(found, operands=tuple(tuple(map(fixed, indices)) for indices in found.operands))


def _matrix_product(operands: Sequence[RowRanks], target: RowRanks | None) -> Alignment:
    left, right = (each.total for each in operands[:2])
    if not left or not right:
        raise _fault("`@` takes arrays of rank 1 or more", "use `*` to scale by a number")
    rows, columns = "i" * (left > 1), "k" * (right > 1)
    shapes = (f"{'...' * (left > 1)}{rows}j", f"{'...' * (right > 1)}j{columns}")
    batch = "..." if left > 2 or right > 2 else ""
    flat = [RowRanks(output=left), RowRanks(output=right)]
    text = f"{';'.join(shapes)} => {batch}{rows}{columns}"
    found = align(parse_spec(text), flat, None if target is None else RowRanks(output=target.total))
    tags = dict(zip(_variables(found.operands[1]), operands[1].tags, strict=True))
    tags.update(zip(_variables(found.operands[0]), operands[0].tags, strict=True))
    ranks = RowRanks.of_tags([tags.get(axis.name, "output") for axis in found.result])
    if target is not None and target != ranks:
        raise _fault(f"the product has {ranks}, but the target has {target}")
    if len(operands) == 2:
        return replace(found, rows=ranks)
    # The third operand of fma is added to what the other two give: aligned with it at the right.
    third = operands[2].total
    if third > len(found.result):
        raise _fault(f"the third operand has rank {third}, and the product has rank {len(found.result)}")
    added = tuple(replace(axis, stretches=True) for axis in found.result[len(found.result) - third :])
    return replace(found, operands=(*found.operands, added), rows=ranks)


def _variables(indices: Sequence[AxisSpec]) -> list[str | None]:
    return [axis.name for axis in indices]


_BUILT_IN = {POINTWISE: _pointwise, COMPOSE: _compose, TRANSPOSE: _transpose}
