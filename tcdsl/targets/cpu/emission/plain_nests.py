"""Nests that LLVM's first level makes as fast as its second, in six sevenths of the time.

What the second one adds: cells that one round reads and the next one reads again, at another place, stay in registers;
branches are threaded; stores side by side become vectors. Where each loop reads and writes a buffer at one place, and
does not branch, there is nothing of that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tcdsl.targets.cpu.emission.walking import walk

__all__ = ["PLAIN", "is_plain"]

PLAIN = "!tcdsl.plain = !{}"
"""What the text of such a nest says."""


def is_plain(function: ast.FunctionDef) -> bool:
    """Whether ``function``, of generated code, is such a nest."""
    return all(map(_is_plain, _blocks(function.body)))


def _blocks(statements: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    # The statements of innermost loops, and those between loops.
    between = []
    for statement in statements:
        if isinstance(statement, ast.For) and not any(_has_loop(inner) for inner in statement.body):
            yield [statement]
        elif isinstance(statement, ast.For | ast.If | ast.While):
            yield from _blocks(statement.body)
            yield from _blocks(statement.orelse)
        else:
            between.append(statement)
    # Nothing runs often there, but stores may stand side by side.
    yield [ast.Assign(each.targets, ast.Constant(0)) for each in between if isinstance(each, ast.Assign)]


def _has_loop(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return any(map(_has_loop, statement.body)) or any(map(_has_loop, statement.orelse))
    return isinstance(statement, ast.For | ast.While)


def _is_plain(statements: Sequence[ast.stmt]) -> bool:
    places: dict[str, str] = {}
    for statement in statements:
        for node in walk(statement):
            match node:
                case ast.If() | ast.BoolOp() | ast.Return() | ast.Break() | ast.While():
                    return False
                case ast.IfExp(test=test) if any(isinstance(part, ast.Subscript) for part in walk(test)):
                    return False
                case ast.Subscript(value=ast.Name(id=buffer), slice=index):
                    at = ast.dump(index)
                    if places.setdefault(buffer, at) != at:
                        return False
    return True
