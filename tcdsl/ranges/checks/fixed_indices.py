"""Indices without variables, as in ``x[50]``, ``A[n, i]`` and ``y[-1] = 5.0``: out of range they are faults.

Points out of range are skipped along an index variable. Without one the statement would skip all of its points, and
lose what was written or leave zeros, where Python's own ``x[50]`` is an error. So it is an assertion that such an index
is in range for all sizes for which its statement has points at all: those whose conditions, brackets and branches on
sizes and index variables hold. What depends on data takes no part in that, since it is not known before the call runs.

Likewise ``y[(i + 2) % N] = x[i]`` divides by a size, which must not be 0 where there are points.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import apply, conjuncts, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, Read, Reduction, SizeValue, certain_children, transform
from tcdsl.polyhedra.affine import NotAffine, condition_set, expression_of_condition
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.polyhedra.spaces import arranged
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, Level, levels_of
from tcdsl.ranges.solving.constraints import form_in_range, named_sizes
from tcdsl.ranges.solving.regions import Ranges, affine_guard, region_of
from tcdsl.span import Span

__all__ = ["check_divisors", "check_fixed_indices"]


def check_fixed_indices(inference: Inference, root: Level, ranges: Ranges) -> None:
    """State that every index without variables is in range, or note a fault where it never is."""
    if inference.sketch.mode == "valid":
        return
    points: dict[int, isl.Set] = {}
    for level in levels_of(root):
        for access in level.accesses:
            if not _is_fixed(access) or _was_made_too_small(inference, access):
                continue
            conditions = list(_required(inference, access))
            if not conditions:
                continue
            if _always_reached(level, access):
                for condition in conditions:
                    inference.require(condition, _message(inference, access), access.span)
                continue
            reached = _reached(inference, access.guard, _points(inference, level, ranges, points))
            fits = form_in_range(inference.algebra, *access.bounds)
            _require_where_reached(inference, fits, reached, _message(inference, access), access.span)


def check_divisors(inference: Inference, root: Level, ranges: Ranges) -> None:
    """State that the sizes by which index variables and sizes are divided at every point are not 0.

    Data divided by 0 is 0, as in NumPy's arithmetic of integers; an index variable or a size divided by 0 is no number.
    """
    if inference.sketch.mode == "valid":
        return
    algebra, points = inference.algebra, dict[int, isl.Set]()
    for level in _certain_levels(root):
        indices = inference.sketch.target.indices if level is root else ()
        for expr in (*indices, level.value, *level.conditions, *level.filters):
            for node, divisor in _divisions(expr):
                size = named_sizes(divisor, algebra)
                positive = algebra.nonnegative(algebra.form(divisor))
                known = apply("ge", size, integer(1)) if positive else apply("ne", size, integer(0))
                reached = _points(inference, level, ranges, points)
                message = f"`{inference.text(node)}` divides by 0"
                _require_where_reached(inference, known, reached, message, node.span)


def _certain_levels(level: Level) -> Iterator[Level]:
    yield level
    for inner in level.reductions.values():
        if not inner.guard:
            yield from _certain_levels(inner)


def _divisions(expr: Expr) -> Iterator[tuple[Apply, Expr]]:
    match expr:
        case Reduction():
            return
        case Apply(primitive="floor_div" | "mod", arguments=(_, divisor), dtype="int64"):
            if not isinstance(divisor, Constant) and _is_size(divisor):
                yield expr, divisor
    for part in certain_children(expr):
        yield from _divisions(part)


def _is_size(expr: Expr) -> bool:
    return isinstance(expr, SizeValue | Constant) or (
        isinstance(expr, Apply) and expr.dtype == "int64" and all(map(_is_size, expr.arguments))
    )


def _is_fixed(access: AxisAccess) -> bool:
    return access.form is not None and access.extent is not None and not access.form.variables


def _was_made_too_small(inference: Inference, access: AxisAccess) -> bool:
    # A tensor that an earlier statement has made, not the user: `tcdsl.ranges.checks.writable` says what to write.
    form, extent = access.bounds
    if not access.written or inference.sketch.sized is None:
        return False
    return inference.algebra.negative(extent - form - 1)


def _required(inference: Inference, access: AxisAccess) -> Iterator[Expr]:
    # What has to hold of the sizes, and is not known.
    algebra, (position, extent) = inference.algebra, access.bounds
    for form in (position, extent - position - 1):
        if not algebra.nonnegative(form):
            yield apply("ge", algebra.expr(form), integer(0))


def _always_reached(level: Level, access: AxisAccess) -> bool:
    return level.parent is None and not (level.variables or level.conditions or level.filters or access.guard)


def _points(inference: Inference, level: Level, ranges: Ranges, known: dict[int, isl.Set]) -> isl.Set:
    """The points of a level as far as sets can say them, if indices without variables skip none."""
    if id(level) in known:
        return known[id(level)]
    base = None
    if level.parent is not None:
        around = _points(inference, level.parent, ranges, known)
        base = arranged(_reached(inference, level.guard, around), level.scope_variables)
    free = replace(
        level,
        conditions=_of_sizes(inference, level.conditions),
        filters=_of_sizes(inference, level.filters),
        accesses=[access for access in level.accesses if not _is_fixed(access)],
    )
    # Without what is left out a variable may be unbounded, which is no fault here.
    known[id(level)] = region_of(inference.trial(), free, level.scope_variables, base, ranges).points
    return known[id(level)]


def _reached(inference: Inference, guard: tuple[Expr, ...], points: isl.Set) -> isl.Set:
    conditions = [named_sizes(condition, inference.algebra) for condition in conjuncts(*_of_sizes(inference, guard))]
    return affine_guard(conditions, points)[0]


def _of_sizes(inference: Inference, conditions: tuple[Expr, ...]) -> tuple[Expr, ...]:
    # In values run-time integers are read, where they are sizes in indices.
    def rule(expr: Expr) -> Expr:
        return (inference.scope.number(expr.tensor) or expr) if isinstance(expr, Read) else expr

    return tuple(transform(condition, rule) for condition in conditions)


def _require_where_reached(inference: Inference, fits: Expr, points: isl.Set, message: str, span: Span | None) -> None:
    algebra, reached = inference.algebra, points.params()
    try:
        context = algebra.context_of(reached)
        wrong = reached.intersect_params(context).subtract(condition_set(fits, reached))
        if wrong.is_empty():
            return
        condition = expression_of_condition(context.subtract(wrong).coalesce().gist(context))
    except NotAffine:
        condition = fits
    inference.require(condition, message, span)


def _message(inference: Inference, access: AxisAccess) -> str:
    form, size = access.bounds
    label = inference.label(access.tensor)
    extent = f"{label}.shape[{access.axis}]"
    index = _written_index(access)
    algebra, behind = inference.algebra, form - size
    from_end = algebra.nonnegative(-behind) and not algebra.nonnegative(form)
    shown, condition = form, f"{inference.text(form)} < {extent}"
    if isinstance(index, ast.Constant | ast.Name | ast.UnaryOp):
        shown = behind if from_end else shown
        condition = f"-{extent} <= {ast.unparse(index)}" if from_end else f"{ast.unparse(index)} < {extent}"
    elif index is not None:
        shown = behind if from_end and behind.value is not None else shown
        condition = f"0 <= {ast.unparse(index)} < {extent}"
    fact = (
        f"the index {_number(inference, shown)} is out of range of axis {access.axis} of {label}, "
        f"which has the extent {inference.number(size)}"
    )
    bound, other = _bound(inference, access, index)
    leave = f"a condition that leaves the statement out, `{condition}`"
    skips = f"{fact}{bound}\n{other}an index without variables skips nothing: write"
    if access.written:
        return f"{skips} {leave}, or make {label} larger"
    read = (access.whole and access.whole.text) or f"{label}[...]"
    return f"{skips} `get({read}, 0.0)` to read 0 there, or {leave}"


def _bound(inference: Inference, access: AxisAccess, index: ast.expr | None) -> tuple[str, str]:
    # Where a letter was bound that was perhaps to be an index variable, and what to write then.
    sketch, whole = inference.sketch, access.whole
    if index is None or whole is None or sketch.span is None or sketch.bound_at is None:
        return "", ""
    if whole.filename != sketch.span.filename or not sketch.span.line <= whole.line <= sketch.span.end_line:
        return "", ""  # in a function that the statement calls
    for name in (node.id for node in ast.walk(index) if isinstance(node, ast.Name)):
        binder = sketch.bound_at(name, sketch.span.line) if len(name) == 1 and name.islower() else None
        if binder is not None:
            text = f"`{binder.text}` " if binder.text and "{" not in binder.text else ""
            return f": `{name}` was bound by {text}in line {binder.line}", "use another letter for an index variable; "
    return "", ""


def _number(inference: Inference, form: Polynomial) -> str:
    # Its value at the call. A size must not be negative, so only what is not can have a name.
    expr = inference.algebra.expr(form)
    if form.value is not None or inference.algebra.nonnegative(form):
        return inference.number(form)
    if isinstance(expr, Apply) and expr.primitive == "neg" and isinstance(expr.arguments[0], SizeValue):
        return f"-{{{expr.arguments[0].name}}}"
    return f"{inference.text(form)}, with {inference.values(form)},"


def _written_index(access: AxisAccess) -> ast.expr | None:
    # As the user has written it; None where that cannot be told.
    try:
        found = ast.parse("" if access.whole is None else access.whole.text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(found, ast.Subscript):
        return None
    axes = found.slice.elts if isinstance(found.slice, ast.Tuple) else [found.slice]
    return axes[access.axis] if access.axis < len(axes) else None
