"""Element types by NumPy 2's rules: Python numbers, sizes and index variables are weak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.oracle.nodes import Cell, Fold, Node, Number, Operation, Variable
from tests.oracle.outcome import DtypeFaultError

__all__ = ["COMPARISONS", "Kind", "concrete", "fresh_kind", "is_bool", "is_float", "is_whole", "kind_of", "promoted"]

Kind = Any  # np.dtype, or Python's int or float for weak numbers

COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_LOGICAL = frozenset(("and", "or", "not"))
_REAL = frozenset(("/", "exp", "log", "sin", "cos", "tanh", "sqrt", "sigmoid", "erf", "recip"))
_BOOL = np.dtype(bool)


def is_bool(kind: Kind) -> bool:
    return isinstance(kind, np.dtype) and kind == _BOOL


def is_float(kind: Kind) -> bool:
    return kind is float or (isinstance(kind, np.dtype) and kind.kind == "f")


def is_whole(kind: Kind) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "iu"


def promoted(*kinds: Kind) -> Kind:
    """The kind in which ``kinds`` meet."""
    if not any(isinstance(kind, np.dtype) for kind in kinds):
        return float if any(kind is float for kind in kinds) else int
    return np.result_type(*(kind if isinstance(kind, np.dtype) else kind() for kind in kinds))


def concrete(kind: Kind) -> np.dtype:
    """A type for a new array: weak numbers become int64 or float64."""
    return kind if isinstance(kind, np.dtype) else np.dtype("float64" if kind is float else "int64")


def _summed(kind: Kind) -> np.dtype:
    # np.sum widens bool and small integers.
    dtype = concrete(kind)
    return np.dtype("uint64") if dtype.kind == "u" else np.dtype("int64") if dtype.kind in "bi" else dtype


def fresh_kind(accumulate: str, kind: Kind) -> np.dtype:
    """The type of a target that ``accumulate`` creates from values of ``kind``."""
    if accumulate in ("+", "-", "*"):
        return _summed(kind)
    if accumulate in ("|", "&"):
        return _BOOL
    if accumulate == "/" and not is_float(kind):
        return np.dtype("float64")
    return concrete(kind)


def _fold_kind(fold: Fold, dtypes: Mapping[str, np.dtype]) -> Kind:
    inner = kind_of(fold.body, dtypes)
    match fold.kind:
        case "sum" | "prod":
            return _summed(inner)
        case "max" | "min":
            return concrete(inner)
        case "any" | "all":
            return _BOOL
        case "mean":
            return concrete(inner) if is_float(inner) else np.dtype("float64")
    return np.dtype("int64")


def kind_of(node: Node, dtypes: Mapping[str, np.dtype]) -> Kind:
    """The kind of a value, given the types of the arrays."""
    match node:
        case Number(value=value):
            return _BOOL if isinstance(value, bool) else type(value)
        case Variable():
            return int
        case Cell(tensor=tensor):
            return dtypes[tensor]
        case Fold():
            return _fold_kind(node, dtypes)
        case Operation(name=name, arguments=arguments):
            pass
    if name in COMPARISONS or name in _LOGICAL:
        return _BOOL
    if name in ("float32", "float64", "int32", "int64"):
        return np.dtype(name)
    kinds = [kind_of(argument, dtypes) for argument in arguments]
    if name in ("if", "where"):
        return promoted(*kinds[1:])
    if name == "product":
        others = [kind for kind in kinds if not is_bool(kind)]
        return promoted(*others) if others else _BOOL
    met = promoted(*kinds)
    if name in _REAL:
        return met if is_float(met) else float if met is int else np.dtype("float64")
    if name in ("-", "neg") and is_bool(met):
        raise DtypeFaultError("truth values have no sign and no difference")
    return met
