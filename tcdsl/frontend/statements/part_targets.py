"""Targets that are parts of a tensor, as in NumPy: ``a[1:-1, 1:-1] = x``, ``a[:, k] += x``, ``a[0] = x``.

A subscript with a slice, ``None`` or ``...`` is one, and so is one with fewer integers than the tensor has axes. A mask
gives the cells where it is true one number: ``a[a < 0] = 0``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import combine, element_of, record_elementwise
from tcdsl.frontend.arrays.array_stores import store_elementwise
from tcdsl.frontend.arrays.chosen_cells import ChosenCells, held_now
from tcdsl.frontend.arrays.views import mask_of, part_of
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import index_meaning
from tcdsl.frontend.source.assigned_names import target_of, value_of
from tcdsl.frontend.source.python_stores import augmented
from tcdsl.frontend.staging.declarations import DeclaredTarget
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.statements.accesses import axis_nodes
from tcdsl.frontend.statements.local_definitions import (
    holds_rows,
    is_mask,
    letters_of,
    letters_outside_reductions,
    reads_points,
)
from tcdsl.frontend.statements.statement_syntax import read_assignment
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicTensor, View
from tcdsl.frontend.symbols.values import Value, stored_dtype, sum_dtype
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.build import neutral_constant
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Statement
from tcdsl.ir.text.printer import format_expr

__all__ = ["extents_of", "is_part", "record_part"]

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def extents_of(current: object) -> tuple[Expr, ...] | None:
    """The extents of what a target's name holds, if they are known."""
    return current.extents if isinstance(current, SymbolicArray | DeclaredTarget) else None


def is_part(node: ast.stmt, extents: Sequence[Expr] | None, environment: FunctionScope) -> bool:
    """Whether the target of a statement is a part of a tensor, which has these extents if that is known."""
    target = target_of(node)
    if not isinstance(target, ast.Subscript):
        return False
    axes = axis_nodes(target.slice)
    if any(_is_basic(axis, environment) for axis in axes):
        return True
    if extents is None or not 0 < len(axes) <= len(extents) or letters_of(axes, ast.Constant(0), environment):
        return False
    # One cell is a part too where its value is one of whole arrays: `s[0] = sum(x[1:] * x[:-1])`.
    return len(axes) < len(extents) or is_mask(axes[0], environment) or _takes_parts(node, environment)


def _takes_parts(node: ast.stmt, environment: FunctionScope) -> bool:
    value = value_of(node) or ast.Constant(None)
    subscripts = [each for each in ast.walk(value) if isinstance(each, ast.Subscript)]
    clauses = (each.target for each in ast.walk(value) if isinstance(each, ast.comprehension))
    bound = {each.id for clause in clauses for each in ast.walk(clause) if isinstance(each, ast.Name)}
    axes = (axis for each in subscripts for axis in axis_nodes(each.slice))
    basic = any(_is_basic(axis, environment) for axis in axes if not (isinstance(axis, ast.Name) and axis.id in bound))
    return (basic or holds_rows(value, environment)) and not letters_of((), value, environment)


def _is_basic(node: ast.expr, environment: FunctionScope) -> bool:
    # A slice, None or `...`, or a name that holds one.
    match node:
        case ast.Slice():
            return True
        case ast.Constant(value=value):
            return value is None or value is Ellipsis
        case ast.Attribute(attr="newaxis"):
            return True
        case ast.Name(id=name):
            meaning = index_meaning(name, environment)
            return meaning is None or meaning is Ellipsis or isinstance(meaning, slice)
    return False


