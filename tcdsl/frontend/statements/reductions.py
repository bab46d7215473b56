"""Reductions inside values: ``sum(E[i, l])``, ``max(I[2*i + j] for j in range(2))``, ``mean``, ``argmax`` and the like.

A generator over ``range`` of sizes or integers is a reduction over its variables. Over anything else (a list of
layers, a tuple of offsets) it is ordinary Python: the elements are combined while staging. A reduction without a
generator comes out open, with no variables; `tcdsl.frontend.statements.reduction_scopes` finds out which ones it binds.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError
from tcdsl.frontend.names.array_calls import call_function
from tcdsl.frontend.names.name_resolution import Position, is_range
from tcdsl.frontend.points.definitions import GENERATED
from tcdsl.frontend.staging.faults import FAULTY, Faulty
from tcdsl.frontend.staging.run_time_integers import terms
from tcdsl.frontend.statements.evaluator import Evaluator
from tcdsl.frontend.symbols.recognition import COMBINING, REDUCTIONS
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value, as_truth, convert, int64_constant, stored_dtype, sum_dtype
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, constant, integer, neutral_constant
from tcdsl.ir.build import cast as cast_expr
from tcdsl.ir.dtypes import compute_dtype, is_boolean, is_floating, is_integer
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    ExplicitRange,
    Expr,
    IndexValue,
    Reduction,
    SizeValue,
    index_variables,
    reads,
    walk,
)

__all__ = ["Loops", "leading_loops", "open_reduction", "reduce_given", "reduction"]


@dataclass(slots=True)
class Loops:
    """The leading ``for`` clauses of a generator that run over ranges: variables, their ranges, and the ``if``s.

    ``counting`` says that all of these are ranges of sizes that begin at 0 and go by 1.
    """

    variables: list[str] = field(default_factory=list)
    ranges: list[ExplicitRange] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    names: dict[str, object] = field(default_factory=dict)
    counting: bool = True


def reduction(evaluation: Evaluator, name: str, node: ast.Call, function: object, position: Position) -> object:
    """``sum(...)`` and the like with one argument; ``name`` is the language's name of it."""
    argument = node.args[0]
    if node.keywords:
        options = {str(each.arg): evaluation.quietly(each.value) for each in node.keywords}
        given = evaluation.quietly(argument)
        if evaluation.is_array(given) and FAULTY not in options.values():
            return evaluation.native(lambda: call_function(function, [given], options), node)
        return evaluation.fault(
            DslSyntaxError,
            f"`{name}` takes no keyword arguments in a tensor statement",
            node,
            "the axes to reduce are the index variables that are not on the target",
        )
    if isinstance(argument, ast.GeneratorExp | ast.ListComp):
        return _OverGenerator(evaluation, name, argument.elt, node).of(argument.generators)
    return reduce_given(evaluation, name, evaluation.evaluate(argument, position), node, function)


def reduce_given(evaluation: Evaluator, name: str, given: object, node: ast.Call, function: object) -> object:
    """The reduction of its only argument, which is evaluated already: a scalar, a list of scalars, a whole tensor."""
    argument = node.args[0]
    if isinstance(given, Faulty):
        return FAULTY
    if isinstance(given, list | tuple) and any(map(evaluation.is_symbolic, given)):
        values = [evaluation.scalar(element, argument) for element in given]
        return _combined(evaluation, name, values, node)
    if isinstance(given, int | float | np.generic):
        # The same at each point of the variables of conditions behind the statement: `T[0] = sum(1.0), x[i] > 0`.
        value = evaluation.scalar(given, argument)
        return FAULTY if value is None else open_reduction(evaluation, name, value, Loops(), node)
    if not evaluation.is_symbolic(given):
        if hasattr(function, "__tcdsl_name__") or not callable(function):
            return evaluation.fault(DslSyntaxError, f"`{name}` of a {type(given).__name__}", node)
        return evaluation.native(lambda: function(given), node)
    if evaluation.is_array(given) and given.shape:  # type: ignore[attr-defined]
        tensor = evaluation.attempt(lambda: evaluation.tensor_of(given, argument), node)
        return tensor if isinstance(tensor, Faulty) else _over_tensor(evaluation, name, tensor, node)
    value = evaluation.scalar(given, argument)
    return FAULTY if value is None else open_reduction(evaluation, name, value, Loops(), node)


