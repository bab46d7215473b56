"""Local definitions: ``z = x[i] * x[i]`` is a scalar at each point, where it indexes with free index variables.

::

    half = x[i] / 2                 a local definition
    n = sqrt(sum(g[i] * g[i]))      a bare reduction: all that indexes stands inside of reductions
    y * y[argmin(x[i])]             whole arrays: a bare reduction among them has no name
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tcdsl.errors import TcdslError
from tcdsl.frontend.arrays.chosen_cells import ChosenCells
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import index_arguments, index_names, indexing_names, is_range
from tcdsl.frontend.names.sizes_of_letters import relate_axes
from tcdsl.frontend.points.definitions import outside_names
from tcdsl.frontend.points.point_scalars import BareReduction, PointValue, standing_alone
from tcdsl.frontend.source.syntax_trees import copied
from tcdsl.frontend.staging.faults import Faulty
from tcdsl.frontend.statements.accesses import axis_nodes
from tcdsl.frontend.statements.point_loops import with_point_calls
from tcdsl.frontend.statements.recorded_values import record_bare
from tcdsl.frontend.statements.statement_evaluation import Evaluation
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.recognition import BOUNDARIES, REDUCTIONS, recognize
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicSize
from tcdsl.frontend.symbols.values import Value

__all__ = [
    "evaluate_local",
    "holds_rows",
    "is_local_definition",
    "is_mask",
    "letters_of",
    "letters_outside_reductions",
    "reads_points",
]


def is_local_definition(node: ast.stmt, environment: FunctionScope) -> bool:
    """Whether ``z = value`` defines a scalar at each point: a cell of a tensor is indexed by a free index variable."""
    match node:
        case ast.Assign(targets=[ast.Name()], value=value) if not isinstance(value, ast.Tuple):
            pass
        case _:
            return False
    parts = list(ast.walk(value))
    if _reduces_beside_arrays(value, parts, environment):
        return False
    if _reduces_ranges(value, parts, environment) or _computes_with_reductions(value, parts, environment):
        return True
    if _reads_beyond_ends(value, parts, environment):
        return True
    variables = index_names((), value, (), environment)
    if not environment.letters.isdisjoint(variables) and not any(map(environment.is_index_symbol, variables)):
        return True
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    if not variables or any(map(environment.is_index_symbol, variables)):
        return False
    if any(isinstance(environment.own(name), PointValue) for name in names):
        return True  # the variables of a bare reduction are its own
    generators = [part for part in parts if isinstance(part, ast.GeneratorExp | ast.ListComp)]
    clauses = [clause for part in generators for clause in part.generators]
    own = frozenset(part.id for clause in clauses for part in ast.walk(clause.target) if isinstance(part, ast.Name))
    if any(isinstance(part, ast.Call) and _indexes(part, environment, own) for part in parts):
        return True
    return any(isinstance(part, ast.Subscript) and reads_points(part, environment) for part in parts)


def _indexes(call: ast.Call, environment: FunctionScope, hidden: frozenset[str]) -> bool:
    # `hidden` names are those of generators.
    arguments = index_arguments(call, environment)
    return bool(index_names(arguments, ast.Constant(0), (), environment, hidden))


def _without_calls(node: ast.expr, skips: Callable[[ast.Call], bool]) -> ast.expr:
    # Numbers in the place of the calls for which `skips` holds.
    class Without(ast.NodeTransformer):
        def visit_Call(self, call: ast.Call) -> ast.expr:
            if skips(call):
                return ast.copy_location(ast.Constant(0), call)
            self.generic_visit(call)
            return call

    without: ast.expr = Without().visit(copied(node))
    return without


def _reduces_beside_arrays(node: ast.expr, parts: Sequence[ast.AST], environment: FunctionScope) -> bool:
    # `y * y[argmin(x[i])]`: index variables stand in reductions alone, and whole arrays outside of them.
    evaluation = Evaluation(environment, ())
    if not any(isinstance(part, ast.Call) and _is_reduction(part, evaluation) for part in parts):
        return False
    if index_names((), node, (), environment) and letters_outside_reductions(node, environment):
        return False
    outside = _without_calls(node, lambda call: _is_reduction(call, evaluation))
    # Functions of the user's may do anything with the arrays that they are given.
    users = _without_calls(outside, lambda call: _meaning(call, evaluation) is None)
    return _holds_whole_arrays(users, evaluation)


def letters_outside_reductions(node: ast.expr, environment: FunctionScope) -> tuple[str, ...]:
    """The index variables of ``node`` that stand outside of all reductions, named ones included."""
    evaluation = Evaluation(environment, ())
    outside = _without_calls(node, lambda call: _is_reduction(call, evaluation))
    names = {part.id for part in ast.walk(outside) if isinstance(part, ast.Name)}
    bare = frozenset(name for name in names if isinstance(environment.own(name), BareReduction))
    return index_names((), outside, (), environment, bare)


def _meaning(call: ast.Call, evaluation: Evaluation) -> str | None:
    return recognize(evaluation.quietly(call.func)) if isinstance(call.func, ast.Name | ast.Attribute) else None


def _is_reduction(call: ast.Call, evaluation: Evaluation) -> bool:
    return len(call.args) == 1 and not call.keywords and _meaning(call, evaluation) in REDUCTIONS


def _reduces_ranges(node: ast.expr, parts: Sequence[ast.AST], environment: FunctionScope) -> bool:
    # `sum(x[i] for i in range(N))`, which Python cannot run over a size; over numbers it can, and what is summed may be
    # whole arrays.
    generators = [part for part in parts if isinstance(part, ast.GeneratorExp)]
    clauses = [clause for part in generators for clause in part.generators if is_range(clause.iter, environment)]
    ranges = [clause.iter for clause in clauses]
    if not ranges:
        return False
    evaluation = Evaluation(environment, index_names((), node, (), environment))
    ends = [end for call in ranges if isinstance(call, ast.Call) for end in call.args]
    if any(isinstance(evaluation.quietly(end), SymbolicSize) for end in ends):
        return True
    # Python may run what does not index with the generator's variable, and functions run once.
    targets = {part.id for clause in clauses for part in ast.walk(clause.target) if isinstance(part, ast.Name)}
    subscripts = any(isinstance(part, ast.Subscript) for part in parts)
    if not subscripts and targets.isdisjoint(indexing_names(node, environment)):
        return False
    return isinstance(evaluation.quietly(node), Value)


def _reads_beyond_ends(node: ast.expr, parts: Sequence[ast.AST], environment: FunctionScope) -> bool:
    # `get(x[k - 1], 0.0)` and `x[wrap(k - 1)]`, which Python cannot call; without index variables they are one cell.
    words = ("get", *BOUNDARIES)
    calls = [part.func for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)]
    if not any(each.id in words for each in calls):
        return False
    evaluation = Evaluation(environment, index_names((), node, (), environment))
    return any(recognize(evaluation.quietly(each)) in words for each in calls if each.id in words)


def _computes_with_reductions(node: ast.expr, parts: Sequence[ast.AST], environment: FunctionScope) -> bool:
    # `1 / n` of a bare reduction `n` is one too; functions of the user's are not run for this question.
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
            return isinstance(given, ChosenCells) or (evaluation.is_array(given) and bool(given.shape))  # type: ignore[attr-defined]
        case ast.Subscript(value=base, slice=index):
            if any(isinstance(part, ast.Slice) for part in axis_nodes(index)):
                return True
            tensor = evaluation.quietly(base)
            rank = len(tensor.shape) if evaluation.is_array(tensor) else 0  # type: ignore[attr-defined]
            return rank > len(axis_nodes(index))
        case ast.Call(args=arguments, keywords=keywords):
            return any(_holds_whole_arrays(part, evaluation) for part in (*arguments, *keywords))
    return any(_holds_whole_arrays(part, evaluation) for part in ast.iter_child_nodes(node))


def holds_rows(node: ast.expr, environment: FunctionScope) -> bool:
    """Whether an expression has whole arrays in it, and nothing that is the language's alone."""
    evaluation = Evaluation(environment, ())
    parts = list(ast.walk(node))
    calls = [part.func for part in parts if isinstance(part, ast.Call)]
    methods = [each.value for each in calls if isinstance(each, ast.Attribute)]  # `x[t - 1].sum()`
    subscripts = [part.slice for part in parts if isinstance(part, ast.Subscript)]
    try:
        whole = any(_holds_whole_arrays(each, evaluation) for each in (node, *methods))
        whole = whole or any(is_mask(each, environment) for each in subscripts)
    except TcdslError:
        return False  # a generator's name that a loop has retired
    return whole and not _reads_beyond_ends(node, parts, environment)


