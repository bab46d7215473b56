"""Tensor statements: from ``T[index, ...] <accumulate>= value [, condition]*`` to a recorded statement of the program.

::

    C[i, j] += A[i, k] * B[k, j]                    accumulate; a new target starts from the neutral element
    C[i, j] = sum(A[i, k] * B[k, j])                reset: the whole value is one reduction call
    O[i] >>= x[i + k], k < 3                        conditions follow the value
    assign(T[p[i]], "=:", v[i], unique=True)        any accumulator, with options
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcdsl.errors import Diagnostic, DslSyntaxError, ShapeError, raise_diagnostics
from tcdsl.frontend.arrays.array_stores import refuse_bitwise
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import index_names, is_range
from tcdsl.frontend.names.sizes_of_letters import relate_axes
from tcdsl.frontend.points.point_scalars import scalar_of
from tcdsl.frontend.staging.faults import Faulty, shape_note
from tcdsl.frontend.staging.target_states import Existing, Fresh, TargetState
from tcdsl.frontend.statements.accesses import target_index
from tcdsl.frontend.statements.condition_variables import Open
from tcdsl.frontend.statements.point_loops import StatementParts, with_point_calls
from tcdsl.frontend.statements.recorded_values import bound_sketch, scopes_of
from tcdsl.frontend.statements.reduction_scopes import ReductionScopes
from tcdsl.frontend.statements.reductions import Loops, leading_loops, reduce_given
from tcdsl.frontend.statements.statement_evaluation import Evaluation
from tcdsl.frontend.statements.statement_syntax import Assignment, read_statement
from tcdsl.frontend.stores.partial_resets import restarted
from tcdsl.frontend.stores.stores import record_sketch, store
from tcdsl.frontend.symbols.recognition import COMBINING, recognize
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.accumulators import CHOICES
from tcdsl.ir.dtypes import is_integer
from tcdsl.ir.expressions import Boundary, Expr, IndexValue, index_variables, locals_read
from tcdsl.ir.program import Access
from tcdsl.ranges.sketches.sketch import Sketch

__all__ = ["evaluate_statement", "sketch_statement"]


def evaluate_statement(node: ast.stmt, state: TargetState, environment: FunctionScope) -> SymbolicTensor:
    """Record one tensor statement and return the new version of its target.

    ``state`` says what the target's name holds. Raises the statement's faults, all together.
    """
    form = read_statement(node, environment)
    relate_axes((form.value, *form.conditions), environment, form.indices, state.extents)

    def parts() -> StatementParts:
        found = _evaluated(form, state, environment)
        values = [] if found.value is None else [found.value.expr]
        axes = zip(found.axes, state.extents or (), strict=False)
        ends = {index.name: end for (index, _), end in axes if isinstance(index, IndexValue)}
        return StatementParts((*found.indices, *values), found.conditions, found.evaluation.definitions, ends)

    sketch: Sketch = with_point_calls(environment, lambda: sketch_statement(node, state, environment), parts)
    return record_sketch(sketch, state, environment.session.builder)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    # What stands in a statement, with the faults of the evaluation; `reset` says that all cells start anew, `loops` are
    # those of its generator.
    evaluation: Evaluation
    axes: list[tuple[Expr | None, Boundary | None]]
    accumulate: str
    reset: bool
    value: Value | None
    loops: Loops
    conditions: tuple[Value, ...]

    @property
    def indices(self) -> tuple[Expr, ...]:
        return tuple(index for index, _ in self.axes if index is not None)


def _evaluated(form: Assignment, state: TargetState, environment: FunctionScope) -> _Evaluated:
    evaluation = Evaluation(environment, index_names(form.indices, form.value, form.conditions, environment))
    evaluation.letters = environment.session.context.letters
    if isinstance(state, Fresh):
        evaluation.unwritten = form.name
    given = _target_indices(evaluation, form, state)
    accumulate, reset, value, loops = _value(evaluation, form)
    conditions = [evaluation.condition(condition) for condition in form.conditions]
    asked = tuple(each for each in conditions if each is not None)
    return _Evaluated(evaluation, given, accumulate, reset, value, loops, asked)


def sketch_statement(node: ast.stmt, state: TargetState, environment: FunctionScope) -> Sketch:
    """The statement before range inference."""
    form = read_statement(node, environment)
    span, builder = environment.span(node), environment.session.builder
    found = _evaluated(form, state, environment)
    evaluation, value, reset, loops = found.evaluation, found.value, found.reset, found.loops
    unique, oob = _options(evaluation, form)
    if found.accumulate == "assign" and not unique:
        _refuse_meeting_cells(evaluation, form, found.axes)
    if isinstance(node, ast.AugAssign) and isinstance(state, Existing) and value is not None:
        _refuse_bitwise(node, form, state, value, environment)
    stored = None
    if value is not None:
        stored = evaluation.attempt(
            lambda: store(state, found.accumulate, reset, value, environment.span(form.value)), form.value
        )
    evaluation.finish()
    assert stored is not None
    binding = scopes_of(evaluation.definitions, environment)
    opened = Open(
        stored.accumulate,
        found.indices,
        stored.value,
        tuple(condition.expr for condition in found.conditions),
        loops,
        (environment.span(form.target), span),
    )
    bound = binding.bind(opened)
    if reset and form.plain:
        _check_reset(binding, opened, form, environment)
    raise_diagnostics(binding.faults)
    restarts = None
    if isinstance(state, Existing) and reset and form.plain:
        # Conditions of the generator belong to the reduction. `assign(..., "=:+", ...)` starts all cells anew.
        restarts = restarted(bound.indices, bound.conditions[len(loops.conditions) :])
    target = Access(builder.fresh_name(state.label), bound.indices, environment.span(form.target))
    sketch = bound_sketch(state, stored, target, bound, oob, span)
    return replace(sketch, unique=unique, resets=reset, restarts=restarts, bound_at=environment.bound_at)


def _refuse_bitwise(
    node: ast.AugAssign, form: Assignment, state: Existing, value: Value, environment: FunctionScope
) -> None:
    # `bits[t] |= b` of a single cell: where index variables name several, the statement is one of the language.
    bits = isinstance(node.op, ast.BitOr | ast.BitAnd) and bool(form.indices) and is_integer(value.logical)
    if bits and not index_names(form.indices, form.value, form.conditions, environment):
        refuse_bitwise(environment.session, ast.unparse(form.target), type(node.op), state.tensor.element_type)


def _target_indices(
    evaluation: Evaluation, form: Assignment, state: TargetState
) -> list[tuple[Expr | None, Boundary | None]]:
    """An index and the boundary around it for every axis of the target."""
    count = len(form.indices)
    extents: Sequence[Expr | None] = (None,) * count if state.extents is None else state.extents
    if len(extents) != count:
        notes: tuple[str, ...] = ()
        hint = "give one index per axis, `[()]` for rank 0"
        if isinstance(state, Existing):
            notes = (shape_note(state.tensor),)
            hint += f"; `{state.label}` exists already: a new tensor needs another name"
        evaluation.fault(
            ShapeError,
            f"`{state.label}` has rank {len(extents)} and is given {count} {'index' if count == 1 else 'indices'}",
            form.target,
            hint,
            notes,
        )
        extents = (None,) * count
    return [target_index(evaluation, node, extent) for node, extent in zip(form.indices, extents, strict=True)]


def _refuse_meeting_cells(
    evaluation: Evaluation, form: Assignment, axes: Sequence[tuple[Expr | None, Boundary | None]]
) -> None:
    # Without index variables there is one cell, as in `y[wrap(t + 2)] = x[t]` in round t of a loop that runs.
    for node, (index, boundary) in zip(form.indices, axes, strict=True):
        if index is not None and boundary is not None and (index_variables(index) or locals_read(index)):
            evaluation.fault(
                DslSyntaxError,
                f"`=` writes each cell once, but `{boundary.value}` moves several points to one cell",
                node,
                f"say how the values combine: {CHOICES}",
            )


def _value(evaluation: Evaluation, form: Assignment) -> tuple[str, bool, Value | None, Loops]:
    """The accumulator, whether all cells start anew, the value, and the loops of its generator."""
    loops = Loops()
    call = form.value
    if form.plain and isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords:
        function = evaluation.quietly(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
        name = recognize(function)
        if name is not None and name in COMBINING and _is_reset(call.args[0], evaluation.environment):
            given = _reduced(evaluation, call.args[0], loops)
            if isinstance(given, Value | Faulty):
                return COMBINING[name], True, evaluation.scalar(given, call.args[0]), loops
            # A list of scalars or a whole tensor: the reduction is part of the value, and the statement a plain store.
            given = reduce_given(evaluation, name, given, call, function)
            return form.accumulate, form.reset, evaluation.scalar(given, call), loops
    return form.accumulate, form.reset, evaluation.value(form.value), loops


def _is_reset(argument: ast.expr, environment: FunctionScope) -> bool:
    if isinstance(argument, ast.GeneratorExp | ast.ListComp):
        return all(is_range(clause.iter, environment) for clause in argument.generators)
    return not isinstance(argument, ast.Starred)


def _reduced(evaluation: Evaluation, argument: ast.expr, loops: Loops) -> object:
    if isinstance(argument, ast.GeneratorExp | ast.ListComp):
        with evaluation.scope(loops.names):
            leading_loops(evaluation, argument.generators, loops)
            given = evaluation.evaluate(argument.elt)
            # What is summed may be a number: `sum(1 for k in range(N) if x[k] > x[i])`.
            value = evaluation.attempt(lambda: scalar_of(given, evaluation.environment.span(argument.elt)), argument)
            return given if value is None else value
    return evaluation.evaluate(argument)


def _options(evaluation: Evaluation, form: Assignment) -> tuple[bool, str]:
    unique, oob = False, evaluation.environment.oob
    if "unique" in form.options:
        given = evaluation.evaluate(form.options["unique"])
        unique = bool(given)
    if "oob" in form.options:
        given = evaluation.evaluate(form.options["oob"])
        if given in ("check", "skip", "clamp"):
            oob = str(given)
        else:
            evaluation.fault(
                DslSyntaxError, f"oob={given!r}", form.options["oob"], 'write oob="check", "skip" or "clamp"'
            )
    return unique, oob


def _check_reset(binding: ReductionScopes, opened: Open, form: Assignment, environment: FunctionScope) -> None:
    on_target = binding.occurrences(opened.indices)
    free = [name for name in binding.occurrences((opened.value,)) if name not in on_target]
    if not opened.loops.variables:
        if not free and binding.occurrences(opened.conditions).keys() <= on_target.keys():
            fact = "the reduction binds no index variable: all that it mentions are on the target"
            hint = "reduce over an index that is not on the target, or write `... for k in range(n)`"
            binding.faults.append(Diagnostic(DslSyntaxError, fact, environment.span(form.value), hint=hint))
        return
    # In `C[i] = sum(... for j in range(n))` the generator says what is summed, and nothing else is.
    for name in free:
        if name not in opened.loops.variables:
            fact = f"the index `{name}` is neither on the target nor bound by the generator"
            hint = f"add `for {name} in range(...)`, or put `{name}` on the target"
            binding.faults.append(Diagnostic(ShapeError, fact, environment.span(form.value), hint=hint))
