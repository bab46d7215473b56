"""Values as statements: ``T[n] = value, condition`` where no text says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcdsl.errors import raise_diagnostics
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.points.definitions import Definition
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.staging.target_states import Fresh, TargetState
from tcdsl.frontend.statements.condition_variables import Open
from tcdsl.frontend.statements.reduction_scopes import BoundStatement, ReductionScopes
from tcdsl.frontend.stores.stores import TargetStore, record_sketch, sketch_of, store
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Access
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

__all__ = ["bound_sketch", "record_bare", "record_value", "scopes_of"]


def scopes_of(definitions: Mapping[str, Definition], environment: FunctionScope) -> ReductionScopes:
    """What binds the variables of a statement that mentions ``definitions``."""
    builder = environment.session.builder
    extents = (lambda tensor: builder.tensor(tensor).shape) if environment.oob == "skip" else None
    return ReductionScopes(definitions, builder.size_names(), extents)


def bound_sketch(
    state: TargetState, stored: TargetStore, target: Access, bound: BoundStatement, oob: str, span: Span | None
) -> Sketch:
    """The statement before range inference."""
    parts = {"ranges": bound.ranges, "conditions": bound.conditions, "filters": bound.filters}
    return sketch_of(state, stored, target, bound.value, bound.variables, oob=oob, span=span, **parts)


def record_value(
    environment: FunctionScope,
    state: TargetState,
    indices: Sequence[Expr],
    point: PointValue,
    conditions: Sequence[PointValue] = (),
) -> SymbolicTensor:
    """Record ``T[indices] = point, *conditions``; `state` says what the target is."""
    builder = environment.session.builder
    stored = store(state, "assign", False, point.value, point.span)
    definitions = dict(point.definitions)
    for each in conditions:
        definitions.update(each.definitions)
    scopes = scopes_of(definitions, environment)
    asked = tuple(each.value.expr for each in conditions)
    bound = scopes.bind(Open(stored.accumulate, tuple(indices), stored.value, asked))
    raise_diagnostics(scopes.faults)
    target = Access(builder.fresh_name(state.label), bound.indices, point.span)
    sketch = bound_sketch(state, stored, target, bound, environment.oob, point.span)
    return record_sketch(sketch, state, builder)


def record_bare(environment: FunctionScope, point: PointValue, label: str) -> SymbolicTensor:
    """Record a value without index variables as a tensor of rank 0."""
    return record_value(environment, Fresh(label), (), point)