def open_reduction(evaluation: Evaluator, name: str, value: Value, loops: Loops, node: ast.expr) -> object:
    """The reduction ``name`` of ``value``, in the type that NumPy gives it."""
    span = evaluation.span(node)
    accumulate = REDUCTIONS[name]
    dtype = _result_dtype(name, value)
    if name in ("any", "all"):
        expr = as_truth(value, span).expr
    elif name in ("max", "min") and is_boolean(dtype):
        accumulate, expr = ("or" if name == "max" else "and"), value.expr
    elif name in ("argmax", "argmin"):
        expr = convert(value, "int64") if is_boolean(value.logical) else value.expr
    else:
        expr = convert(value, dtype, span)
    open_one = Reduction(
        accumulate,
        tuple(loops.variables),
        tuple(loops.ranges),
        tuple(loops.conditions),
        expr,
        compute_dtype(dtype),
        span=span,
    )
    return Value(open_one, None, dtype)


def _result_dtype(name: str, value: Value) -> str:
    dtype = stored_dtype(value)
    match name:
        case "sum" | "prod":
            return sum_dtype(value)
        case "mean":
            return dtype if is_floating(dtype) else "float64"
        case "any" | "all":
            return "bool"
        case "argmax" | "argmin":
            return "int64"
        case _:
            return dtype


def _over_tensor(evaluation: Evaluator, name: str, tensor: SymbolicTensor, node: ast.Call) -> object:
    # sum(x) of a whole tensor: over all of its cells, in whose order positions are counted.
    loops = Loops()
    for axis, extent in enumerate(tensor.extents):
        variable = f"axis_{axis}{GENERATED}{evaluation.depth}"
        loops.variables.append(variable)
        loops.ranges.append(ExplicitRange(variable, integer(0), extent))
    indices = tuple(IndexValue(variable) for variable in loops.variables)
    return open_reduction(evaluation, name, tensor.cell(indices, evaluation.span(node)), loops, node)


