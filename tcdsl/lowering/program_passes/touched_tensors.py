"""Statements, rewritten and asked what they touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    Expr,
    Read,
    index_variables,
    is_affine_index,
    reads,
    size_names,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Keep, Statement, StatementFacts, Tensor, statement_reads, tensors_read
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.writes import read_cell

__all__ = ["can_fail", "copy_statement", "evaluated", "never_moves", "others_in_each_round", "readers"]

_STAYS = (Boundary.SKIP, Boundary.FILL)


def readers(statements: Iterable[Statement]) -> dict[str, list[int]]:
    """The positions of the statements that need a tensor, for each tensor that some do."""
    found: dict[str, list[int]] = {}
    for position, statement in enumerate(statements):
        for name in tensors_read(statement):
            found.setdefault(name, []).append(position)
    return found


def evaluated(statement: Statement) -> tuple[Expr, ...]:
    """What is evaluated at every point: the condition, if there is one, and the value."""
    return (statement.value,) if statement.condition is None else (statement.condition, statement.value)


def never_moves(value: Expr) -> bool:
    """Whether no read in ``value`` fails or moves where it is out of range."""
    return all(boundary in _STAYS for read in reads(value) for boundary in read.boundaries)


_KEEP: Any = StatementFacts.__dict__["_in_range"].__set__


def _is_always_in_range(statement: Statement) -> bool:
    # Asked by many passes of most statements.
    try:
        return statement._in_range
    except AttributeError:
        boundaries = {boundary for read in statement_reads(statement) for boundary in read.boundaries}
        found = boundaries.issubset(_STAYS) and all(map(is_affine_index, statement.target.indices))
        _KEEP(statement, found)
        return found


def can_fail(statement: Statement, tensors: Mapping[str, Tensor] = MappingProxyType({})) -> bool:
    """Whether the statement may stop the program: data indices that are checked, cells that must be unique.

    Boundaries that move an index fail on an axis without cells, which one of ``tensors`` with a constant extent is not.
    """
    if statement.unique:
        return True
    if _is_always_in_range(statement):
        return False

    def empty(name: str, axis: int) -> bool:
        extent = tensors[name].shape[axis] if name in tensors else None
        return not (isinstance(extent, Constant) and extent.value)

    target = statement.target
    data = [axis for axis, place in enumerate(target.indices) if not is_affine_index(place)]
    if data and statement.oob == "check":
        return True
    if statement.oob != "skip" and any(empty(target.tensor, axis) for axis in data):
        return True
    # Where there is a point the target has cells.
    filled = statement.start.tensor if not data and isinstance(statement.start, Keep) else None
    return any(
        boundary is Boundary.CHECK or (boundary not in _STAYS and read.tensor != filled and empty(read.tensor, axis))
        for read in statement_reads(statement)
        for axis, boundary in enumerate(read.boundaries)
    )


def copy_statement(tensor: Tensor, name: str, names: FreshNames) -> Statement:
    """``name[c] = tensor[c]`` for all cells."""
    variables = names.cells(len(tensor.shape))
    value = read_cell(tensor, variables, compute_dtype(tensor.dtype))
    return replace(over_box(name, variables, tensor.shape, value), span=tensor.span)


def others_in_each_round(axes: Sequence[Expr]) -> bool:
    """Whether data choose several places, and other data in other rounds of a loop: they are few then, as a rule."""
    chosen = [part for axis in axes if index_variables(axis) for part in walk(axis) if isinstance(part, Read)]
    return any(size_names(axis) for read in chosen for axis in read.indices)
