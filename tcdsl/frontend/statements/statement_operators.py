"""Python's operators in tensor statements: on scalars at a point primitives, on everything else what Python does.

Whole tensors keep their own arithmetic, and what configuration decides (``a if flag else b``, ``flag and x[i] > 0``) is
decided while staging: the part that is not taken is not even evaluated.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError
from tcdsl.frontend.names.name_resolution import Position
from tcdsl.frontend.names.name_resolution import index_names as letters_of
from tcdsl.frontend.points.definitions import index_names, outside_names
from tcdsl.frontend.points.point_scalars import BareReduction, PointValue, standing_alone
from tcdsl.frontend.source.python_stores import OPERATORS
from tcdsl.frontend.staging.faults import FAULTY, Faulty
from tcdsl.frontend.staging.run_time_integers import terms
from tcdsl.frontend.statements.evaluator import Evaluator
from tcdsl.frontend.statements.recorded_values import record_bare
from tcdsl.frontend.symbols.scalar_primitives import of_a_number
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicNumber, SymbolicSize
from tcdsl.frontend.symbols.values import Value, as_truth
from tcdsl.ir.expressions import Local, Reduction, reads, walk
from tcdsl.ir.python_operators import PYTHON_OPERATORS

__all__ = [
    "BINARY",
    "COMPARISONS",
    "arithmetic",
    "binary",
    "compare",
    "conditional",
    "logical",
    "unary",
    "whole_arrays",
]


def _rows(kind: type[ast.AST]) -> Mapping[type[ast.AST], tuple[str, Callable[..., Any]]]:
    # The primitive, if there is one, and Python's function.
    return {
        each: (PYTHON_OPERATORS.get(each, ""), function)
        for each, function in OPERATORS.items()
        if issubclass(each, kind)
    }


BINARY, COMPARISONS, _UNARY = _rows(ast.operator), _rows(ast.cmpop), _rows(ast.unaryop)
_PYTHON_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def arithmetic(evaluation: Evaluator, node: ast.BinOp, position: Position) -> object:
    """A binary operation. A chain such as ``a + b + c``, which Python nests to the left, takes no stack."""
    chain = [node]
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    given = evaluation.evaluate(chain[-1].left, position)
    for one in reversed(chain):
        given = binary(evaluation, type(one.op), given, evaluation.evaluate(one.right, position), one)
    return given


def binary(evaluation: Evaluator, kind: type[ast.operator], left: object, right: object, node: ast.expr) -> object:
    """``left <operator> right``: Python's result on ordinary objects and whole tensors, else a `Value`."""
    if isinstance(left, Faulty) or isinstance(right, Faulty):
        return FAULTY
    primitive, native = BINARY[kind]
    sides = whole_arrays(evaluation, (left, right), node)
    if sides is not None or not any(map(evaluation.is_symbolic, (left, right))):
        return evaluation.native(lambda: native(*(sides or (left, right))), node)
    if not primitive:
        return evaluation.fault(
            DtypeError, "`@` multiplies whole arrays, not scalars", node, "write `*`, or sum over an index"
        )
    if primitive in ("floor_div", "mod") and _is_whole(left) and isinstance(right, SymbolicNumber):
        # A divisor of index variables and sizes is a constant of the program.
        number = right
        right = evaluation.native(lambda: operator.index(number), node) if right.weak_kind == "int" else right
    values = [evaluation.scalar(side, node) for side in (left, right)]
    return evaluation.apply(primitive, values, node)


def whole_arrays(evaluation: Evaluator, given: Sequence[object], node: ast.expr) -> list[object] | None:
    """``given`` as operands of whole arrays, if one of them is one; ``None`` where one depends on index variables.

    A value beside it, ``x - mean(x)`` or ``x / x[0]``, is an array of rank 0.
    """
    if not any(evaluation.is_array(each) and each.shape for each in given):  # type: ignore[attr-defined]
        return None
    values = [each for each in given if isinstance(each, Value)]
    if any(isinstance(each, PointValue) for each in given) or any(_depends(each, evaluation, node) for each in values):
        return None
    return [_array(evaluation, each, node) if isinstance(each, Value) else each for each in given]


def _depends(value: Value, evaluation: Evaluator, node: ast.expr) -> bool:
    # Whether it is another one at other points of the statement, or of a generator around. The variables of a bare
    # reduction that has a name, `x / n` with `n = sum(h[i])`, are its own.
    if outside_names(value.expr, evaluation.definitions):
        return True
    inside = index_names(value.expr, evaluation.definitions)
    environment = evaluation.environment
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} if inside else ()
    bare = frozenset(name for name in names if isinstance(environment.own(name), BareReduction))
    return bool(inside) and not {*inside}.isdisjoint(letters_of((), node, (), environment, bare))


def _array(evaluation: Evaluator, value: Value, node: ast.expr) -> PendingArray:
    environment = evaluation.environment
    builder = environment.session.builder
    if not any(isinstance(each, Reduction | Local) for each in walk(value.expr)):
        return PendingArray(builder, value, ())
    point = PointValue(standing_alone(value), evaluation.definitions, evaluation.span(node))
    return BareReduction(builder, "number", point, partial(record_bare, environment))


def _is_whole(side: object) -> bool:
    return isinstance(side, SymbolicSize) or (isinstance(side, Value) and side.weak == "int")


def unary(evaluation: Evaluator, node: ast.UnaryOp, position: Position) -> object:
    """``+x``, ``-x``, ``not x``, ``~x``, any number of them."""
    chain = [node]
    while isinstance(chain[-1].operand, ast.UnaryOp):
        chain.append(chain[-1].operand)
    given = evaluation.evaluate(chain[-1].operand, position)
    for one in reversed(chain):
        given = _applied(evaluation, one, given)
    return given


