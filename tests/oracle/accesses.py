"""The accesses of a statement: one entry per axis that is read or written with an index that is not data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.oracle.kinds import is_bool, kind_of
from tests.oracle.nodes import Cell, Fold, Node, Number, Operation, Variable, variables_of
from tests.oracle.reader import Statement

__all__ = ["AxisAccess", "reading_accesses", "surely_bounded"]


Guard = tuple[Node, bool]


@dataclass(frozen=True, eq=False)
class AxisAccess:
    """``index`` must lie in ``range(extent)``, for reads in a branch only where ``guards`` have their truth values.

    ``fold`` is the innermost reduction around it, ``None`` for the statement itself. ``tensor`` is what is accessed.
    """

    index: Node
    extent: int
    guards: tuple[Guard, ...]
    fold: Fold | None
    tensor: str

    @property
    def conditional(self) -> bool:
        return bool(self.guards)

    @property
    def variables(self) -> frozenset[str]:
        return variables_of(self.index)

    @property
    def bare(self) -> str | None:
        return self.index.name if isinstance(self.index, Variable) else None


def reading_accesses(statement: Statement, arrays: Mapping[str, np.ndarray]) -> list[AxisAccess]:
    """Every access that is read: in the value, in conditions, and inside data indices, the target's included."""
    dtypes = {name: array.dtype for name, array in arrays.items()}

    def of(node: Node, guards: tuple[Guard, ...], fold: Fold | None) -> Iterator[AxisAccess]:
        match node:
            case Cell(tensor=tensor, axes=axes, fill=fill):
                for axis, extent in zip(axes, arrays[tensor].shape, strict=True):
                    if axis.mode == "direct" and fill is None:
                        yield AxisAccess(axis.index, extent, guards, fold, tensor)
                    yield from of(axis.index, guards, fold)
                if fill is not None:
                    yield from of(fill, (*guards, (Number(True), True)), fold)
            case Fold(conditions=conditions, body=body):
                for condition in conditions:
                    yield from of(condition, guards, node)
                yield from of(body, guards, node)
            case Operation(name="if" | "where", arguments=(test, body, other)):
                yield from of(test, guards, fold)
                yield from of(body, (*guards, (test, True)), fold)
                yield from of(other, (*guards, (test, False)), fold)
            case Operation(name="and" | "or" as name, arguments=arguments):
                for argument in arguments:
                    yield from of(argument, guards, fold)
                    guards = (*guards, (argument, name == "and"))
            case Operation(name="product", arguments=factors):
                brackets = [factor for factor in factors if is_bool(kind_of(factor, dtypes))]
                for bracket in brackets:
                    yield from of(bracket, guards, fold)
                    guards = (*guards, (bracket, True))
                for factor in factors:
                    if factor not in brackets:
                        yield from of(factor, guards, fold)
            case Operation(arguments=arguments):
                for argument in arguments:
                    yield from of(argument, guards, fold)

    found: list[AxisAccess] = []
    value = statement.value
    added = statement.accumulate in ("+", "-") and isinstance(value, Operation) and value.name == "product"
    # In a sum a bracket equals a condition, so nothing stands behind it.
    for part in (*statement.conditions, *(value.arguments if added else (value,))):
        found.extend(of(part, (), None))
    for index in statement.indices:
        found.extend(of(index, (), None))
    return found


def surely_bounded(accesses: Sequence[AxisAccess]) -> frozenset[str]:
    """The variables that accesses mention whatever branches are taken."""
    found = frozenset[str]().union(*(access.variables for access in accesses if not access.guards))
    tests = {id(access.guards[0][0]) for access in accesses if access.guards}
    for test in tests:
        sides = []
        for side in (True, False):
            made = [access for access in accesses if access.guards and id(access.guards[0][0]) == test]
            inside = [access for access in made if access.guards[0][1] is side]
            sides.append(surely_bounded([replace(access, guards=access.guards[1:]) for access in inside]))
        found |= sides[0] & sides[1]
    return found
