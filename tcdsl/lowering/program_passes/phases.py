"""Statements whose targets go in steps, one phase at a time: the adjoints of strided convolutions and of pooling.

Cells ``z`` along an axis of step s are ``z = s*q + r``: the phases r = 0 .. s - 1. In one phase the points of a cell
form a window that is the same for every q, so no bound and no index needs a division::

    d_x[z] += d_y[i] * w[z - 2*i]      d_x[2*q] += d_y[q - m] * w[2*m]          0 <= m <= 1
    for 0 <= z - 2*i < 3               d_x[2*q + 1] += d_y[q - m] * w[2*m + 1]  m = 0

A target that steps itself, ``d_x[2*i + p]``, has phases too. Cells of a phase that no point writes get their start
value in its loops, so memory is not filled with zeros first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, IndexValue, index_variables, is_affine_index, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Statement, map_statement
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.program_passes.merging import Group
from tcdsl.lowering.program_passes.schedule import LoopOrder, plan
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.affine import substituted, with_variable
from tcdsl.polyhedra.linear import linear_form, normalized
from tcdsl.polyhedra.spaces import constant_range, dimension_names

__all__ = ["Stride", "in_phases", "row_of_phases", "strides_of"]

# Steps beyond which phases would be too much code.
_LARGEST_STEP = 4


@dataclass(frozen=True, slots=True)
class Stride:
    """An axis of a target whose cells are visited in phases.

    Either the index is a variable ``cell`` and ``cell - step * other`` lies between constants, or the index is ``step *
    cell + other + offset`` with ``other``, if there is one, between constants less than ``step`` apart.
    """

    axis: int
    step: int
    cell: str
    other: str | None
    gather: bool
    offset: int = 0


def strides_of(statement: Statement) -> tuple[Stride, ...]:
    """The axes of ``statement`` that have phases; none if its cells have an order, or errors name its variables."""
    if ACCUMULATORS[statement.accumulate].ordered or can_fail(statement):
        return ()
    if not all(map(is_affine_index, statement.target.indices)):
        return ()
    mentioned = [name for axis in statement.target.indices for name in index_variables(axis)]
    if len(set(mentioned)) != len(mentioned):
        return ()
    found: list[Stride] = []
    for number, axis in enumerate(statement.target.indices):
        stride = _gathered(statement, number, axis, mentioned) or _stepping(statement, number, axis)
        if stride is not None:
            found.append(stride)
        elif not isinstance(axis, IndexValue):
            return ()
    return tuple(found)


def _gathered(statement: Statement, number: int, axis: Expr, mentioned: Sequence[str]) -> Stride | None:
    if not isinstance(axis, IndexValue) or statement.accumulate == "assign":
        return None
    for cell, other, step in _steps(statement.domain):
        if cell == axis.name and other not in mentioned and _bounded(statement.domain.set, cell, other, step):
            return Stride(number, step, cell, other, True)
    return None


@lru_cache(maxsize=1024)
def _steps(domain: Domain) -> tuple[tuple[str, str, int], ...]:
    # The variables and steps of all inequalities on ``cell - step * other``, for steps that have phases.
    found: list[tuple[str, str, int]] = []
    for part in domain.set.get_basic_sets():
        for constraint in part.get_constraints():
            if constraint.is_equality() or not _plain(constraint):
                continue
            scales = [
                (constraint.get_coefficient_val(isl.dim_type.set, k).to_python(), name)
                for k, name in enumerate(domain.variables)
                if constraint.involves_dims(isl.dim_type.set, k, 1)
            ]
            if len(scales) != 2:
                continue
            for (own, cell), (others, other) in (scales, scales[::-1]):
                if abs(own) == 1 and 2 <= -others * own <= _LARGEST_STEP:
                    found.append((cell, other, -others * own))
    return tuple(found)


def _plain(constraint: isl.Constraint) -> bool:
    return not constraint.involves_dims(isl.dim_type.div, 0, constraint.dim(isl.dim_type.div))


def _bounded(points: isl.Set, cell: str, other: str, step: int) -> bool:
    # Whether cell - step * other lies between constants.
    distance = apply("sub", index(cell), apply("mul", integer(step), index(other)))
    return bool(constant_range(with_variable(points, "distance", distance), "distance"))


def _stepping(statement: Statement, number: int, axis: Expr) -> Stride | None:
    terms, offset = linear_form(axis)
    if not all(isinstance(atom, IndexValue) for atom in terms) or not 1 <= len(terms) <= 2:
        return None
    step = max(terms.values())
    cell = next(atom.name for atom, scale in terms.items() if scale == step and isinstance(atom, IndexValue))
    others = [atom.name for atom in terms if isinstance(atom, IndexValue) and atom.name != cell]
    if not 2 <= step <= _LARGEST_STEP or any(terms[index(other)] != 1 for other in others):
        return None
    if others and len(constant_range(statement.domain.set, others[0]) or range(step + 1)) > step:
        return None
    return Stride(number, step, cell, others[0] if others else None, False, offset)


def row_of_phases(made: LoopOrder, tensors: Declarations, context: isl.Set, names: FreshNames) -> LoopOrder:
    """The plan of a statement with phases: if they make its row the best innermost loop, that order; else as it is."""
    if made.full or not made.plain:
        return made
    strides = [stride for stride in strides_of(made.statement) if stride.gather]
    if not strides:
        return made
    first = (0,) * len(strides)
    statement, extents = _at(made.statement, strides, first, made.tensor.shape, _axes(strides, names))
    phase = plan(statement, tensors, context, extents)
    stride = next((each for each in strides if phase.row in _variables(phase, each)), None)
    if stride is None or phase.row is None:
        return made
    row, cells = stride.cell, tuple(name for name in made.cells if name != stride.cell)
    reduced = [name for name in made.statement.domain.variables if name not in made.cells]
    return replace(made, outer=cells, inner=(*reduced, row), scalar=False, window=False)


def in_phases(group: Group, tensors: Declarations, context: isl.Set, names: FreshNames) -> list[Group]:
    """The group with a plan for each phase of the statements that have them, as one group or several."""
    if len(group.plans) > 1:
        plans: list[LoopOrder] = []
        for made in group.plans:
            shared = made.outer[: group.depth]
            strides = [each for each in _strides(made) if each.cell not in shared and not made.scan]
            phases = [phase for rows in _phases(made, strides, tensors, context, names) for phase in rows]
            # A shared loop may be the best innermost one of a phase, but it has to stay outside.
            plans.extend(phases if all(phase.outer[: group.depth] == shared for phase in phases) else [made])
        return [replace(group, plans=tuple(plans))]
    (made,) = group.plans
    own = [] if made.scan else _strides(made)
    if not own:
        return [group]
    rows = _phases(made, own, tensors, context, names)
    if len(rows) == 1 and rows[0] == [made]:
        return [group]
    if len(made.tensor.shape) == 1 or any(phase.innermost is None for phases in rows for phase in phases):
        return [Group((phase,), len(phase.outer)) for phases in rows for phase in phases]
    return [Group(tuple(phases), len(phases[0].around)) for phases in rows]


def _strides(made: LoopOrder) -> tuple[Stride, ...]:
    # Scalars that add up contiguous cells need no phases.
    if made.fixed is not None or made.full or (made.plain and made.row is None):
        return ()
    return strides_of(made.statement)


def _phases(
    made: LoopOrder, strides: Sequence[Stride], tensors: Declarations, context: isl.Set, names: FreshNames
) -> list[list[LoopOrder]]:
    """Plans for all phases, those together that differ along the row only; the plan itself if they do not help.

    All axes go in phases if every phase is then a window; else the row alone does.
    """
    for chosen in (strides, [each for each in strides if each.cell == made.row]):
        if not chosen:
            continue
        axes = _axes(chosen, names)
        every = [
            (number, plan(statement, tensors, context, extents))
            for number in product(*(range(stride.step) for stride in chosen))
            for statement, extents in (_at(made.statement, chosen, number, made.tensor.shape, axes),)
        ]
        some = [phase for _, phase in every if not phase.statement.domain.is_empty()]
        if not some or not all(phase.plain for _, phase in every):
            continue
        row = some[0].innermost
        simple = all(phase.window or phase.single for phase in some)
        if not simple and (row not in some[0].extents or (chosen == strides and len(strides) > 1)):
            continue
        along = next((k for k, each in enumerate(chosen) if row is not None and row in _variables(some[0], each)), None)
        found: dict[tuple[int, ...], list[LoopOrder]] = {}
        for number, phase in every:
            key = tuple(residue for k, residue in enumerate(number) if k != along)
            found.setdefault(key, []).append(phase if row is None else _along(phase, row))
        if along is not None and chosen[along].gather and all(phase.window for phase in some):
            for key, phases in found.items():
                residues = (*key[:along], None, *key[along:])
                statement, extents = _at(made.statement, chosen, residues, made.tensor.shape, axes)
                whole = plan(statement, tensors, context, extents)
                cell = _along(replace(whole, full=False, window=False, outer=()), chosen[along].cell)
                phases[0] = replace(phases[0], whole=replace(cell, window=True))
        return list(found.values())
    return [[made]]


def _variables(made: LoopOrder, stride: Stride) -> frozenset[str]:
    return index_variables(made.statement.target.indices[stride.axis])


def _along(phase: LoopOrder, row: str) -> LoopOrder:
    """The plan with its innermost loop along ``row``."""
    others = tuple(name for name in phase.cells if name != row)
    if phase.full:
        return replace(phase, outer=(*others, row))
    reduced = tuple(name for name in phase.statement.domain.variables if name not in phase.cells)
    inner = phase.inner if phase.row == row else (*reduced, row)
    return replace(phase, outer=others, inner=inner, scalar=False)


_Axes = Mapping[int, tuple[str, str]]


def _axes(strides: Sequence[Stride], names: FreshNames) -> _Axes:
    # Names for what counts the cells of a phase along an axis, and for the points of their windows.
    return {stride.axis: (names.fresh("q"), names.fresh("m")) for stride in strides}


def _at(
    statement: Statement, strides: Sequence[Stride], phases: Sequence[int | None], shape: Sequence[Expr], axes: _Axes
) -> tuple[Statement, dict[str, Expr]]:
    """The statement at the cells of these phases, and how many cells q counts; an axis without one stays as it is.

    The cells along a stride's axis are ``step * q + phase`` with ``0 <= q < extent``.
    """
    extents: dict[str, Expr] = {}
    for stride, phase in zip(strides, phases, strict=True):
        if phase is None:
            continue
        q, window = axes[stride.axis]
        statement = _in_phase(statement, stride, phase, q, window)
        rest = normalized(apply("add", shape[stride.axis], integer(stride.step - 1 - phase)))
        extents[q] = apply("floor_div", rest, integer(stride.step))
    return statement, extents


def _in_phase(statement: Statement, stride: Stride, phase: int, q: str, window: str) -> Statement:
    cell = apply("add", apply("mul", integer(stride.step), index(q)), integer(phase))
    values: dict[Expr, Expr] = {}
    points = statement.domain.set
    if stride.gather and stride.other is not None:
        values = {index(stride.cell): cell, index(stride.other): apply("sub", index(q), index(window))}
        fresh = {stride.cell: q, stride.other: window}
    else:
        low = constant_range(points, stride.other) if stride.other is not None else range(1)
        at = next((k for k in low or () if (phase - stride.offset - k) % stride.step == 0), None)
        fresh = {stride.cell: q}
        if at is None:
            # No point writes these cells.
            points, at = points.subtract(points), phase - stride.offset
        values = {index(stride.cell): apply("add", index(q), integer((phase - stride.offset - at) // stride.step))}
        if stride.other is not None:
            values[index(stride.other)] = integer(at)
    order = [fresh.get(name, name) for name in dimension_names(points) if index(name) not in values or name in fresh]
    made = map_statement(statement, lambda expr: normalized(substitute(expr, values)))
    indices = (*made.target.indices[: stride.axis], normalized(cell), *made.target.indices[stride.axis + 1 :])
    target = replace(made.target, indices=indices)
    return replace(made, target=target, domain=Domain.from_set(substituted(points, values, order)))