# -- generators ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OverGenerator:
    """The reduction ``name`` over a generator, which is the argument of the call ``node``."""

    evaluation: Evaluator
    name: str
    element: ast.expr
    node: ast.Call

    def of(self, clauses: Sequence[ast.comprehension]) -> object:
        """What the clauses give, from the outside in."""
        evaluation, name = self.evaluation, self.name
        if not clauses:
            return evaluation.evaluate(self.element)
        if not is_range(clauses[0].iter, evaluation.environment):
            return self._unrolled(clauses)
        loops = Loops()
        with evaluation.scope(loops.names):
            count = leading_loops(evaluation, clauses, loops)
            if count < len(clauses) and name not in COMBINING:
                fact = f"`{name}` over a range and over Python objects at once"
                return evaluation.fault(DslSyntaxError, fact, self.node, "separate the two")
            value = evaluation.scalar(self.of(clauses[count:]), self.element)
        if value is None:
            return FAULTY
        if name in ("argmax", "argmin") and len(loops.variables) > 1 and not loops.counting:
            fact = f"`{name}` over {len(loops.variables)} ranges, of which one does not count all numbers from 0"
            hint = "the position is that among all of them: write `for j in range(n)` with sizes, and conditions on j"
            return evaluation.fault(DslSyntaxError, fact, self.node, hint)
        return open_reduction(evaluation, name, value, loops, self.node)

    def _unrolled(self, clauses: Sequence[ast.comprehension]) -> object:
        clause, evaluation = clauses[0], self.evaluation
        iterable = evaluation.evaluate(clause.iter)
        if isinstance(iterable, Faulty):
            return FAULTY
        if evaluation.is_symbolic(iterable):
            hint = "write `for k in range(n)` and index with k"
            return evaluation.fault(DslSyntaxError, "a generator over a tensor or a size", clause.iter, hint)
        elements = evaluation.native(lambda: list(iterable), clause.iter)  # type: ignore[call-overload]
        if not isinstance(elements, list):
            return FAULTY
        values: list[Value | None] = []
        for element in elements:
            names: dict[str, object] = {}
            if not _assign(clause.target, element, names):
                return evaluation.fault(DslSyntaxError, "the loop's names do not fit what it runs over", clause.target)
            with evaluation.scope(names):
                values.extend(self._one_element(clauses))
        return _combined(evaluation, self.name, values, self.node)

    def _one_element(self, clauses: Sequence[ast.comprehension]) -> list[Value | None]:
        evaluation, name, node = self.evaluation, self.name, self.node
        guard: Value | None = None
        for condition in clauses[0].ifs:
            given = evaluation.evaluate(condition, Position.CONDITION)
            if not evaluation.is_symbolic(given):
                if not given:
                    return []
                continue
            test = evaluation.condition(condition)
            if test is None:
                return [None]
            guard = test if guard is None else apply_primitive("and_", (guard, test), evaluation.span(condition))
        value = evaluation.scalar(self.of(clauses[1:]), self.element)
        if guard is None or value is None:
            return [value]
        if name not in COMBINING:
            evaluation.fault(DslSyntaxError, f"`{name}` with a condition over Python objects", node, "use a range")
            return [None]
        otherwise = neutral_constant(REDUCTIONS[name], value.expr.dtype)
        return [apply_primitive("where", (guard, value, value.with_expr(otherwise)), evaluation.span(node))]


def leading_loops(evaluation: Evaluator, clauses: Sequence[ast.comprehension], loops: Loops) -> int:
    """Bind the variables of the clauses that run over ranges, up to the first that does not; how many there are.

    To be called within the scope of ``loops.names``.
    """
    for count, clause in enumerate(clauses):
        if not is_range(clause.iter, evaluation.environment):
            return count
        ends = _ends(evaluation, clause)
        if isinstance(clause.target, ast.Name) and ends is not None:
            variable = f"{clause.target.id}{GENERATED}{evaluation.depth}_{count}"
            loops.names[clause.target.id] = Value(IndexValue(variable, evaluation.span(clause.target)), "int", "int64")
            _bound(loops, variable, ends, clause, evaluation)
            loops.variables.append(variable)
        elif isinstance(clause.target, ast.Name):
            loops.names[clause.target.id] = FAULTY
        else:
            evaluation.fault(DslSyntaxError, "a range gives one variable", clause.target, "write one name after `for`")
        for condition in clause.ifs:
            value = evaluation.condition(condition)
            if value is not None:
                loops.conditions.append(value.expr)
    return len(clauses)


def _bound(
    loops: Loops, variable: str, ends: tuple[Expr, Expr, int], clause: ast.comprehension, evaluation: Evaluator
) -> None:
    span = evaluation.span(clause.iter)
    low, high, step = ends
    # Ends that are numbers of rounds or of other generators make no rectangle.
    loops.counting &= step == 1 and low == integer(0) and not index_variables(high) and not any(reads(high))
    if step > 1:
        # The positions between are left out, so that the variable keeps its own values; the range ends at the last one.
        inner = apply("sub", apply("sub", high, low, span=span), integer(1), span=span)
        steps = apply("mul", apply("floor_div", inner, integer(step), span=span), integer(step), span=span)
        high = apply("add", apply("add", low, steps, span=span), integer(1), span=span)
        distance = apply("sub", IndexValue(variable, span), low, span=span)
        remainder = apply("mod", distance, integer(step), span=span)
        loops.conditions.append(apply("eq", remainder, integer(0), span=span))
    if all(_is_size(node, loops) for end in (low, high) for node in walk(end)):
        loops.ranges.append(ExplicitRange(variable, low, high, span=span))
        return
    # `range(i + 1)` of an index variable, or of data, is no range of sizes: it filters, as a condition does.
    here = IndexValue(variable, span)
    loops.conditions.append(apply("ge", here, low, span=span))
    loops.conditions.append(apply("lt", here, high, span=span))


