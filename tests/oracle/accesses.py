"""The accesses of a statement: one entry per axis that is read or written with an index that is not data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tests.oracle.kinds import is_bool, kind_of
from tests.oracle.nodes import Cell, Fold, Node, Operation, Variable, variables_of
from tests.oracle.reader import Statement

__all__ = ["AxisAccess", "reading_accesses"]


@dataclass(frozen=True, eq=False)
class AxisAccess:
    """``index`` must lie in ``range(extent)``; ``conditional`` if a branch or bracket may hide it.

    ``fold`` is the innermost reduction around it, ``None`` for the statement itself.
    """

    index: Node
    extent: int
    conditional: bool
    fold: Fold | None

    @property
    def variables(self) -> frozenset[str]:
        return variables_of(self.index)

    @property
    def bare(self) -> str | None:
        return self.index.name if isinstance(self.index, Variable) else None


def reading_accesses(statement: Statement, arrays: Mapping[str, np.ndarray]) -> list[AxisAccess]:
    """Every access that is read: in the value, in conditions, and inside data indices, the target's included."""
    dtypes = {name: array.dtype for name, array in arrays.items()}

    def of(node: Node, conditional: bool, fold: Fold | None) -> Iterator[AxisAccess]:
        match node:
            case Cell(tensor=tensor, axes=axes, fill=fill):
                for axis, extent in zip(axes, arrays[tensor].shape, strict=True):
                    if axis.mode == "direct" and fill is None:
                        yield AxisAccess(axis.index, extent, conditional, fold)
                    yield from of(axis.index, conditional, fold)
                if fill is not None:
                    yield from of(fill, True, fold)
            case Fold(conditions=conditions, body=body):
                for condition in conditions:
                    yield from of(condition, conditional, node)
                yield from of(body, conditional, node)
            case Operation(name="if" | "where" | "and" | "or", arguments=(first, *others)):
                yield from of(first, conditional, fold)
                for other in others:
                    yield from of(other, True, fold)
            case Operation(name="product", arguments=factors):
                brackets = [factor for factor in factors if is_bool(kind_of(factor, dtypes))]
                for factor in factors:
                    behind = bool(brackets) and factor is not brackets[0]
                    yield from of(factor, conditional or behind, fold)
            case Operation(arguments=arguments):
                for argument in arguments:
                    yield from of(argument, conditional, fold)

    found: list[AxisAccess] = []
    for part in (*statement.conditions, statement.value):
        found.extend(of(part, False, None))
    for index in statement.indices:
        found.extend(of(index, False, None))
    return found
