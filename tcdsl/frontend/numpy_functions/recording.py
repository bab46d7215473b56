"""Statements in index notation, for functions of whole arrays: a row of NumPy's functions is one call of `computed`.

::

    def running_sums(x, axis):
        def cell(*indices):
            *place, term = indices
            return Cell(x.cell(replaced(place, axis, term)), where=(apply("le", term, place[axis]),))
        return computed("sums", x.extents, x.rank + 1, cell, accumulate="add")

is ``sums[i, j] += x[i, k], k <= j``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.frontend.arrays.arithmetic import axes, staged_operand
from tcdsl.frontend.arrays.array_literals import leaves_of
from tcdsl.frontend.arrays.filled_arrays import filled_array
from tcdsl.frontend.staging.session import Session, materialized, session_of
from tcdsl.frontend.staging.target_states import Declared, Existing
from tcdsl.frontend.stores.stores import record_sketch, sketch_of, store
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import index
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Access

__all__ = ["Cell", "array_of", "computed", "filled", "replaced", "tensor_of"]


@dataclass(frozen=True, slots=True)
class Cell:
    """What a statement does at a point: the value, the target's indices if they are not the first ones, conditions."""

    value: Value
    at: Sequence[Expr] | None = None
    where: tuple[Expr, ...] = ()


def tensor_of(session: Session, given: Any, label: str) -> SymbolicTensor:
    """``given`` as a tensor of the program: arrays around it become inputs, pending arithmetic is recorded."""
    operand = staged_operand(given, session)
    if isinstance(operand, np.ndarray):
        operand = session.capture(operand, label)
    made: SymbolicTensor = materialized(operand, label)
    return made


def array_of(given: Any) -> Any:
    """``given`` with a rank and a type: lists and Python's numbers as arrays, lists of symbols as tensors."""
    if isinstance(given, int | float):
        return np.asarray(given)
    if not isinstance(given, list | tuple):
        return given
    known = all(isinstance(leaf, int | float | np.number | np.bool_) for leaf in leaves_of(given))
    return np.asarray(given) if known else tensor_of(session_of("an array literal"), given, "listed")


def computed(
    label: str,
    extents: Sequence[Expr],
    variables: int,
    cell: Callable[..., Cell],
    *,
    accumulate: str = "assign",
    onto: SymbolicTensor | None = None,
    dtype: str | None = None,
) -> SymbolicTensor:
    """A new tensor of these extents, or a new version of ``onto``, by one statement with that many index variables.

    ``cell`` is given the variables; the target's indices are the first of them unless it says others.
    """
    session = session_of(label)
    names = axes(session, variables)
    places = list(map(index, names))
    made, span = cell(*places), session.location()
    state = Declared(tuple(extents), dtype, label) if onto is None else Existing(onto, declared=True)
    stored = store(state, accumulate, False, made.value, span)
    indices = places[: len(extents)] if made.at is None else made.at
    access = Access(session.builder.fresh_name(label), tuple(indices), span)
    sketch = sketch_of(state, stored, access, stored.value, names, conditions=made.where, span=span)
    return record_sketch(sketch, state, session.builder)


def replaced(places: Sequence[Expr], axis: int, place: Expr) -> list[Expr]:
    """``places`` with another one along ``axis``."""
    return [*places[:axis], place, *places[axis + 1 :]]


def filled(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """``filled(np.arange, n)``: what a decorated function gets for ``np.arange(n)``, also of sizes."""
    made = filled_array(function, arguments, keywords)
    return function(*arguments, **keywords) if made is NotImplemented else made
