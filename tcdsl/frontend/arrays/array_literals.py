"""N-dimensional literals: lists are output axes, tuples input axes, and `batch` marks batch axes.

::

    [1.0, 2.0]                      2               one output axis
    [(1, 2, 3), (4, 5, 6)]          3 -> 2          a matrix that maps three numbers to two
    batch([[1, 2], [3, 4]])         2 | -> 2        two vectors

Their leaves are numbers, arrays, whose axes are output axes, and tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.staging.given_arrays import given_array
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor, algebra_of
from tcdsl.frontend.symbols.symbols import SymbolicArray
from tcdsl.span import Span
from tcdsl.tracebacks import NamesTold, user_facing

__all__ = [
    "NO_NUMBER",
    "Batch",
    "axes_of_literal",
    "batch",
    "holds_tensors",
    "is_literal",
    "leaves_of",
    "level_of",
    "literal_array",
    "literal_of",
    "parts_of",
]

NO_NUMBER = ("a literal holds something that is no number", "write numbers, or tensors of one shape")
"""The fact and the hint for text and the like among the leaves."""


@dataclass(frozen=True, slots=True)
class Batch(NamesTold):
    """A level of a literal that is a batch axis: ``batch([[1, 2], [3, 4]])``, in the literal spelling ``[| |]``."""

    parts: tuple[Any, ...]


@user_facing
def batch(parts: Any) -> Batch:
    """Mark a level of a literal as a batch axis: ``tc.tensor(batch([[1, 2], [3, 4]]))`` has the shape ``2 | -> 2``."""
    try:
        return Batch(tuple(parts))
    except TypeError:
        raise DtypeError.at(f"{parts!r} as a batch axis", hint="give what is along it: `batch([1, 2])`") from None


def is_literal(value: object) -> bool:
    """Whether ``value`` is a list, a tuple or a batch. Named tuples and other kinds of lists are records."""
    return type(value) in (list, tuple, Batch)


def level_of(value: object) -> str | None:
    """The row in which the outermost axis of a literal is; ``None`` for a leaf."""
    if isinstance(value, Batch):
        return "batch"
    if isinstance(value, list):
        return "output"
    return "input" if isinstance(value, tuple) else None


def parts_of(value: Any) -> Any:
    """The parts of the outermost level."""
    return value.parts if isinstance(value, Batch) else value


def leaves_of(value: Any) -> Iterator[Any]:
    """What is in a literal, in order; a value that is none is its own leaf."""
    if level_of(value) is None:
        yield value
        return
    for part in parts_of(value):
        yield from leaves_of(part)


def holds_tensors(value: object) -> bool:
    """Whether ``value`` is a literal with a tensor among its leaves."""
    return is_literal(value) and any(isinstance(leaf, SymbolicArray | GraphTensor) for leaf in leaves_of(value))


def literal_of(session: Session, value: Any) -> Any:
    """The array that a literal stands for. `DslSyntaxError` for a list that Python has joined or repeated."""
    if id(value) in session.python_lists:
        raise session.fault(
            DslSyntaxError,
            f"this {type(value).__name__} was joined or repeated by Python's `+` or `*`, and is an operand of a tensor",
            "write `tensor([...]) * 2` or `tensor([...]) + ...` for arithmetic, and `tensor(...)` of the list to use "
            "it as it is",
        )
    found = algebra_of(leaves_of(value)) or session.builder.algebra
    return found.literal(value)


def axes_of_literal(value: Any, span: Span | None) -> list[tuple[str, int]]:
    """The rows and sizes of a literal's levels, from the outside in. `ShapeError` unless they are the same everywhere.

    Tensors among the parts are left out: they broadcast.
    """
    row = level_of(value)
    if row is None:
        # Arrays in a literal have output axes, as lists of their cells have.
        return [("output", size) for size in value.shape] if _is_array(value) else []
    parts = parts_of(value)
    inner = [axes_of_literal(part, span) for part in parts if not isinstance(part, SymbolicArray | GraphTensor)]
    if any(each != inner[0] for each in inner[1:]):
        raise ShapeError.at(
            "the parts of a literal have different shapes",
            span,
            "all parts of one level have the same lists, tuples and lengths",
        )
    return [(row, len(parts)), *(inner[0] if inner else [])]


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, GraphTensor | np.generic | type)


def _cells(leaf: Any, span: Span | None) -> list[Any]:
    array = given_array(leaf, "", span=span) if _is_array(leaf) else None
    return [leaf] if array is None else list(array.ravel())


def literal_array(value: Any, span: Span | None) -> tuple[np.ndarray, tuple[int, int, int]]:
    """The cells of a literal of numbers in the order of storage, and how many batch, output and input axes it has."""
    axes = axes_of_literal(value, span)
    order = {"batch": 0, "output": 1, "input": 2}
    cells = [cell for leaf in leaves_of(value) for cell in _cells(leaf, span)]
    array = np.array(cells).reshape([size for _, size in axes])
    if array.dtype.kind not in "bifu":
        fact, hint = NO_NUMBER
        raise DtypeError.at(fact, span, hint)
    stored = sorted(range(len(axes)), key=lambda k: order[axes[k][0]])
    counts = [sum(row == name for row, _ in axes) for name in ("batch", "output", "input")]
    return np.ascontiguousarray(array.transpose(stored)), (counts[0], counts[1], counts[2])