def _is_size(node: Expr, loops: Loops) -> bool:
    if isinstance(node, IndexValue):
        return node.name in loops.variables
    return isinstance(node, Constant | SizeValue | Apply)


def _ends(evaluation: Evaluator, clause: ast.comprehension) -> tuple[Expr, Expr, int] | None:
    call = clause.iter
    assert isinstance(call, ast.Call)
    if not 1 <= len(call.args) <= 3 or call.keywords:
        evaluation.fault(DslSyntaxError, "a range takes one or two bounds", call, "write `range(n)` or `range(a, b)`")
        return None
    step = evaluation.evaluate(call.args[2], Position.INDEX) if len(call.args) == 3 else 1
    if isinstance(step, Faulty):
        return None
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        evaluation.fault(
            DslSyntaxError,
            "a range whose step is not a positive integer",
            call.args[2],
            "write a range from 0 and compute the index from it: `for j in range(n)` and `n - 1 - j`",
        )
        return None
    found: list[Expr] = []
    for argument in call.args[:2]:
        evaluation.terms |= dict.fromkeys(map(id, terms(argument)), True)
        given = evaluation.evaluate(argument, Position.INDEX)
        end = evaluation.environment.session.integers.end(given)
        value = evaluation.scalar(given, argument) if end is None else Value(end, "int", "int64")
        if value is None:
            return None
        if not is_integer(value.logical):
            evaluation.fault(
                DtypeError, f"a bound of a range of type {value.logical}", argument, "use sizes or integers"
            )
            return None
        if isinstance(value.expr, Constant):
            bound = value.expr.value
            fits = evaluation.attempt(lambda: int64_constant(int(bound), evaluation.span(argument)), argument)  # noqa: B023
            if isinstance(fits, Faulty):
                return None
        found.append(cast_expr(_in_int64(value), "int64"))
    return (integer(0), found[0], step) if len(found) == 1 else (found[0], found[1], step)


def _in_int64(value: Value) -> Expr:
    # No index variable reaches what int64 does not hold.
    if value.logical != "uint64" or isinstance(value.expr, Constant):
        return value.expr
    return apply("min", value.expr, constant(2**63 - 1, "uint64"), span=value.expr.span)


def _assign(target: ast.expr, element: object, names: dict[str, object]) -> bool:
    if isinstance(target, ast.Name):
        names[target.id] = element
        return True
    if isinstance(target, ast.Tuple | ast.List) and isinstance(element, Sequence):
        return len(target.elts) == len(element) and all(map(_assign, target.elts, element, [names] * len(element)))
    return False


def _combined(evaluation: Evaluator, name: str, values: Sequence[Value | None], node: ast.Call) -> object:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return FAULTY
    span = evaluation.span(node)
    count = len(known)
    if name == "mean" and count:
        total = reduce(lambda a, b: apply_primitive("add", (a, b), span), known)
        return apply_primitive("div", (total, Value.of(count)), span)
    if name not in COMBINING or (not known and name in ("max", "min")):
        return evaluation.fault(
            DslSyntaxError, f"`{name}` over {count} Python objects", node, "use a range, or an array"
        )
    primitive = ACCUMULATORS[REDUCTIONS[name]].primitive
    if name in ("any", "all"):
        known = [as_truth(value, span) for value in known]
    if not known:
        return bool(name == "all") if name in ("any", "all") else int(name == "prod")
    return evaluation.attempt(lambda: reduce(lambda a, b: apply_primitive(primitive, (a, b), span), known), node)