def is_mask(node: ast.expr, environment: FunctionScope) -> bool:
    """Whether ``node`` is a truth value for each cell of whole arrays: `y > 0.5`, or a name of such an array."""
    match node:
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return is_mask(operand, environment)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), left=left, right=right):
            return is_mask(left, environment) or is_mask(right, environment)
        case ast.Compare():
            return holds_rows(node, environment)
        case ast.Name(id=name):
            held = environment.own(name)
            return isinstance(held, SymbolicArray) and held.rank > 0 and held.dtype == "bool"
    return False


def letters_of(indices: Sequence[ast.expr], value: ast.expr, environment: FunctionScope) -> tuple[str, ...]:
    """The index variables that are written in indices and a value: those of a bare reduction's name are its own."""
    names = {part.id for each in (*indices, value) for part in ast.walk(each) if isinstance(part, ast.Name)}
    bare = frozenset(name for name in names if isinstance(environment.own(name), BareReduction))
    return index_names(indices, value, (), environment, bare)


def reads_points(node: ast.Subscript, environment: FunctionScope) -> bool:
    """Whether a subscript is a cell of a tensor at free index variables, which those of a bare reduction are not."""
    if not letters_of((node.slice,), ast.Constant(0), environment):
        return False
    evaluation = Evaluation(environment, ())
    try:
        base = evaluation.evaluate(node.value)
        # To ask a tensor of a graph for more would close its shape, which other accesses may say.
        return isinstance(base, Faulty | GraphTensor) or evaluation.tensor_of(base, node.value) is not None
    except TcdslError:
        return True


def evaluate_local(node: ast.Assign, environment: FunctionScope) -> Any:
    """What ``z = value`` defines, for the function to bind to ``z``: a `PointValue` or `BareReduction`, or a tuple or
    list with such parts. Raises its faults, all together.
    """
    relate_axes((node.value,), environment)
    return with_point_calls(environment, lambda: _local(node, environment))


def _local(node: ast.Assign, environment: FunctionScope) -> Any:
    (target,) = node.targets
    assert isinstance(target, ast.Name)
    evaluation = Evaluation(environment, index_names((), node.value, (), environment))
    evaluation.shared = environment.session.context.letters
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