def record_part(
    node: ast.stmt,
    name: str,
    current: object,
    ordinary: Callable[[], tuple[Any, Any, Any]],
    environment: FunctionScope,
) -> SymbolicTensor:
    """Record a statement on a part of what ``name`` holds: the new version of the tensor.

    ``ordinary`` gives the subscript and the value as Python evaluates them. A declared target starts from the neutral
    element.
    """
    _check_letters(node, name, extents_of(current), environment)
    given = read_assignment(node, environment)
    for extra in (*given.conditions, *given.options.values()):
        fact = "a part of a tensor is given a value and nothing else"
        hint = "conditions and options belong to index lists, `T[i, j]`"
        raise DslSyntaxError.at(fact, environment.span(extra), hint)
    accumulate = given.accumulate
    builder = session_of("a tensor statement").builder
    begin = len(builder.recording.statements)
    _, key, value = ordinary()
    parts = builder.recording.statements[begin:]
    if isinstance(current, DeclaredTarget) and current.extents is not None:
        current = _started(current, current.extents, accumulate or "assign", value, name)
    if not isinstance(current, SymbolicTensor | View):
        raise ShapeError.at(
            f"`{name}` has no shape yet, so it has no parts",
            environment.span(target_of(node)),
            f"declare it first, as in `{name} = output(N)`, or write it with an index list",
        )
    if _chooses(current, key, value) and not given.reset:
        return _record_chosen(node, current, accumulate, key, value, parts)
    _check_arrays(node, name, key, current.extents, environment)
    part = part_of(current, key)
    if isinstance(node, ast.AugAssign) and not accumulate:
        # An operator of Python that is no accumulator: `a[1:] //= 2`.
        accumulate, value = "assign", augmented(type(node.op), part, value)
    if given.reset:
        neutral = Value.of(neutral_element(accumulate, part.element_type))
        number = PendingArray(part.builder, neutral, ())
        part = part.of(store_elementwise(part, "assign", number))
    return store_elementwise(part, accumulate, value, parts)


def _chooses(current: SymbolicArray, key: Any, value: Any) -> bool:
    # `y[y > 0.5] = 1.0`: a mask alone, and one number for all cells where it is true, or what it chooses elsewhere.
    if not (isinstance(key, SymbolicArray) and key.dtype == "bool" and key.rank > 0):
        return False
    if isinstance(value, ChosenCells):
        element, extents = element_of(held_now(key), session_of("a store"))
        return len(extents) == current.rank and element.expr == value.mask.element.expr
    return not isinstance(value, list | tuple) and getattr(value, "ndim", 0) == 0


def _record_chosen(
    node: ast.stmt, current: SymbolicTensor | View, accumulate: str, key: Any, value: Any, parts: Sequence[Statement]
) -> SymbolicTensor:
    value = value.array if isinstance(value, ChosenCells) else value
    if accumulate in ACCUMULATORS:
        value = combine(ACCUMULATORS[accumulate].primitive, current, value)
    elif isinstance(node, ast.AugAssign):
        value = augmented(type(node.op), current.held(), value)
    mask: Any = mask_of(session_of("a store"), current, key, current.label)
    mask = mask[(..., *(None,) * (current.rank - mask.rank))]
    return store_elementwise(current, "assign", combine("where", mask, value, current), parts)


# Their neutral elements are other numbers in other types.
_ENDS = frozenset(("max", "min"))
_SUMS = frozenset(("add", "subtract", "multiply"))


def _started(
    declared: DeclaredTarget, extents: tuple[Expr, ...], accumulate: str, value: Any, name: str
) -> SymbolicTensor:
    session = session_of("a tensor statement")
    element, _ = element_of(value, session)
    dtype = sum_dtype(element) if accumulate in _SUMS else stored_dtype(element)
    if declared.dtype == "real":
        dtype = dtype if is_floating(dtype) else "float64"
    elif declared.dtype is not None:
        dtype = declared.dtype
    start = Value(neutral_constant(accumulate, dtype), None, dtype)
    made = record_elementwise(session, start, extents, name)
    statement = session.builder.recording.statements[-1]
    session.builder.written.declared(statement)
    if element.weak == "int" and declared.dtype is None and accumulate not in _ENDS:
        session.builder.written.by_numbers(statement)
    return made


def _check_letters(node: ast.stmt, name: str, extents: Sequence[Expr] | None, environment: FunctionScope) -> None:
    """Raise the fault of a part that is mixed with index variables, in its subscript or in the value."""
    target = target_of(node)
    assert isinstance(target, ast.Subscript)
    axes = axis_nodes(target.slice)
    letters = letters_of(axes, ast.Constant(0), environment)
    if letters:
        fact = f"slices and the index {_listed(letters)} in one subscript"
        raise DslSyntaxError.at(fact, environment.span(target), _hint(name, axes, extents))
    value = value_of(node) or ast.Constant(None)
    letters = letters_outside_reductions(value, environment)
    subscripts = [each for each in ast.walk(value) if isinstance(each, ast.Subscript)]
    if letters and any(reads_points(each, environment) for each in subscripts):
        fact = f"a part of `{name}` takes whole arrays, but the value has the index {_listed(letters)}"
        raise DslSyntaxError.at(fact, environment.span(value), _hint(name, axes, extents))


