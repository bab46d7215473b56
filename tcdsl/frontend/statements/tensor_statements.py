"""Tensor statements: from ``T[index, ...] <accumulate>= value [, condition]*`` to a recorded statement of the program.

::

    C[i, j] += A[i, k] * B[k, j]                    accumulate; a new target starts from the neutral element
    C[i, j] = sum(A[i, k] * B[k, j])                reset: the whole value is one reduction call
    O[i] >>= x[i + k], k < 3                        conditions follow the value
    assign(T[p[i]], "=:", v[i], unique=True)        any accumulator, with options
    z = x[i] * x[i]                                 a local definition: a scalar at each point
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tcdsl.errors import Diagnostic, DslSyntaxError, ShapeError, TcdslError, raise_diagnostics
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import index_arguments, index_names, is_range
from tcdsl.frontend.points.definitions import outside_names
from tcdsl.frontend.points.point_scalars import BareReduction, PointValue, scalar_of, standing_alone
from tcdsl.frontend.staging.faults import Faulty, shape_note
from tcdsl.frontend.staging.target_states import Existing, Fresh, TargetState
from tcdsl.frontend.statements.accesses import axis_index, axis_nodes, is_data
from tcdsl.frontend.statements.condition_variables import Open
from tcdsl.frontend.statements.point_loops import StatementParts, with_point_calls
from tcdsl.frontend.statements.recorded_values import bound_sketch, record_bare, scopes_of
from tcdsl.frontend.statements.reduction_scopes import ReductionScopes, require_divisors
from tcdsl.frontend.statements.reductions import Loops, leading_loops, reduce_given
from tcdsl.frontend.statements.statement_evaluation import Evaluation
from tcdsl.frontend.statements.statement_syntax import Assignment, read_statement
from tcdsl.frontend.stores.partial_resets import restarted
from tcdsl.frontend.stores.stores import record_sketch, store
from tcdsl.frontend.symbols.recognition import BOUNDARIES, COMBINING, recognize
from tcdsl.frontend.symbols.symbols import SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.expressions import Boundary, Expr
from tcdsl.ir.program import Access
from tcdsl.ranges.sketches.sketch import Sketch

__all__ = ["evaluate_local", "evaluate_statement", "is_local_definition", "reads_points", "sketch_statement"]


def evaluate_statement(node: ast.stmt, state: TargetState, environment: FunctionScope) -> SymbolicTensor:
    """Record one tensor statement and return the new version of its target.

    ``state`` says what the target's name holds. Raises the statement's faults, all together.
    """
    form = read_statement(node, environment)

    def parts() -> StatementParts:
        found = _evaluated(form, state, environment)
        values = [] if found.value is None else [found.value.expr]
        return StatementParts((*found.indices, *values), found.conditions, found.evaluation.definitions)

    sketch: Sketch = with_point_calls(environment, lambda: sketch_statement(node, state, environment), parts)
    return record_sketch(sketch, state, environment.session.builder)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    # What stands in a statement, with the faults of the evaluation; `reset` says that all cells start anew, `loops` are
    # those of its generator.
    evaluation: Evaluation
    indices: tuple[Expr, ...]
    accumulate: str
    reset: bool
    value: Value | None
    loops: Loops
    conditions: tuple[Value, ...]


def _evaluated(form: Assignment, state: TargetState, environment: FunctionScope) -> _Evaluated:
    evaluation = Evaluation(environment, index_names(form.indices, form.value, form.conditions, environment))
    if isinstance(state, Fresh):
        evaluation.unwritten = form.name
    indices = tuple(index for index in _target_indices(evaluation, form, state) if index is not None)
    accumulate, reset, value, loops = _value(evaluation, form)
    conditions = [evaluation.condition(condition) for condition in form.conditions]
    asked = tuple(each for each in conditions if each is not None)
    return _Evaluated(evaluation, indices, accumulate, reset, value, loops, asked)


def sketch_statement(node: ast.stmt, state: TargetState, environment: FunctionScope) -> Sketch:
    """The statement before range inference."""
    form = read_statement(node, environment)
    span, builder = environment.span(node), environment.session.builder
    found = _evaluated(form, state, environment)
    evaluation, value, reset, loops = found.evaluation, found.value, found.reset, found.loops
    unique, oob = _options(evaluation, form)
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
    require_divisors((*bound.indices, bound.value, *bound.conditions, *bound.filters), builder, span)
    restarts = None
    if isinstance(state, Existing) and reset and form.plain:
        # Conditions of the generator belong to the reduction. `assign(..., "=:+", ...)` starts all cells anew.
        restarts = restarted(bound.indices, bound.conditions[len(loops.conditions) :])
    target = Access(builder.fresh_name(state.label), bound.indices, environment.span(form.target))
    sketch = bound_sketch(state, stored, target, bound, oob, span)
    return replace(sketch, unique=unique, resets=reset, restarts=restarts, bound_at=environment.bound_at)


def _target_indices(evaluation: Evaluation, form: Assignment, state: TargetState) -> list[Expr | None]:
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
    found: list[Expr | None] = []
    for node, extent in zip(form.indices, extents, strict=True):
        entry = axis_index(evaluation, node, extent)
        if entry is not None and entry[1] is not Boundary.SKIP and not is_data(entry[0]):
            evaluation.fault(
                DslSyntaxError,
                f"`{entry[1].value}` around an index of the target",
                node,
                "boundaries are for reading; a condition says which cells are written",
            )
        found.append(None if entry is None else entry[0])
    return found


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


# -- local definitions ---------------------------------------------------------------------------------------


def is_local_definition(node: ast.stmt, environment: FunctionScope) -> bool:
    """Whether ``z = value`` defines a scalar at each point: a cell of a tensor is indexed by a free index variable."""
    match node:
        case ast.Assign(targets=[ast.Name()], value=value) if not isinstance(value, ast.Tuple):
            pass
        case _:
            return False
    if _reduces_ranges(value, environment) or _computes_with_reductions(value, environment):
        return True
    if _reads_beyond_ends(value, environment):
        return True
    variables = index_names((), value, (), environment)
    if not environment.letters.isdisjoint(variables) and not any(map(environment.is_index_symbol, variables)):
        return True
    names = [part.id for part in ast.walk(value) if isinstance(part, ast.Name)]
    if not variables or any(map(environment.is_index_symbol, variables)):
        return False
    if any(isinstance(environment.own(name), PointValue) for name in names):
        return True  # the variables of a bare reduction are its own
    parts = list(ast.walk(value))
    if any(isinstance(part, ast.Call) and _indexes(part, environment) for part in parts):
        return True
    return any(isinstance(part, ast.Subscript) and reads_points(part, environment) for part in parts)


def _indexes(call: ast.Call, environment: FunctionScope) -> bool:
    arguments = index_arguments(call, environment)
    return bool(index_names(arguments, ast.Constant(0), (), environment))


def _reduces_ranges(node: ast.expr, environment: FunctionScope) -> bool:
    # `sum(x[i] for i in range(N))`, which Python cannot run over a size; over numbers it can, and what is summed may be
    # whole arrays.
    generators = [part for part in ast.walk(node) if isinstance(part, ast.GeneratorExp)]
    ranges = [clause.iter for part in generators for clause in part.generators if is_range(clause.iter, environment)]
    if not ranges:
        return False
    evaluation = Evaluation(environment, index_names((), node, (), environment))
    ends = [end for call in ranges if isinstance(call, ast.Call) for end in call.args]
    if any(isinstance(evaluation.quietly(end), SymbolicSize) for end in ends):
        return True
    return isinstance(evaluation.quietly(node), Value)


def _reads_beyond_ends(node: ast.expr, environment: FunctionScope) -> bool:
    # `get(x[k - 1], 0.0)` and `x[wrap(k - 1)]`, which Python cannot call; without index variables they are one cell.
    words = ("get", *BOUNDARIES)
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)]
    if not any(each.id in words for each in calls):
        return False
    evaluation = Evaluation(environment, index_names((), node, (), environment))
    return any(recognize(evaluation.quietly(each)) in words for each in calls if each.id in words)


def _computes_with_reductions(node: ast.expr, environment: FunctionScope) -> bool:
    # `1 / n` of a bare reduction `n` is one too; functions of the user's are not run for this question.
    parts = list(ast.walk(node))
    if not any(isinstance(part, ast.Name) and isinstance(environment.own(part.id), BareReduction) for part in parts):
        return False
    evaluation = Evaluation(environment, index_names((), node, (), environment))
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if all(recognize(evaluation.quietly(call.func)) is not None for call in calls):
        return isinstance(evaluation.quietly(node), Value)
    return not _holds_whole_arrays(node, evaluation)


def _holds_whole_arrays(node: ast.AST, evaluation: Evaluation) -> bool:
    match node:
        case ast.Name() | ast.Attribute():
            given = evaluation.quietly(node)
            return evaluation.is_array(given) and bool(given.shape)  # type: ignore[attr-defined]
        case ast.Subscript(value=base, slice=index):
            if any(isinstance(part, ast.Slice) for part in axis_nodes(index)):
                return True
            tensor = evaluation.quietly(base)
            rank = len(tensor.shape) if evaluation.is_array(tensor) else 0  # type: ignore[attr-defined]
            return rank > len(axis_nodes(index))
        case ast.Call(args=arguments, keywords=keywords):
            return any(_holds_whole_arrays(part, evaluation) for part in (*arguments, *keywords))
    return any(_holds_whole_arrays(part, evaluation) for part in ast.iter_child_nodes(node))


def reads_points(node: ast.Subscript, environment: FunctionScope) -> bool:
    """Whether a subscript is a cell of a tensor at free index variables, which those of a bare reduction are not."""
    names = {part.id for part in ast.walk(node.slice) if isinstance(part, ast.Name)}
    bare = frozenset(name for name in names if isinstance(environment.own(name), BareReduction))
    if not index_names((node.slice,), ast.Constant(0), (), environment, bare):
        return False
    evaluation = Evaluation(environment, ())
    try:
        base = evaluation.evaluate(node.value)
        return isinstance(base, Faulty) or evaluation.tensor_of(base, node.value) is not None
    except TcdslError:
        return True


def evaluate_local(node: ast.Assign, environment: FunctionScope) -> Any:
    """What ``z = value`` defines, for the function to bind to ``z``: a `PointValue` or `BareReduction`, or a tuple or
    list with such parts. Raises its faults, all together.
    """
    return with_point_calls(environment, lambda: _local(node, environment))


def _local(node: ast.Assign, environment: FunctionScope) -> Any:
    (target,) = node.targets
    assert isinstance(target, ast.Name)
    evaluation = Evaluation(environment, index_names((), node.value, (), environment))
    span = environment.span(node.value)

    def defined(given: object) -> Any:
        value = evaluation.scalar(given, node.value)
        evaluation.finish()
        assert value is not None
        if outside_names(value.expr, evaluation.definitions):
            return PointValue.define(target.id, value, evaluation.definitions, span)
        point = PointValue.define(target.id, standing_alone(value), evaluation.definitions, span)
        return BareReduction(environment.session.builder, target.id, point, partial(record_bare, environment))

    def part(given: Any) -> Any:
        # Of a tuple or list: what is no scalar at a point is what it is.
        if type(given) in (tuple, list):
            return type(given)(map(part, given))
        return defined(given) if isinstance(given, Value) else given

    found = evaluation.evaluate(node.value)
    return part(found) if type(found) in (tuple, list) else defined(found)
