"""Range inference: what a sketch leaves open becomes domains, extents, and assertions about sizes.

``C[i, j] += A[i, k] * B[k, j]`` on a new target gives C the shape ``(A_0, B_1)``, the domain ``0 <= i < A_0 and 0
<= j < B_1 and 0 <= k < A_1``, and the assertion ``A_1 == B_0``. The rules are those of the language: explicit
ranges, then

1. an index variable that stands bare on several axes finds equal extents (`tcdsl.ranges.solving.extents`);
2. a target without extents is solved in rounds (`tcdsl.ranges.solving.inferred_extents`);
3. with a declared or existing target all points count whose accesses are in range (`tcdsl.ranges.solving.regions`).

A sketch of ``mode`` ``valid`` knows the last of these rules alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcdsl.errors import ShapeError
from tcdsl.ir.build import integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, is_affine_index
from tcdsl.ir.program import Keep, Statement, Tensor
from tcdsl.polyhedra.limits import refused_beyond_limits
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.checks.fixed_indices import check_divisors, check_fixed_indices
from tcdsl.ranges.checks.injectivity import check_variables_on_target, is_injective
from tcdsl.ranges.checks.recurrences import check_recurrence
from tcdsl.ranges.checks.writable import check_writable
from tcdsl.ranges.sketches.index_forms import normalized_sketch
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import Resolved, Sketch, free_variables
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, Ends, Level, explicit_ranges, levels_of, root_level
from tcdsl.ranges.solving.extents import check_ends_are_sizes, check_equal_extents, inferred_extent
from tcdsl.ranges.solving.inferred_extents import RoundSolver
from tcdsl.ranges.solving.regions import Ranges, Region, conjunction, region_of
from tcdsl.ranges.solving.temporaries import NestedReductions
from tcdsl.span import Span

__all__ = ["resolve"]


def resolve(sketch: Sketch, scope: ProgramScope) -> Resolved:
    """The statements that compute ``sketch``, with their domains, the tensors they make, and what must hold at the
    call.

    Raises `ShapeError` or `DslSyntaxError` for faults that need no sizes, all those of the sketch together.
    """
    with refused_beyond_limits(ShapeError, "this statement", sketch.span):
        return _resolved(sketch, scope)


def _resolved(sketch: Sketch, scope: ProgramScope) -> Resolved:
    inference = Inference(sketch, scope)
    sketch = inference.sketch = normalized_sketch(inference)
    root = root_level(inference)
    levels = levels_of(root)
    accesses = [access for level in levels for access in level.accesses]
    plain = sketch.accumulate == "assign" and not sketch.unique
    complete = not plain or sketch.mode == "valid" or check_variables_on_target(inference, root.variables)
    explicit = explicit_ranges(root, inference.algebra)
    check_equal_extents(inference, accesses, explicit)
    inference.raise_faults()
    ranges = Ranges({}, explicit)
    # A reduction that stands under two others, because it may fail, has its variables once.
    variables = list(dict.fromkeys(name for level in levels for name in level.variables))
    if sketch.mode == "fresh":
        check_ends_are_sizes(inference, root, explicit)
        conditions = [each for level in levels for each in (*level.conditions, *level.filters)]
        solver = RoundSolver(inference, variables, explicit, accesses, conditions=conditions)
        ranges = Ranges(solver.solve(), explicit)
        inference.raise_faults()
    elif sketch.mode != "valid":
        ranges = Ranges({}, _bounded_inside(inference, root, variables, explicit, accesses))
    shape = _shape(inference, root, ranges)
    inference.raise_faults()
    check_fixed_indices(inference, root, ranges)
    check_divisors(inference, root, ranges)
    inference.raise_faults()
    temporaries = NestedReductions(inference, ranges)
    region = temporaries.regions[id(root)] = region_of(inference, root, root.variables, None, ranges)
    inference.raise_faults()
    written_accesses = [access for access in root.accesses if access.written]
    unique = sketch.unique
    if sketch.accumulate == "assign" and complete:
        unique = _checked_unique(inference, region, written_accesses, ranges)
    statement = _statement(inference, root, region, temporaries, unique)
    check_writable(inference, root, region, ranges)
    check_recurrence(inference, root, temporaries.regions)
    inference.raise_faults()
    start = sketch.start
    label = scope.tensor(start.tensor).label or start.tensor if isinstance(start, Keep) else sketch.label
    label = "" if label == sketch.target.tensor else label
    ends = scope.tensor(start.tensor).ends if isinstance(start, Keep) else _ends(inference, root, explicit)
    made = Tensor(sketch.target.tensor, sketch.dtype, shape, label, sketch.span, ends)
    return Resolved((*temporaries.statements, statement), (*temporaries.tensors, made), tuple(inference.assertions))


def _bounded_inside(
    inference: Inference,
    root: Level,
    variables: Sequence[str],
    explicit: Mapping[str, Ends],
    accesses: Sequence[AxisAccess],
) -> Mapping[str, Ends]:
    # Points out of range in a reduction drop out of it alone. What only reads inside of reductions mention has the
    # range that these would give it by rule 2: `t[()] += log(sum(exp(x[i, k]))), i > 0`. An index that is data, as in
    # `y[(i + 2) % N]`, bounds nothing.
    bounding = [access.index for access in root.accesses if access.form is not None]
    mentioned = frozenset().union(*map(free_variables, bounding))
    left = [name for name in root.variables if name not in mentioned and not explicit.get(name, Ends()).highs]
    if not left:
        return explicit
    solved = RoundSolver(inference.trial(), variables, explicit, accesses).solve()
    for access in accesses:
        access.settled = False
    found = {name: Ends([solved[name].low], [solved[name].high]) for name in left if name in solved}
    return {**explicit, **found}


def _shape(inference: Inference, root: Level, ranges: Ranges) -> tuple[Expr, ...]:
    algebra = inference.algebra
    shape = []
    for access in root.accesses:
        if not access.written:
            continue
        if access.extent is None:
            extent = inferred_extent(inference, access, ranges.solved)
            shape.append(integer(0) if extent is None else algebra.expr(extent))
            continue
        shape.append(algebra.expr(access.extent))
        _require_extent(inference, access, access.extent)
    return tuple(shape)


def _ends(inference: Inference, root: Level, explicit: Mapping[str, Ends]) -> tuple[Span | None, ...]:
    # Which condition says how long each axis of a new target is, here or where what is read along it was made.
    if inference.sketch.mode != "fresh":
        return ()

    def end(name: str | None) -> Span | None:
        if name is None or (name in explicit and explicit[name].highs):
            return None if name is None else explicit[name].condition
        along = [a for level in levels_of(root) for a in level.accesses if a.form is not None and a.form.bare == name]
        said = (inference.scope.tensor(a.tensor).end(a.axis) for a in along if not a.written)
        return next((span for span in said if span is not None), None)

    found = tuple(end(None if a.form is None else a.form.bare) for a in root.accesses if a.written)
    return found if any(found) else ()


def _require_extent(inference: Inference, access: AxisAccess, extent: Polynomial) -> None:
    if inference.sketch.mode in ("declared", "valid"):
        axis = f"axis {access.axis} of {inference.label(access.tensor)}"
        fact = f"{axis} would have the negative extent {inference.text(extent)}"
        inference.require_nonnegative(extent, fact, access.span)


def _checked_unique(inference: Inference, region: Region, accesses: list[AxisAccess], ranges: Ranges) -> bool:
    # Whether cells have to be checked at run time: not known to be written once.
    if not inference.sketch.unique:
        return not is_injective(inference, region, accesses, ranges.solved)
    trial = inference.trial()
    return not is_injective(trial, region, accesses, ranges.solved) or bool(trial.assertions)


def _statement(
    inference: Inference, root: Level, region: Region, temporaries: NestedReductions, unique: bool
) -> Statement:
    sketch = inference.sketch
    accumulate = sketch.accumulate
    if sketch.mode == "valid" and accumulate == "assign":
        written = frozenset().union(*map(free_variables, sketch.target.indices))
        if not written.issuperset(root.variables):
            # At most one point for each cell, as is asserted, whatever the others of its variables are.
            accumulate = "or" if sketch.dtype == "bool" else "add"
    condition = conjunction([temporaries.lowered(test, root) for test in region.tests])
    value = temporaries.lowered(root.value, root)
    indices = tuple(temporaries.lowered(index, root) for index in sketch.target.indices)
    return Statement(
        replace(sketch.target, indices=indices),
        accumulate,
        sketch.start,
        value,
        Domain.from_set(region.points),
        condition,
        "check" if sketch.mode == "valid" and all(map(is_affine_index, indices)) else sketch.oob,
        unique,
        sketch.label,
        sketch.span,
    )
