"""Lists and tuples as operands: array literals, or Python's own lists.

A literal is an array beside a tensor, ``[1.0, 2.0] * x``, and if it is written as an operand where Python's operator
would fail, ``[1.0, 2.0] + 1``, or with tensors in it, ``[x, y] * 2``. ``[1, 2] * 2`` and ``[h] + rest`` are Python's
lists. What Python has joined or repeated is remembered: such a list is no operand of tensors, so that nobody takes it
for a sum or a product.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.arrays.array_literals import Batch, holds_tensors, is_literal, literal_of
from tcdsl.frontend.names.array_calls import as_python_does
from tcdsl.frontend.source.python_stores import OPERATORS, augmented
from tcdsl.frontend.staging.declared_parameters import (
    InlineDeclaration,
    current_parameters,
    declared_parameter,
    scaled_text,
)
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.statements.statement_operators import BINARY, COMPARISONS
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize

__all__ = ["augmented_operand", "binary", "unary"]

_OPERATORS: Mapping[str, tuple[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {kind.__name__: row for table in (BINARY, COMPARISONS) for kind, row in table.items()}
)
_SIGNS = MappingProxyType({kind.__name__: function for kind, function in OPERATORS.items()})
_COMPARED = frozenset(primitive for primitive, _ in COMPARISONS.values())
_SYMBOLIC = SymbolicNumber | SymbolicSize
_NUMBERS = bool | int | float | np.generic | SymbolicNumber | SymbolicSize


def binary(session: Session | None, kind: str, left: Any, right: Any, written: Sequence[bool]) -> Any:
    """``left <operator> right``, the operator by its name in `ast`.

    ``written`` says which of the two are displays, such as ``[a, b]``.
    """
    primitive, python = _OPERATORS[kind]
    if session is None:
        return python(left, right)
    given = [each for each in (left, right) if is_literal(each)]
    if not given:
        return _plain(session, primitive, python, left, right)
    if len(given) == 2:
        is_array = _are_arrays(session, primitive, given, written)
    else:
        is_array = _is_array(session, primitive, given[0], right if given[0] is left else left, any(written))
    if is_array:
        return python(*(literal_of(session, each) if is_literal(each) else each for each in (left, right)))
    counted = [operator.index(each) if isinstance(each, _SYMBOLIC) else each for each in (left, right)]
    return _remembered(session, as_python_does(python, *counted))


def _are_arrays(session: Session, primitive: str, given: list[Any], written: Sequence[bool]) -> bool:
    """Whether two literals are arrays for this operator, not lists as Python has them."""
    if any(isinstance(each, Batch) for each in given):
        return True
    if primitive in _COMPARED:
        return False
    if primitive != "add":
        return any(written)
    if not all(written) or not any(map(holds_tensors, given)):
        return False
    if len(given[0]) != len(given[1]) or len(given[0]) == 1:
        raise _ambiguous(session, "the sum of two lists with tensors in them: Python would join the lists")
    return True


def _is_array(session: Session, primitive: str, given: Any, other: Any, written: bool) -> bool:
    """Whether one literal is an array beside ``other``, which is none."""
    if isinstance(other, str):
        return written and primitive != "mod" and other.isidentifier()
    if not isinstance(other, _NUMBERS):
        return isinstance(other, SymbolicArray | GraphTensor) or holds_tensors(given)
    if primitive in ("eq", "ne") and not holds_tensors(given):
        return False
    repeats = primitive == "mul" and not isinstance(given, Batch) and _counts(other)
    if repeats and holds_tensors(given) and (not written or len(given) == 1):
        raise _ambiguous(session, "a list with tensors in it times a number: Python would repeat the list")
    return holds_tensors(given) or (not repeats and (written or isinstance(given, Batch)))


def _counts(number: object) -> bool:
    # Whether Python's `*` would repeat a list as often.
    if isinstance(number, SymbolicNumber):
        return number.weak_kind != "float"
    return isinstance(number, int | np.integer | SymbolicSize)


def _plain(session: Session, primitive: str, python: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    # `"w" @ np.ones(3)` and `"w" ** 2`: what is no operation of text declares, as beside a tensor.
    for text, other in ((left, right), (right, left)):
        if not isinstance(text, str) or not text.isidentifier():
            continue
        if primitive == "mul" and not isinstance(other, np.ndarray):
            if not isinstance(text, InlineDeclaration) or current_parameters() is None:
                return scaled_text(left, right)
            return python(
                *(declared_parameter(each, session.location()) if each is text else each for each in (left, right))
            )
        both = isinstance(other, str) and other.isidentifier() and primitive in ("", "sub", "div", "floor_div", "pow")
        numeric = isinstance(other, np.ndarray) and other.dtype.kind in "bifu"
        if both or numeric or (isinstance(other, _NUMBERS) and primitive not in ("mul", "mod", "eq", "ne")):
            algebra = session.builder.algebra
            return algebra.combine(primitive, left, right) if primitive else algebra.matrix_product(left, right)
    return as_python_does(python, left, right)


def unary(session: Session | None, kind: str, operand: Any) -> Any:
    """``-[x, y]``, and ``-"w"``, which is no text."""
    if session is not None and is_literal(operand):
        operand = literal_of(session, operand)
    elif session is not None and isinstance(operand, str):
        operand = declared_parameter(operand, session.location())
    return _SIGNS[kind](operand)


def augmented_operand(session: Session, kind: type[ast.operator], current: Any, value: Any) -> Any:
    """``current <operator>= value`` where ``current`` is a list, a tuple or an array of the surroundings."""
    if isinstance(current, np.ndarray):
        # NumPy would store into the array, which the program only reads.
        staged = isinstance(value, SymbolicNumber | SymbolicArray | GraphTensor)
        return binary(session, kind.__name__, current, value, ()) if staged else augmented(kind, current, value)
    if isinstance(value, SymbolicArray | GraphTensor):
        raise session.fault(
            DslSyntaxError,
            f"a tensor is added to a {type(current).__name__}, which Python would extend by the tensor's rows",
            "write `c = c + x` for arithmetic, and `c.append(x)` or `c.extend(x)` for a longer list",
        )
    return _remembered(session, augmented(kind, current, value))


def _remembered(session: Session, made: Any) -> Any:
    if is_literal(made):
        session.python_lists[id(made)] = made
    return made


def _ambiguous(session: Session, fact: str) -> TcdslError:
    return session.fault(
        DslSyntaxError,
        fact,
        "write `tensor([x, y])` where an array is meant, and `[*first, *second]` or a comprehension for a longer list",
    )
