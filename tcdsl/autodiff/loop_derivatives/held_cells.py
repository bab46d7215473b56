"""What a loop leaves behind of the values that its rounds have read: nothing has to be stored that is still there.

``states[t + 1] = f(states[t])`` writes each row once, so after the last round ``states`` holds what every round has
read and made. A round's cells are still there if no later statement of the round and no later round writes them: isl
says so, for any two rounds ``k < j``.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from tcdsl.ir.expressions import is_affine_index
from tcdsl.ir.program import Keep, Program, Statement, statement_reads
from tcdsl.ir.stages import needed_by
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.writes import cell_map, cells_read

__all__ = ["cells_needed", "still_held", "taken_whole", "versions"]

_LATER = "later_"


def versions(values: Program, name: str, new: str) -> dict[str, list[Statement]]:
    """The tensors that the input ``name`` is on its way to ``new``, and the statements that change it after each.

    Empty if ``new`` does not start from its cells.
    """
    made = {statement.target.tensor: statement for statement in values.statements}
    found: dict[str, list[Statement]] = {}
    changes: list[Statement] = []
    while True:
        found[new] = changes
        if new == name:
            return found
        statement = made.get(new)
        if statement is None or not isinstance(statement.start, Keep):
            return {}
        changes = [statement, *changes]
        new = statement.start.tensor


def taken_whole(linear: Program, name: str) -> bool:
    """Whether statements do more than read a tensor: a loop or a rule needs it, or a statement starts from it."""
    starts = (statement.start for statement in linear.statements)
    return (
        any(name in needed_by(repeat) for repeat in linear.repeats)
        or any(name in rule.named for rule in linear.rules)
        or any(isinstance(start, Keep) and start.tensor == name for start in starts)
    )


def cells_needed(linear: Program, name: str) -> isl.Set | None:
    """The cells of an input that the statements of ``linear`` read; ``None`` if isl cannot say it."""
    if taken_whole(linear, name):
        return None
    found: isl.Set | None = None
    for statement in linear.statements:
        for read in statement_reads(statement):
            if read.tensor == name:
                cells = cells_read(statement.domain.set, read)
                if cells is None:
                    return None
                found = cells if found is None else found.union(cells)
    return found


def still_held(
    values: Program, cells: isl.Set | None, changes: Sequence[Statement], every: Sequence[Statement], number: str
) -> bool:
    """Whether no one of ``changes`` in a round, and none of ``every`` in later ones, writes the ``cells`` of the round.

    ``number`` is the size that is the number of the round.
    """
    if cells is None:
        return False
    context = size_context(values)
    cells = cells.intersect_params(context)
    now = _written(changes)
    later = _written(every)
    if now is None or later is None:
        return False
    if not all(cells.is_disjoint(written) for written in now):
        return False
    after = isl.Set(f"[{number}, {_LATER}{number}] -> {{ : {number} < {_LATER}{number} }}").params()
    after = after.intersect(_renamed(context, number))
    return all(cells.intersect_params(after).is_disjoint(_renamed(written, number)) for written in later)


def _written(statements: Sequence[Statement]) -> list[isl.Set] | None:
    found = []
    for statement in statements:
        if not all(map(is_affine_index, statement.target.indices)):
            return None
        try:
            found.append(cell_map(statement.domain.set, statement.target.indices).range().reset_tuple_id())
        except NotAffine:
            return None
    return found


def _renamed(points: isl.Set, number: str) -> isl.Set:
    position = points.find_dim_by_name(isl.dim_type.param, number)
    return points if position < 0 else points.set_dim_name(isl.dim_type.param, position, f"{_LATER}{number}")
