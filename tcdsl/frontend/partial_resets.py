"""The reset form on a target that holds cells: those start anew that the conditions on its variables admit.

::

    R[j] = sum(q[i] * A[i, j]), j > 0       R[j] = 0, j > 0
                                            R[j] += q[i] * A[i, j], j > 0

Conditions with a reduced variable only filter, and so do the ``if``s of a generator and brackets. Without conditions it
is all cells, of a fixed index those at its position. An index list that may name a cell twice under conditions
(``R[j // 2]``, ``R[ids[j]]``) is recorded as flags first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.frontend.chosen_cells import record_choice, record_touched
from tcdsl.frontend.environment import Builder
from tcdsl.frontend.sharing import fresh_name
from tcdsl.frontend.symbols import SymbolicTensor
from tcdsl.ir.accumulators import neutral_element
from tcdsl.ir.build import constant, index, truth
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, index_variables, is_affine_index
from tcdsl.ir.program import Fill, Keep
from tcdsl.shapes.accesses import conjuncts
from tcdsl.shapes.linear import linear_form
from tcdsl.shapes.nesting import free_variables, variables_of
from tcdsl.shapes.sketch import Sketch

__all__ = ["record_partial_reset", "restarted"]


def restarted(indices: Sequence[Expr], conditions: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """Those of ``conditions`` that say which cells of its target a reset starts anew; None if it is all of them."""
    used = frozenset().union(*map(free_variables, indices))
    found = tuple(condition for condition in conjuncts(conditions) if free_variables(condition) <= used)
    return found if found or not all(map(_varies, indices)) else None


def _varies(axis: Expr) -> bool:
    # Whether an index has a variable, or is data: else it is fixed.
    return bool(free_variables(axis)) or not is_affine_index(axis)


def record_partial_reset(sketch: Sketch, target: SymbolicTensor, builder: Builder) -> SymbolicTensor:
    """Record ``sketch``, a reset, onto ``target``, whose other cells stay."""
    indices = sketch.target.indices
    if not sketch.restarts:
        taken = set(builder.size_names())
        names = [fresh_name(f"axis_{k}", taken) for k in range(len(indices))]
        indices = tuple(index(name) if _varies(axis) else axis for name, axis in zip(names, indices, strict=True))
    used = tuple(dict.fromkeys(name for axis in indices for name in variables_of(axis)))
    clearing = replace(
        sketch,
        target=replace(sketch.target, indices=indices),
        variables=used,
        ranges=(),
        conditions=sketch.restarts or (),
        filters=(),
        unique=False,
        restarts=None,
    )
    if isinstance(sketch.start, Fill):
        neutral = sketch.start.value
    else:
        neutral = constant(neutral_element(sketch.accumulate, sketch.dtype), compute_dtype(sketch.dtype))
    if _one_to_one(indices):
        store = replace(clearing, accumulate="assign", start=Keep(target.name), value=neutral)
        cleared = builder.record(store, target.label)
    else:
        touched = record_touched(clearing, target, truth(True), builder)
        cleared = record_choice(touched, target, lambda _: neutral, sketch, builder)
    access = replace(sketch.target, tensor=builder.new_version(target.label))
    return builder.record(replace(sketch, target=access, start=Keep(cleared.name), restarts=None), target.label)


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