def _applied(evaluation: Evaluator, node: ast.UnaryOp, operand: object) -> object:
    if isinstance(operand, Faulty):
        return FAULTY
    primitive, native = _UNARY[type(node.op)]
    if not evaluation.is_symbolic(operand) or (evaluation.is_array(operand) and operand.shape):  # type: ignore[attr-defined]
        return evaluation.native(lambda: native(operand), node)
    value = evaluation.scalar(operand, node.operand)
    if not primitive and value is not None:
        return evaluation.attempt(lambda: of_a_number("pos", value, evaluation.span(node)), node)
    return evaluation.apply(primitive, [value], node)


def logical(evaluation: Evaluator, node: ast.BoolOp, position: Position) -> object:
    """``a and b``, ``a or b``: lazily, truth values where one of them is not configuration."""
    conjunction = isinstance(node.op, ast.And)
    found: Value | None = None
    faulty = False
    for part in node.values:
        with evaluation.guarding() if found is not None else nullcontext():
            given = evaluation.evaluate(part, position)
        if not evaluation.is_symbolic(given):
            if bool(given) != conjunction:
                result: object = given if found is None else Value.of(not conjunction)
                return (
                    FAULTY
                    if faulty
                    else result
                    if found is None
                    else _joined(evaluation, conjunction, found, result, node)
                )
            if part is node.values[-1] and found is None and not faulty:
                return given
            continue
        value = evaluation.scalar(given, part)
        if value is None:
            faulty = True
        elif found is None:
            found = as_truth(value, evaluation.span(part))
        else:
            joined = _joined(evaluation, conjunction, found, value, node)
            faulty |= isinstance(joined, Faulty)
            found = joined if isinstance(joined, Value) else found
    return FAULTY if faulty or found is None else found


def _joined(evaluation: Evaluator, conjunction: bool, left: Value, right: object, node: ast.expr) -> object:
    return evaluation.apply("and_" if conjunction else "or_", [left, evaluation.scalar(right, node)], node)


def compare(evaluation: Evaluator, node: ast.Compare, position: Position) -> object:
    """``a < b <= c``, ``a is None``: a truth value at a point, or Python's answer."""
    operands = (node.left, *node.comparators)
    if position is Position.CONDITION:
        evaluation.terms |= {id(term): True for operand in operands for term in terms(operand)}
    given = [evaluation.evaluate(operand, position) for operand in operands]
    if position is Position.CONDITION:
        given = _with_numbers_of_numpy(evaluation, given)
    found: object = None
    for kind, left, right in zip(node.ops, given, given[1:], strict=False):
        one = _comparison(evaluation, type(kind), left, right, node)
        if isinstance(one, Faulty):
            return FAULTY
        if found is None:
            found = one
        elif isinstance(found, Value) or isinstance(one, Value):
            found = evaluation.apply("and_", [evaluation.scalar(found, node), evaluation.scalar(one, node)], node)
        else:
            before, after = found, one
            found = evaluation.native(lambda: before and after, node)  # noqa: B023
    return found


def _with_numbers_of_numpy(evaluation: Evaluator, given: list[object]) -> list[object]:
    # `i < n` with a NumPy integer `n` bounds i as one with an integer of Python's does. Beside cells it is a value.
    integers = evaluation.environment.session.integers

    def is_place(each: object) -> bool:
        whole = isinstance(each, Value) and each.weak == "int" and not any(reads(each.expr))
        return whole or isinstance(each, SymbolicSize | int)

    def number(each: object) -> object:
        end = integers.end(each)
        return int(each) if isinstance(each, np.integer) else each if end is None else Value(end, "int", "int64")

    if not any(isinstance(each, Value) and is_place(each) for each in given):
        return given
    if not all(is_place(each) or isinstance(each, np.integer) or integers.is_number(each) for each in given):
        return given
    return list(map(number, given))


def _comparison(evaluation: Evaluator, kind: type[ast.cmpop], left: object, right: object, node: ast.Compare) -> object:
    if isinstance(left, Faulty) or isinstance(right, Faulty):
        return FAULTY
    if kind in _PYTHON_COMPARISONS:
        if kind in (ast.In, ast.NotIn) and (evaluation.is_symbolic(left) or evaluation.is_symbolic(right)):
            return evaluation.fault(
                DslSyntaxError, "`in` on a value that is different at every point", node, "write =="
            )
        return evaluation.native(lambda: _PYTHON_COMPARISONS[kind](left, right), node)
    primitive, native = COMPARISONS[kind]
    sides = whole_arrays(evaluation, (left, right), node)
    if sides is not None or not any(map(evaluation.is_symbolic, (left, right))):
        return evaluation.native(lambda: native(*(sides or (left, right))), node)
    return evaluation.apply(primitive, [evaluation.scalar(left, node.left), evaluation.scalar(right, node)], node)


def conditional(evaluation: Evaluator, node: ast.IfExp, position: Position) -> object:
    """``a if test else b``: one branch where configuration decides, else both, lazily."""
    test = evaluation.evaluate(node.test, position)
    if isinstance(test, Faulty):
        evaluation.evaluate(node.body, position)
        evaluation.evaluate(node.orelse, position)
        return FAULTY
    if not evaluation.is_symbolic(test):
        return evaluation.evaluate(node.body if test else node.orelse, position)
    condition = evaluation.scalar(test, node.test)
    with evaluation.guarding():
        body, other = evaluation.value(node.body, position), evaluation.value(node.orelse, position)
    return evaluation.apply("where", [condition, body, other], node)
