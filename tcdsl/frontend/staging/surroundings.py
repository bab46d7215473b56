"""What a decorated function read from its surroundings while it was staged, to be compared at the next call.

A re-run notebook cell that changes a global takes effect, because the program that was staged with the old value no
longer matches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from tcdsl.frontend.staging.called_functions import called_readings
from tcdsl.frontend.staging.readings import Instance, Reading, is_compared, snapshot
from tcdsl.indices import IndexLetter

__all__ = ["Surroundings"]


def _index_letters(statement: ast.stmt) -> frozenset[str]:
    """The one-letter names that stand bare in a subscript: index variables, whatever they are outside the function."""
    letters: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript):
            used_otherwise = {id(base) for inner in ast.walk(node.slice) if (base := _base(inner)) is not None}
            letters.update(
                inner.id
                for inner in ast.walk(node.slice)
                if isinstance(inner, ast.Name)
                and len(inner.id) == 1
                and inner.id.islower()
                and id(inner) not in used_otherwise
            )
    return frozenset(letters)


def _base(node: ast.AST) -> ast.expr | None:
    # What is called, subscripted or followed by a dot follows the rule for values even inside a subscript.
    match node:
        case ast.Call(func=base) | ast.Subscript(value=base) | ast.Attribute(value=base):
            return base
        case _:
            return None


def _outer_names(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """The names and attribute chains that are read under ``node``, index variables left out."""
    # In the order of the source, without recursion: generators inside generators would pass a name on for each level.
    waiting = list(ast.iter_child_nodes(node))[::-1]
    while waiting:
        child = waiting.pop()
        if isinstance(child, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
            letters = _index_letters(child)
            yield from (chain for chain in _chains(child) if chain[0] not in letters)
        else:
            yield from _chains(child, deep=False)
            waiting.extend(list(ast.iter_child_nodes(child))[::-1])


def _chains(node: ast.AST, deep: bool = True) -> Iterator[tuple[str, ...]]:
    for inner in ast.walk(node) if deep else (node,):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield (inner.id,)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
            chain = _chain(inner)
            if chain is not None:
                yield chain


class Surroundings:
    """The globals, closure values and attributes that a function names: `read` them at staging, ask later."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef, own: frozenset[str]) -> None:
        self._function = function
        parameters = [*definition.args.posonlyargs, *definition.args.args]
        self._receiver = parameters[0].arg if parameters else ""
        chains = dict.fromkeys(_outer_names(definition))
        self._outer = tuple(chain for chain in chains if chain[0] not in own)
        self._attributes = tuple(chain for chain in chains if chain[0] == self._receiver and len(chain) > 1)

    def read(self, receiver: Any = None) -> tuple[Reading, ...]:
        """The readings as of now, those of plain functions that are read included.

        ``receiver`` is the instance whose method the function is.
        """
        code = self._function.__code__
        cells = dict(zip(code.co_freevars, self._function.__closure__ or (), strict=True))
        places: list[tuple[tuple[str, ...], Any]] = [
            (chain, cells.get(chain[0], self._function.__globals__)) for chain in self._outer
        ]
        if receiver is not None:
            places.extend((chain, Instance(receiver)) for chain in self._attributes)
        readings, values = [], []
        for chain, root in places:
            reading = Reading(chain, root)
            value = reading.current()
            values.append(value)
            if isinstance(getattr(value, "__self__", None), np.ndarray):
                # `table.sum()`: Python asks an array for what it holds.
                readings.append(Reading(chain[:-1], root).with_cells())
            if isinstance(value, IndexLetter) or (len(chain) > 1 and not is_compared(value)):
                continue
            readings.append(replace(reading, seen=snapshot(value)))
        return (*readings, *called_readings(values))


def _chain(node: ast.Attribute) -> tuple[str, ...] | None:
    names = [node.attr]
    base: ast.expr = node.value
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    return (base.id, *reversed(names)) if isinstance(base, ast.Name) else None
