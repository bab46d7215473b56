"""Arguments of definitions: types and ranks are those that are declared, and Python's numbers take them."""

from __future__ import annotations

import numpy as np

from tcdsl.errors import DtypeError, ShapeError
from tcdsl.frontend.comprehensions.checked import TensorType
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicTensor
from tcdsl.frontend.symbols.values import shown_number
from tcdsl.frontend.words.declared_stores import recorded_store
from tcdsl.ir.build import cast, constant
from tcdsl.ir.dtypes import compute_dtype, is_integer
from tcdsl.ir.expressions import Expr
from tcdsl.span import Span

__all__ = ["input_tensor"]

# Python's numbers, and the types that they have as inputs of programs.
_KINDS = {"bool": "bool", "int": "int64", "float": "float64"}


def input_tensor(
    session: Session, given: object, wanted: TensorType, name: str, owner: str, span: Span | None, place: Span | None
) -> SymbolicTensor:
    """An argument of a definition as a tensor of its type. `DtypeError` and `ShapeError` where it has another one.

    ``span`` is the place of the definition's name, ``place`` that of the parameter.
    """
    if wanted.rank == 0:
        if isinstance(given, SymbolicNumber):
            return _of_number(session, given.expr, given.weak_kind, wanted, name, owner, span, place)
        if isinstance(given, bool | int | float):
            # While something is traced, numbers come as they are.
            kind = "bool" if isinstance(given, bool) else "int" if isinstance(given, int) else "float"
            number = _constant(given, kind, wanted, name, owner, place)
            return _of_number(session, number, kind, wanted, name, owner, span, place)
    if not isinstance(given, SymbolicTensor):
        fact = f"`{name}` of `{owner}` is {_what(given)}, not a tensor of {wanted}"
        raise DtypeError.at(fact, span, "give it an array")
    if given.rank != wanted.rank:
        fact = f"`{name}` of `{owner}` has rank {wanted.rank}, and is given an array of rank {given.rank}"
        raise ShapeError.at(fact, span, "ranks of arguments are those of the parameters")
    if given.element_type != wanted.dtype:
        fact = f"`{name}` of `{owner}` is {wanted.dtype}, and is given {given.element_type}"
        raise DtypeError.at(fact, span, f"convert it: `{name}.astype(np.{wanted.dtype})`")
    return given


def _what(given: object) -> str:
    if isinstance(given, SymbolicNumber):
        return f"a Python {given.weak_kind}"
    return "None" if given is None else f"an object of type {type(given).__name__}"


def _constant(
    given: bool | int | float, kind: str, wanted: TensorType, name: str, owner: str, place: Span | None
) -> Expr:
    if kind == "int":
        ends = np.iinfo(wanted.dtype if is_integer(wanted.dtype) else "int64")
        if not max(ends.min, -(2**63)) <= given <= min(ends.max, 2**63 - 1):
            fact = f"`{name}` of `{owner}` is {wanted.dtype}, and is given {shown_number(int(given))}"
            raise DtypeError.at(fact, place, "which does not fit")
    return constant(given, _KINDS[kind])


def _of_number(
    session: Session,
    given: Expr,
    kind: str,
    wanted: TensorType,
    name: str,
    owner: str,
    span: Span | None,
    place: Span | None,
) -> SymbolicTensor:
    limit = "bool" if wanted.dtype == "bool" else "float" if wanted.dtype.startswith("float") else "int"
    if list(_KINDS).index(kind) > list(_KINDS).index(limit):
        fact = f"`{name}` of `{owner}` is {wanted.dtype}, and is given a Python {kind}"
        raise DtypeError.at(fact, span, f"convert it: `np.{wanted.dtype}(x)`")
    value = cast(given, compute_dtype(wanted.dtype), place)
    return recorded_store(session, name, wanted.dtype, (), value, span=span)
