"""The reset form on a target that holds cells: those start anew that its index list can reach, the others stay.

::

    R[j] = sum(q[i] * A[i, j]), j > 0       R[j] = 0, j > 0
                                            R[j] += q[i] * A[i, j], j > 0

    R[j + 1] = sum(A[i, j])                 R[j + 1] = 0, 0 <= j < A_1
                                            R[j + 1] += A[i, j]

Conditions and reads with a reduced variable only filter, and so do the ``if``s of a generator and brackets. An index
that is data reaches all positions of its axis, unless a condition says which: then cells are recorded as flags first,
and what is stored is a choice by them::

    touched[f(i)] |= true                       the cells that the points of a statement reach
    T[i] = new[i] where touched[i], else T[i]   every cell once
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import apply, cast, conjuncts, index, neutral_constant, truth
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, IndexValue, index_variables, is_affine_index
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Statement, Tensor
from tcdsl.polyhedra.linear import linear_form
from tcdsl.ranges.restarts import Restarts, starts_all_anew
from tcdsl.ranges.sketches.sketch import Sketch, free_variables, variables_of

__all__ = ["CellValue", "record_choice", "record_partial_reset", "record_touched", "restarted"]


def restarted(indices: Sequence[Expr], conditions: Sequence[Expr]) -> tuple[Expr, ...]:
    """Those of ``conditions`` that say which cells of its target a reset starts anew."""
    used = frozenset().union(*map(free_variables, indices))
    return tuple(condition for condition in conjuncts(*conditions) if free_variables(condition) <= used)


def record_partial_reset(sketch: Sketch, target: SymbolicTensor, builder: ProgramBuilder) -> SymbolicTensor:
    """Record ``sketch``, a reset, onto ``target``, whose other cells stay."""
    everything = replace(sketch, restarts=None, resets=True)
    if starts_all_anew(sketch):
        return builder.record(everything, target.label)
    free = FreshNames(builder.size_names())
    names = tuple(free.fresh(f"axis_{k}") for k in range(target.rank))
    restarts = Restarts(sketch, builder)
    clearing = _clearing(sketch, names, restarts)
    cells = restarts.cells(clearing, names)
    if cells is not None and restarts.every(cells):
        return builder.record(everything, target.label)
    cleared = _cleared(sketch, clearing, names, cells, target, builder)
    access = replace(sketch.target, tensor=builder.fresh_name(target.label))
    return builder.record(replace(sketch, target=access, start=Keep(cleared.name), restarts=None), target.label)


def _clearing(sketch: Sketch, names: Sequence[str], restarts: Restarts) -> Sketch:
    """The statement over the target's variables alone that reaches the cells to start anew."""
    indices = sketch.target.indices
    if not sketch.restarts:
        pairs = zip(names, indices, strict=True)
        indices = tuple(axis if is_affine_index(axis) else index(name) for name, axis in pairs)
    used = tuple(dict.fromkeys(name for axis in indices for name in variables_of(axis)))
    return replace(
        sketch,
        # The statement itself requires equal extents, unless a read elsewhere in it shifts the variable.
        mode="part",
        target=replace(sketch.target, indices=indices),
        variables=used,
        ranges=(),
        conditions=sketch.restarts or (),
        filters=restarts.conditions(frozenset(used)),
        unique=False,
        restarts=None,
        resets=True,
    )


def _cleared(
    sketch: Sketch,
    clearing: Sketch,
    names: Sequence[str],
    cells: isl.Set | None,
    target: SymbolicTensor,
    builder: ProgramBuilder,
) -> SymbolicTensor:
    """The target with the neutral element in the ``cells`` that start anew; None of those that data chooses."""
    start = sketch.start
    neutral = start.value if isinstance(start, Fill) else neutral_constant(sketch.accumulate, sketch.dtype)
    store = replace(clearing, accumulate="assign", start=Keep(target.name), value=neutral)
    if cells is None:
        if _one_to_one(clearing.target.indices):
            return builder.record(store, target.label)
        touched = record_touched(clearing, target, truth(True), builder)
        return record_choice(touched, target, lambda _: neutral, sketch, builder)
    name = sketch.target.tensor
    access = Access(name, tuple(map(index, names)), sketch.target.span)
    statement = Statement(access, "assign", Keep(target.name), neutral, Domain.from_set(cells), span=sketch.span)
    label = "" if name == target.label else target.label
    builder.add_statement(statement, Tensor(name, target.element_type, target.extents, label, sketch.span))
    return SymbolicTensor(builder, name, target.element_type, target.extents, target.label)


def _one_to_one(indices: Sequence[Expr]) -> bool:
    """Whether an index list names each cell once: ``[i, 2*j + 1]``, one variable on each axis that has some."""
    seen: set[str] = set()
    for axis in indices:
        names = index_variables(axis)
        if not is_affine_index(axis) or len(names) > 1 or names & seen:
            return False
        terms, _ = linear_form(axis)
        if not all(isinstance(atom, IndexValue) for atom in terms if index_variables(atom)):
            return False
        seen |= names
    return True


CellValue = Callable[[SymbolicTensor], Expr]
"""The cell of a tensor, of the target's shape, that is being chosen."""


def record_touched(sketch: Sketch, target: SymbolicTensor, value: Expr, builder: ProgramBuilder) -> SymbolicTensor:
    """Record which cells the points of ``sketch`` reach, as a bool tensor of the shape of ``target``.

    ``value`` is true; its accesses are those that a point needs.
    """
    access = replace(sketch.target, tensor=builder.fresh_name(f"{target.label}_touched"))
    flags = replace(sketch, target=access, dtype="bool", accumulate="or", start=Neutral(), value=value)
    return builder.record(replace(flags, previous="", resets=True), target.label)


def record_choice(
    touched: SymbolicTensor,
    target: SymbolicTensor,
    chosen: Callable[[CellValue], Expr],
    sketch: Sketch,
    builder: ProgramBuilder,
) -> SymbolicTensor:
    """Record ``chosen`` in the cells of ``target`` that are ``touched``; the others keep what they hold."""
    names = FreshNames(builder.size_names())
    variables = tuple(names.fresh(f"axis_{k}") for k in range(target.rank))
    indices = tuple(index(variable) for variable in variables)

    def cell(tensor: SymbolicTensor) -> Expr:
        return tensor.cell(indices, sketch.span).expr

    held = cell(target)
    value = apply("where", cell(touched), cast(chosen(cell), held.dtype, sketch.span), held, span=sketch.span)
    whole = Sketch(
        Access(builder.fresh_name(target.label), indices, sketch.span),
        target.element_type,
        target.extents,
        "existing",
        "assign",
        Neutral(),
        value,
        variables,
        label=target.label,
        span=sketch.span,
    )
    made = builder.record(whole, target.label)
    builder.written.same(made.name, target.name)
    return made
