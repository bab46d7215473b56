"""What the loop backwards has without a tape of its own, because another tape says it.

Values that only the adjoint of a round needs, such as how many terms of a minimum tie, are computed there, if all that
they are made of is there anyway. What a round leaves is what the next one finds::

    update y = y_2;  y_tape[t] = y          y_2 = y_tape[t + 1]  if t + 1 < rounds
                                            y_2 = y_3            if t + 1 == rounds, the result of the loop
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.held_cells import cells_needed
from tcdsl.autodiff.loop_derivatives.tapes import taped_tensor
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, Read
from tcdsl.ir.fresh_names import FreshNames, cell_names
from tcdsl.ir.program import Access, Keep, Program, Statement, Tensor, Unset, tensors_read
from tcdsl.ir.stages import needed_by, tensors_needed
from tcdsl.polyhedra.affine import condition_set
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.spaces import named
from tcdsl.polyhedra.writes import read_cell

__all__ = ["reads_no_more", "with_next_state", "with_own_values"]


def with_own_values(
    values: Program, linear: Program, needed: Collection[str], unchanged: Collection[str], kept: Collection[str]
) -> tuple[Program, Program]:
    """``values``, and ``linear`` computing those of them that nothing else is made of, nor the tensors ``needed``.

    They are made of inputs that no round changes, or of those that are ``kept`` for ``linear`` anyway.
    """
    rest = tensors_needed(values, needed).union(*map(needed_by, values.repeats), *(r.named for r in values.rules))
    moved = [each for each in values.statements if each.target.tensor not in rest]
    while True:
        made = {each.target.tensor for each in moved}
        own = {*unchanged, *kept, *made} - values.ruled.keys()
        others = [each for each in values.statements if each not in moved]
        read = {name for each in others for name in tensors_read(each)}
        fewer = [each for each in moved if set(tensors_read(each)) <= own and each.target.tensor not in read]
        if fewer == moved:
            break
        moved = fewer
    found = replace(
        linear,
        inputs=tuple(each for each in linear.inputs if each.name not in made),
        tensors=(*(each for each in values.tensors if each.name in made), *linear.tensors),
        statements=(*moved, *linear.statements),
    )
    if not made & {each.name for each in linear.inputs} or not all(reads_no_more(found, linear, name) for name in kept):
        return values, linear
    values = replace(
        values,
        tensors=tuple(each for each in values.tensors if each.name not in made),
        statements=tuple(each for each in values.statements if each not in moved),
        outputs=tuple(name for name in values.outputs if name not in made),
    )
    return values, found


def reads_no_more(found: Program, linear: Program, name: str, other: str = "") -> bool:
    """Whether ``found`` reads no cells of its input ``name`` that ``linear`` does not read of it, or of ``other``."""
    tensor = linear.tensor(other or name)
    before, after = cells_needed(linear, tensor.name), cells_needed(found, name)
    places = taped_tensor(linear, tensor).places
    if before is None:
        return True
    if after is None or places != taped_tensor(found, found.tensor(name)).places:
        return False
    variables = cell_names(len(tensor.shape), (size.name for size in linear.sizes))
    return bool(named(after, variables).is_subset(named(before, variables)))


def with_next_state(
    linear: Program, made: Tensor, tape: Tensor, last: Tensor, number: Expr, names: FreshNames
) -> Program:
    """``linear``, which takes what its input ``made`` is from the ``tape`` of the next round, or from ``last``."""
    cells = cells_needed(linear, made.name)
    variables = cell_names(len(made.shape), (size.name for size in linear.sizes))
    points = box(variables, made.shape)
    if cells is not None:
        points = points.intersect(named(cells, variables))
    following = apply("add", number, integer(1))
    begun = replace(made, name=names.fresh(made.name))
    element = compute_dtype(made.dtype)
    place = (following, *map(index, variables))
    first = Read(tape.name, place, (Boundary.SKIP,) * len(place), element)
    before_last, at_last = (
        Domain.from_set(points.intersect(condition_set(apply(relation, following, tape.shape[0]), points)))
        for relation in ("lt", "ge")
    )
    target = tuple(map(index, variables))
    statements = (
        Statement(Access(begun.name, target), "assign", Unset(), first, before_last),
        Statement(Access(made.name, target), "assign", Keep(begun.name), read_cell(last, variables, element), at_last),
    )
    return replace(
        linear,
        inputs=(*(each for each in linear.inputs if each.name != made.name), last),
        tensors=(begun, made, *linear.tensors),
        statements=(*statements, *linear.statements),
    )
