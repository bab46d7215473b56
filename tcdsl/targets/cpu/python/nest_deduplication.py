"""Nests that differ in names alone share one function: a loop of a hundred steps compiles as fast as one of three.

Unrolled loops and repeated layers make such nests. The function of several takes what differs between them, the words
where their sizes and buffers lie in the frame, from a list of its own for each nest, its *places*, whose address the
driver leaves in the frame before the nest runs::

    def nest_v_2(begin, end, frame):
        N = size(frame, 32)                                     # the same word for all
        v = placed_buffer(frame, 0, 'float64[::1]')             # the word is places[0]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PrintedNest", "shared"]

_IDENTIFIER = re.compile(r"\bid='(\w+)'")
_SHOWN = 6  # Names of nests that a docstring lists.


@dataclass(frozen=True, slots=True)
class PrintedNest:
    """A nest as a function whose first statements, after the docstring, are ``declarations`` of sizes and buffers.

    ``alone`` says that the function holds numbers of its nest elsewhere too, so that no other nest can use it.
    """

    function: ast.FunctionDef
    declarations: int
    alone: bool

    @property
    def words(self) -> tuple[int, ...]:
        """The words in the frame that the declarations name, in order."""
        return tuple(_word(line) for line in self.function.body[1 : 1 + self.declarations])


def _declared(line: ast.stmt) -> ast.Call:
    assert isinstance(line, ast.Assign)
    assert isinstance(line.value, ast.Call)
    return line.value


def _word(line: ast.stmt) -> int:
    constant = _declared(line).args[1]
    assert isinstance(constant, ast.Constant)
    assert isinstance(constant.value, int)
    return constant.value


def shared(nests: Sequence[PrintedNest]) -> tuple[list[ast.FunctionDef], list[int], list[tuple[int, ...]]]:
    """The functions that are needed, and for each nest the position of its function and its places."""
    groups: dict[object, list[int]] = {}
    for position, nest in enumerate(nests):
        key = position if nest.alone else _shape(nest)
        groups.setdefault(key, []).append(position)
    functions: list[ast.FunctionDef] = []
    chosen = [0] * len(nests)
    places: list[tuple[int, ...]] = [()] * len(nests)
    for members in groups.values():
        words = [nests[member].words for member in members]
        differing = [k for k, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
        for member, row in zip(members, words, strict=True):
            chosen[member] = len(functions)
            places[member] = tuple(row[k] for k in differing)
        function = nests[members[0]].function
        if len(members) > 1:
            _place(function, differing, [nests[member].function.name for member in members[1:]])
        functions.append(function)
    return functions, chosen, places


def _shape(nest: PrintedNest) -> tuple[object, ...]:
    # What the function is whatever its names and words: local names are numbered in the order of their appearance.
    function = nest.function
    lines = function.body[1:]
    own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        name = match[1]
        return f"id={numbers.setdefault(name, len(numbers))}" if name in own else match[0]

    declarations = []
    for line in lines[: nest.declarations]:
        assert isinstance(line, ast.Assign)
        assert isinstance(line.targets[0], ast.Name)
        numbers[line.targets[0].id] = len(numbers)
        call = _declared(line)
        declarations.append((ast.dump(call.func), *map(ast.dump, call.args[2:])))
    body = _IDENTIFIER.sub(numbered, "\n".join(map(ast.dump, lines[nest.declarations :])))
    return (tuple(declarations), tuple(map(ast.dump, function.decorator_list)), body)


def _place(function: ast.FunctionDef, differing: Sequence[int], others: Sequence[str]) -> None:
    for place, k in enumerate(differing):
        call = _declared(function.body[1 + k])
        assert isinstance(call.func, ast.Name)
        call.func.id = f"placed_{call.func.id}"
        call.args[1] = ast.Constant(place)
    title = function.body[0]
    assert isinstance(title, ast.Expr)
    listed = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    assert isinstance(title.value, ast.Constant)
    title.value = ast.Constant(f"{str(title.value.value).rstrip()}\n\n    The same for {listed}.\n    ")
