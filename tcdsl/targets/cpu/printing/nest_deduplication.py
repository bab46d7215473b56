"""Nests that differ in names alone share one function: a loop of a hundred steps compiles as fast as one of three.

Unrolled loops and repeated layers make such nests, and different programs do. So a function says nothing about where
its sizes and buffers lie in the frame: it takes the words from a list of its own for each nest, its *places*, whose
address the driver leaves in the frame before the nest runs::

    def nest_v_2(begin, end, frame):
        N = size(frame, 0)                               # in the word places[0]
        v = buffer(frame, 1, 'float64[::1]')             # from the word places[1] on
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["PrintedNest", "shared"]

_SHOWN = 6  # Names of nests that a docstring lists.


@dataclass(frozen=True, slots=True)
class PrintedNest:
    """A nest as a function, and its places: the words of the frame for its sizes and buffers."""

    function: ast.FunctionDef
    places: tuple[int, ...]


def shared(
    nests: Sequence[PrintedNest], procedures: Sequence[ast.FunctionDef] = ()
) -> tuple[list[ast.FunctionDef], list[tuple[int, str]], list[tuple[int, ...]]]:
    """The functions that are needed, and for each nest the position of its function, its key, and its places.

    A key is what the machine code of a function depends on, beside the generator and the processor, as a hash.
    ``procedures`` are those of the module.
    """
    groups: dict[str, list[int]] = {}
    for position, nest in enumerate(nests):
        groups.setdefault(_key(nest.function, procedures), []).append(position)
    functions: list[ast.FunctionDef] = []
    chosen = [(0, "")] * len(nests)
    for key, members in groups.items():
        for member in members:
            chosen[member] = len(functions), key
        first, *others = [nests[member].function for member in members]
        if others:
            _name_others(first, [function.name for function in others])
        functions.append(first)
    return functions, chosen, [nest.places for nest in nests]


def _key(function: ast.FunctionDef, procedures: Sequence[ast.FunctionDef]) -> str:
    # The function whatever its names: local names are numbered in the order of their appearance.
    parts: list[str | ast.Name] = []
    for part in (*function.decorator_list, *function.body[1:]):
        _write(part, parts)
    names = [part for part in parts if isinstance(part, ast.Name)]
    numbers: dict[str, str] = {}
    own = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    written = [
        part
        if isinstance(part, str)
        else numbers.setdefault(part.id, f"${len(numbers)} ")
        if part.id in own
        else f"{part.id} "
        for part in parts
    ]
    called = {each.id for each in names}
    if any(procedure.name in called for procedure in procedures):
        written += map(ast.dump, procedures)
    return hashlib.sha256("".join(written).encode()).hexdigest()


def _write(node: Any, parts: list[str | ast.Name]) -> None:
    # All that a tree holds, as text from which the tree could be read back, and names.
    if isinstance(node, ast.Name):
        parts.append(node)
    elif isinstance(node, ast.AST):
        parts.append(f"({type(node).__name__} ")
        for field in node._fields:
            _write(getattr(node, field, None), parts)
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for each in node:
            _write(each, parts)
        parts.append("]")
    else:
        parts.append(f"{node!r} ")


def _name_others(function: ast.FunctionDef, others: Sequence[str]) -> None:
    title = function.body[0]
    assert isinstance(title, ast.Expr)
    listed = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    assert isinstance(title.value, ast.Constant)
    title.value = ast.Constant(f"{str(title.value.value).rstrip()}\n\n    The same for {listed}.\n    ")
