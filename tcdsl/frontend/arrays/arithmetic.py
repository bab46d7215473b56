"""Whole-array arithmetic in decorated functions: NumPy's broadcasting on symbolic shapes, one statement per assignment.

``p - learning_rate * g`` becomes a `PendingArray`: the value of one cell, in terms of axis variables that count from
the right, as broadcasting does. Binding it to a name, returning it or indexing it records the statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

from tcdsl.errors import DtypeError
from tcdsl.frontend.arrays.array_literals import Batch, is_literal, literal_of
from tcdsl.frontend.arrays.chosen_cells import ChosenCells
from tcdsl.frontend.arrays.row_alignment import axis_variable, cell_at, common_rows, rows_of
from tcdsl.frontend.points.point_scalars import PointValue, meeting_an_array
from tcdsl.frontend.staging.declarations import DeclaredTarget, Unwritten
from tcdsl.frontend.staging.declared_parameters import declared_parameter
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.given_arrays import instead_of
from tcdsl.frontend.staging.session import Poison, Session, StagingStopped, session_of
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.known_integers import KnownInteger
from tcdsl.frontend.symbols.opaque_sizes import named_sizes
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import (
    PendingArray,
    SymbolicArray,
    SymbolicNumber,
    SymbolicSize,
    SymbolicTensor,
    number_value,
)
from tcdsl.frontend.symbols.values import Product, Value, cast_value, require_fitting, store_value, stored_dtype
from tcdsl.ir.build import apply, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.expressions import Constant, Expr, IndexValue, Read, children, reads, substitute, walk
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Access, Neutral, Statement, Tensor
from tcdsl.polyhedra.affine import NotAffine, function_of, universe
from tcdsl.polyhedra.boxes import box

__all__ = [
    "axes",
    "box",
    "broadcast",
    "cast_any",
    "combine",
    "element_of",
    "meet",
    "record_cells",
    "record_elementwise",
    "staged_operand",
]


def staged_operand(operand: object, session: Session) -> object:
    """``operand`` as part of the program: its input for a tensor of a graph or a declared parameter, else as it is."""
    if isinstance(operand, str):
        operand = declared_parameter(operand, session.location())
    if is_literal(operand):
        operand = literal_of(session, operand)
    return session.capture(operand) if isinstance(operand, GraphTensor) else operand


def element_of(operand: object, session: Session) -> tuple[Value, tuple[Expr, ...]]:
    """The value of one cell of ``operand``, and its extents; numbers and sizes have none."""
    number = number_value(operand)
    if number is not None:
        return number, ()
    match operand:
        case PendingArray():
            return operand.element, operand.extents
        case SymbolicTensor():
            indices = [IndexValue(axis_variable(k)) for k in reversed(range(operand.rank))]
            return operand.cell(indices, session.location()), operand.extents
        case np.ndarray():
            return element_of(session.capture(operand), session)
        case _ if not isinstance(operand, type | GraphTensor) and hasattr(type(operand), "__array__"):
            return element_of(session.capture(operand), session)  # of another library
        case GraphTensor() | str():
            return element_of(staged_operand(operand, session), session)
        case list() | tuple() | Batch() if is_literal(operand):
            return element_of(staged_operand(operand, session), session)
        case Unwritten() if session.context.states is not None:
            return Value.of(session.context.states.read(operand.name)), ()
        case Unwritten() | DeclaredTarget():
            raise operand.fault()
        case Poison():
            raise StagingStopped
        case PointValue():
            raise meeting_an_array(operand.span)
        case _:
            raise session.fault(
                DtypeError,
                f"a {type(operand).__name__} does not take part in tensor arithmetic",
                instead_of(operand, "") or "use arrays, numbers, sizes, and lists of these",
            )


def _factor_of(operand: object, session: Session) -> tuple[Value, tuple[Expr, ...]]:
    # As an operand of pointwise arithmetic, which the brackets of a product guard.
    value, extents = element_of(operand, session)
    if isinstance(operand, SymbolicTensor) and operand.brackets:
        value = replace(value, product=Product(operand.brackets, value))
    return value, extents


def broadcast(
    session: Session, parts: Sequence[tuple[Value, tuple[Expr, ...]]], fact: str = "", hint: str = ""
) -> tuple[list[Value], tuple[Expr, ...]]:
    """The values of cells of several operands on their common shape, and that shape.

    `ShapeError` if there is none, which says ``fact`` and ``hint`` if they are given.
    """
    # Right-aligned. An axis of extent 1 reads its only cell; whether a symbolic extent is 1 is a guard of the program.
    rank = max(len(extents) for _, extents in parts)
    result: list[Expr] = []
    stretched: list[dict[Expr, Expr]] = [{} for _ in parts]
    for k in range(rank):
        extent: Expr | None = None
        first = 0
        for position, (_, extents) in enumerate(parts):
            if k >= len(extents):
                continue
            own = extents[len(extents) - 1 - k]
            if extent is None:
                extent, first = own, position
                continue
            relation = meet(session, extent, own, fact, hint)
            if relation == "left":
                for earlier in range(first, position):
                    if k < len(parts[earlier][1]):
                        stretched[earlier][IndexValue(axis_variable(k))] = integer(0)
                extent = own
            elif relation == "right":
                stretched[position][IndexValue(axis_variable(k))] = integer(0)
        result.append(integer(1) if extent is None else extent)
    values = [
        value.mapped(partial(substitute, replacements=replacements))
        for (value, _), replacements in zip(parts, stretched, strict=True)
    ]
    return values, tuple(reversed(result))


def meet(session: Session, left: Expr, right: Expr, fact: str = "", hint: str = "") -> str:
    """How two extents meet on an axis that broadcasts: ``equal``, ``left`` (that one is 1 and stretches), ``right``.

    What this call's sizes decide is kept as a guard, and equality as an assertion of the program.
    """
    if left == right:
        return "equal"
    # A constant extent of 1 broadcasts to whatever it meets; only symbolic extents need a guard.
    if isinstance(left, Constant) and left.value == 1:
        return "left"
    if isinstance(right, Constant) and right.value == 1:
        return "right"
    relation = session.broadcast_relation(left, right)
    fits = apply("eq", left, right)
    if relation != "equal":
        if session.knows(left, right):
            return relation
        fits = apply("or_", apply("eq", left if relation == "left" else right, integer(1)), fits)
    fact = f"{fact or 'the arrays do not broadcast'}: extents {valued(left)} and {valued(right)} meet on one axis"
    session.builder.require(fits, f"{fact}\n{hint}" if hint else fact, session.location())
    return relation


def combine(primitive: str, *operands: object) -> Any:
    """A primitive on symbolic operands: an array if there is one among them, else a number or a size.

    Unknown operand types give ``NotImplemented`` for comparisons with ``==`` and ``!=``, and a `DtypeError` else.
    """
    if primitive in ("eq", "ne") and not _comparable(operands):
        return NotImplemented
    session = session_of("tensor arithmetic")
    chosen = next((operand for operand in operands if isinstance(operand, ChosenCells)), None)
    if chosen is not None:
        return ChosenCells(combine(primitive, *map(chosen.operand, operands)), chosen.mask, chosen.span)
    staged = [staged_operand(operand, session) for operand in operands]
    pending = [operand for operand in staged if isinstance(operand, PendingArray)]
    for array in pending:
        array.uses += 1  # before any is asked: in `t * t` both operands are one array
    staged = [operand.shared() if isinstance(operand, PendingArray) else operand for operand in staged]
    parts = [_factor_of(operand, session) for operand in staged]
    if not any(isinstance(operand, SymbolicArray | np.ndarray) for operand in staged):
        return _combine_numbers(session, primitive, staged, [value for value, _ in parts])
    parts, rows = common_rows(staged, parts)
    values, extents = broadcast(session, parts)
    _require_numbers(session, values)
    value = apply_primitive(primitive, values, session.location())
    for part in children(value.expr):  # one in brackets stands one level further down
        for constant in (part, *children(part)):
            require_fitting(constant, session.location())
    return PendingArray(session.builder, value, extents, rows)


def _require_numbers(session: Session, values: Sequence[Value]) -> None:
    # Integers of Python and what is made of them are exact until they become cells, or meet them.
    for value in values:
        if value.weak == "int" and not isinstance(value.expr, Constant):
            for node in walk(value.expr):
                require_fitting(node, session.location())


def _comparable(operands: Sequence[object]) -> bool:
    # Sizes and numbers are compared with the tuples that shapes are, and anything with None and names.
    if any(operand is None or isinstance(operand, str) for operand in operands):
        return False
    arrays = any(isinstance(operand, SymbolicArray | GraphTensor) for operand in operands)
    return arrays or not any(isinstance(operand, tuple) for operand in operands)


# The nodes of a number's expression beyond which a statement computes it. Few integers are that large, some are sizes.
_LARGEST_NUMBERS = {"float": 40, "int": 200}

_SIZE_PRIMITIVES = frozenset(("add", "sub", "mul", "floor_div", "mod", "neg", "max", "min"))


def _combine_numbers(session: Session, primitive: str, operands: Sequence[object], values: Sequence[Value]) -> Any:
    builder = session.builder
    if PRIMITIVES[primitive].kind == "compare" and any(any(reads(value.expr)) for value in values):
        _require_numbers(session, values)  # of sizes alone it is exact
        for value in values:
            require_fitting(value.expr, session.location())
    if primitive in _SIZE_PRIMITIVES and all(
        isinstance(o, SymbolicSize | int) and not isinstance(o, bool) for o in operands
    ):
        expr = apply(primitive, *(value.expr for value in values))
        if isinstance(expr, Constant):
            return KnownInteger(int(expr.value))
        return SymbolicSize(builder, named_sizes(expr, builder.opaque_size))
    result = apply_primitive(primitive, values, session.location())
    parameters = frozenset().union(*(o.parameters for o in operands if isinstance(o, SymbolicNumber)))
    weak = result.weak or ("bool" if result.expr.dtype == "bool" else None)
    if weak is None:
        # A NumPy scalar took part: the result has its type, so it is an array of rank 0.
        return PendingArray(builder, result, ())
    expr = result.expr
    if weak != "bool" and next(islice(walk(expr), _LARGEST_NUMBERS[weak], None), None) is not None:
        # What is used twice would double what it is part of, again and again.
        held = record_elementwise(session, result, (), "number")
        expr = Read(held.name, (), (), expr.dtype)
    return SymbolicNumber(builder, expr, weak, parameters)


# -- statements ----------------------------------------------------------------------------------------------


_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def axes(session: Session, rank: int) -> tuple[str, ...]:
    """Index variables for ``rank`` axes: readable letters, none of which is a size of the program."""
    taken = set(session.builder.size_names())
    names = (*_LETTERS, *(f"i{k}" for k in range(rank)))
    return tuple([name for name in names if name not in taken][:rank])


def all_cells(session: Session, variables: Sequence[str], extents: Sequence[Expr]) -> Domain:
    """The domain ``0 <= variable < extent`` for every axis."""
    points = universe((), ())

    def affine(extent: Expr) -> Expr:
        try:
            function_of(extent, points)
        except NotAffine:
            return session.builder.opaque_size(extent)
        return extent

    return Domain.from_set(box(variables, tuple(map(affine, extents))))


def record_cells(
    session: Session,
    label: str,
    dtype: str,
    value: Expr,
    shape: dict[str, Expr],
    accumulate: str = "assign",
    reduced: Mapping[str, Expr] = MappingProxyType({}),
) -> SymbolicTensor:
    """Record ``label[i, j] <accumulate>= value`` anew, and return the new tensor.

    ``shape`` has the extents by the index variables of the target, ``reduced`` those of what is reduced.
    """
    builder, span = session.builder, session.location()
    name, extents = builder.fresh_name(label), tuple(shape.values())
    cells = {**shape, **reduced}
    statement = Statement(
        Access(name, tuple(map(IndexValue, shape)), span),
        accumulate,
        Neutral(),
        value,
        all_cells(session, list(cells), list(cells.values())),
        span=span,
    )
    builder.add_statement(statement, Tensor(name, dtype, extents, "" if label == name else label, span))
    return SymbolicTensor(builder, name, dtype, extents, label)


def record_elementwise(session: Session, element: Value, extents: tuple[Expr, ...], label: str) -> SymbolicTensor:
    """Record ``label[i, j] = element`` over the whole box of ``extents`` and return the new tensor."""
    variables = axes(session, len(extents))
    dtype = stored_dtype(element)
    value = cell_at(store_value(element, dtype, session.location()), list(map(IndexValue, variables)))
    made = record_cells(session, label, dtype, value, dict(zip(variables, extents, strict=True)))
    if dtype == "bool" and not extents:
        session.builder.written.conditions.hold(made.name, value)
    return made


def cast_any(operand: object, dtype: str) -> Any:
    """``float32(x)`` on a whole array, a size or a run-time number; the result is an array."""
    session = session_of("a cast")
    if dtype not in DTYPES:
        raise session.fault(DtypeError, f"{dtype} is no element type of the language", f"use {', '.join(DTYPES)}")
    operand = staged_operand(operand, session)
    element, extents = element_of(operand, session)
    rows = rows_of(operand, extents)
    return PendingArray(session.builder, cast_value(element, dtype, session.location()), extents, rows)