def _listed(letters: tuple[str, ...]) -> str:
    return ", ".join(f"`{letter}`" for letter in letters)


def _check_arrays(node: ast.stmt, name: str, key: object, extents: Sequence[Expr], environment: FunctionScope) -> None:
    """Raise the fault of an array among the indices of a part: cells that data choose are written in index form."""
    target = target_of(node)
    assert isinstance(target, ast.Subscript)
    entries = key if isinstance(key, tuple) else (key,)
    ranks = {
        k: np.ndim(entry) for k, entry in enumerate(entries) if isinstance(entry, SymbolicArray | np.ndarray | list)
    }
    arrays = {k: entries[k] for k, rank in ranks.items() if rank}
    if not arrays:
        return
    axes = axis_nodes(target.slice)
    if len(axes) != len(entries):
        axes = [ast.Name("rows")] * len(entries)
    shown = {k: axes[k].id if isinstance(axes[k], ast.Name) else "chosen" for k in arrays}  # type: ignore[attr-defined]
    truths = [k for k, entry in arrays.items() if str(getattr(entry, "dtype", "")) == "bool"]
    written = {k: f"{shown[k]}[n]" for k in arrays}
    hint = _hint(name, axes, extents, written)
    if truths:
        mask = shown[truths[0]]
        hint = f"give one index to an axis, and the mask as a condition: `{name}[i] = ..., {mask}[i]`"
    fact = f"{'a mask' if truths else 'an array'} among the indices of a part of `{name}`"
    raise DslSyntaxError.at(fact, environment.span(target), hint)


def _hint(
    name: str, axes: Sequence[ast.expr], extents: Sequence[Expr] | None, written: Mapping[int, str] | None = None
) -> str:
    # The same part in index form: `a[1:, j]` is `a[i, j]` where `1 <= i`.
    taken = {part.id for axis in axes for part in ast.walk(axis) if isinstance(part, ast.Name)}
    letters = (letter for letter in _LETTERS if letter not in taken and letter != "n")
    indices: list[str] = []
    conditions: list[str] = []

    def one(axis: ast.expr, extent: str) -> None:
        if not isinstance(axis, ast.Slice):
            indices.append(ast.unparse(axis))
            return
        letter = next(letters)
        lower, upper = _bound(axis.lower, extent), _bound(axis.upper, extent)
        if axis.step is None:
            indices.append(letter)
            if lower is not None:
                conditions.append(f"{letter} >= {lower}")
            if upper is not None:
                conditions.append(f"{letter} < {upper}")
            return
        steps = ast.unparse(axis.step)
        start = (f"{extent} - 1" if steps.startswith("-") else None) if lower is None else lower
        scaled = f"{steps.lstrip('-')} * {letter}"
        sign = "-" if steps.startswith("-") else "+"
        indices.append(scaled if start is None else f"{start} {sign} {scaled}")

    missing = len(extents or ()) - sum(not _adds_or_fills(axis) for axis in axes)
    shown = [format_expr(extent) for extent in extents or ()]
    every = list[ast.expr]([ast.Slice()] * missing)
    expanded: list[tuple[int, ast.expr]] = []
    for k, axis in enumerate(axes):
        if isinstance(axis, ast.Constant) and axis.value is Ellipsis:
            expanded += [(-1, each) for each in every]
            every = []
        elif not _adds_or_fills(axis):
            expanded.append((k, axis))
    for position, (k, axis) in enumerate([*expanded, *((-1, each) for each in every)]):
        if written is not None and k in written:
            indices.append(written[k])
        else:
            one(axis, shown[position] if position < len(shown) else "N")
    statement = ", ".join([f"{name}[{', '.join(indices)}] = ...", *conditions])
    return f"give one index to an axis: `{statement}`"


def _adds_or_fills(axis: ast.expr) -> bool:
    return isinstance(axis, ast.Constant) and (axis.value is None or axis.value is Ellipsis)


def _bound(node: ast.expr | None, extent: str) -> str | None:
    if node is None:
        return None
    text = ast.unparse(node)
    return f"{extent} - {text[1:]}" if text.startswith("-") else text
