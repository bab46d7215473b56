"""Nests that LLVM's first level makes as fast as its second, in six sevenths of the time, or in less.

What the second one adds: cells that one round reads and the next one reads again, at another place, stay in registers;
branches are threaded; stores side by side become vectors, where no loop stands beside them that takes all the time.
Where each loop reads and writes a buffer at one place of the axes that it runs along, and does not branch, there is
nothing of that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tcdsl.targets.cpu.emission.walking import walk

__all__ = ["is_plain"]


def is_plain(function: ast.FunctionDef) -> bool:
    """Whether ``function``, of generated code, is such a nest."""
    return all(map(_is_plain, _blocks(function.body)))


def _blocks(statements: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    # Innermost loops, each by itself, and statements with no loop beside them.
    between = []
    loops = False
    for statement in statements:
        loops = loops or _has_loop(statement)
        if isinstance(statement, ast.For) and not any(map(_has_loop, statement.body)):
            yield [statement]
        elif isinstance(statement, ast.For | ast.If | ast.While):
            yield from _blocks(statement.body)
            yield from _blocks(statement.orelse)
        else:
            between.append(statement)
    if not loops:
        # Nothing runs often there, but stores may stand side by side.
        yield [ast.Assign(each.targets, ast.Constant(0)) for each in between if isinstance(each, ast.Assign)]


def _has_loop(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return any(map(_has_loop, statement.body)) or any(map(_has_loop, statement.orelse))
    return isinstance(statement, ast.For | ast.While)


def _is_plain(statements: Sequence[ast.stmt]) -> bool:
    first = statements[0] if statements else None
    variable = first.target.id if isinstance(first, ast.For) and isinstance(first.target, ast.Name) else None
    places: dict[str, str] = {}
    for statement in statements:
        for node in walk(statement):
            match node:
                case ast.If() | ast.BoolOp() | ast.Return() | ast.Break() | ast.While():
                    return False
                case ast.Call(func=ast.Name(id="rounds")):
                    return False
                case ast.IfExp(test=test) if any(isinstance(part, ast.Subscript) for part in walk(test)):
                    return False
                case ast.Subscript(value=ast.Name(id=buffer), slice=index):
                    at = _place(index, variable)
                    if places.setdefault(buffer, at) != at:
                        return False
    return True


def _place(index: ast.expr, variable: str | None) -> str:
    # Along the axes that a loop over ``variable`` runs along, or along all.
    axes = index.elts if isinstance(index, ast.Tuple) else [index]
    return " ".join(ast.dump(axis) if variable is None or _names(axis, variable) else "-" for axis in axes)


def _names(node: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in walk(node))
