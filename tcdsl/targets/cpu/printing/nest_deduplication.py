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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcdsl.lowering.loopir.kinds import Named, kind_of
from tcdsl.lowering.loopir.loops import Check, Nest

__all__ = ["PrintedNest", "printed_kinds", "shared"]

_SHOWN = 6  # Names of nests that a docstring lists.


@dataclass(frozen=True, slots=True)
class PrintedNest:
    """A nest by its name, its function, and the sizes and buffers whose words of the frame are its places.

    The function is that of another nest where both are of one kind.
    """

    name: str
    function: ast.FunctionDef
    places: tuple[Named, ...]


def printed_kinds(
    nests: Iterable[tuple[Nest, str]], memory: Mapping[str, object], write: Callable[[Nest, str], PrintedNest]
) -> list[PrintedNest]:
    """Each nest as ``write`` prints it under its name; of a kind only the first is printed.

    ``memory`` says what buffers of nests of one kind must have in common.
    """
    known: dict[object, tuple[PrintedNest, tuple[Named, ...]]] = {}
    out: list[PrintedNest] = []
    for nest, identifier in nests:
        kind, names = kind_of(nest.body)
        key = kind, tuple(memory.get(name) for what, name in names if what == "buffer")
        if key in known:
            printed, others = known[key]
            own = dict(zip(others, names, strict=True))
            printed = replace(printed, name=identifier, places=tuple(own[place] for place in printed.places))
        else:
            printed = write(nest, identifier)
            if Check not in kind:  # which has a number of its own
                known[key] = printed, names
        out.append(printed)
    return out


def shared(
    nests: Sequence[PrintedNest], procedures: Sequence[ast.FunctionDef] = ()
) -> tuple[list[ast.FunctionDef], list[tuple[int, str]]]:
    """The functions that are needed, and for each nest the position of its function, and its key.

    A key is what the machine code of a function depends on, beside the generator and the processor, as a hash.
    ``procedures`` are those of the module.
    """
    keys: dict[int, str] = {}
    groups: dict[str, list[int]] = {}
    for position, nest in enumerate(nests):
        function = id(nest.function)
        if function not in keys:
            keys[function] = _key(nest.function, procedures)
        groups.setdefault(keys[function], []).append(position)
    functions: list[ast.FunctionDef] = []
    chosen = [(0, "")] * len(nests)
    for key, members in groups.items():
        for member in members:
            chosen[member] = len(functions), key
        first, *others = [nests[member] for member in members]
        if others:
            _name_others(first.function, [nest.name for nest in others])
        functions.append(first.function)
    return functions, chosen


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
