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
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PrintedNest", "nest_key", "shared"]

_IDENTIFIER = re.compile(r"\bid='(\w+)'")
_SHOWN = 6  # Names of nests that a docstring lists.


@dataclass(frozen=True, slots=True)
class PrintedNest:
    """A nest as a function, and its places: the words of the frame for its sizes and buffers."""

    function: ast.FunctionDef
    places: tuple[int, ...]


def shared(nests: Sequence[PrintedNest]) -> tuple[list[ast.FunctionDef], list[int], list[tuple[int, ...]]]:
    """The functions that are needed, and for each nest the position of its function and its places."""
    groups: dict[object, list[int]] = {}
    for position, nest in enumerate(nests):
        groups.setdefault(_shape(nest.function), []).append(position)
    functions: list[ast.FunctionDef] = []
    chosen = [0] * len(nests)
    for members in groups.values():
        for member in members:
            chosen[member] = len(functions)
        first, *others = [nests[member].function for member in members]
        if others:
            _name_others(first, [function.name for function in others])
        functions.append(first)
    return functions, chosen, [nest.places for nest in nests]


def nest_key(function: ast.FunctionDef, procedures: Sequence[ast.FunctionDef]) -> str:
    """What the machine code of ``function`` depends on, beside the generator and the processor, as a hash.

    ``procedures`` are those of its module.
    """
    called = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    needed = any(procedure.name in called for procedure in procedures)
    content = (_shape(function), tuple(map(ast.dump, procedures)) if needed else ())
    return hashlib.sha256(repr(content).encode()).hexdigest()


def _shape(function: ast.FunctionDef) -> tuple[object, ...]:
    # What the function is whatever its names: local names are numbered in the order of their appearance.
    own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        name = match[1]
        return f"id={numbers.setdefault(name, len(numbers))}" if name in own else match[0]

    body = _IDENTIFIER.sub(numbered, "\n".join(map(ast.dump, function.body[1:])))
    return (tuple(map(ast.dump, function.decorator_list)), body)


def _name_others(function: ast.FunctionDef, others: Sequence[str]) -> None:
    title = function.body[0]
    assert isinstance(title, ast.Expr)
    listed = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    assert isinstance(title.value, ast.Constant)
    title.value = ast.Constant(f"{str(title.value.value).rstrip()}\n\n    The same for {listed}.\n    ")
