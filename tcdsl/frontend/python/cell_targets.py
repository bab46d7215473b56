"""Cells among the targets of one assignment, as statements of their own.

::

    y[k], rest = pair(x[k])            CELL_0, rest = pair(x[k])
                                       y[k] = CELL_0

    c[k:, k] = c[k, k:] = e            CELL_1 = e
                                       c[k:, k] = CELL_1
                                       c[k, k:] = CELL_1

An op has no memory that Python could store into. In code cells are memory: what is unpacked Python itself stores there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tcdsl.frontend.source.rewritten_functions import RECORDER
from tcdsl.frontend.source.syntax_trees import OwnStatements

__all__ = ["with_cells_apart"]


def with_cells_apart(body: Sequence[ast.stmt], in_place: bool) -> list[ast.stmt]:
    """The statements of a function's body, with those taken apart that have several targets, cells of names among them.

    With ``in_place``, as in `@cd`, Python unpacks.
    """
    splitter = _Splitter(in_place)
    made: list[ast.stmt] = []
    for statement in body:
        new = splitter.visit(statement)
        made.extend(new if isinstance(new, list) else [new])
    return made


class _Splitter(OwnStatements):
    def __init__(self, in_place: bool) -> None:
        self._in_place = in_place
        self._count = 0

    def _name(self) -> str:
        self._count += 1
        return f"{RECORDER}cell_{self._count - 1}"

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:  # noqa: N802  # a name of `ast`
        target = node.targets[0]
        if len(node.targets) > 1:
            return self._chained(node)
        if self._in_place or not isinstance(target, ast.Tuple | ast.List) or not _can_be_split(target.elts):
            return node
        stores: list[ast.stmt] = []
        for k, part in enumerate(target.elts):
            if isinstance(part, ast.Subscript):
                name = self._name()
                target.elts[k] = ast.copy_location(ast.Name(name, ast.Store()), part)
                value = ast.copy_location(ast.Name(name, ast.Load()), node.value)
                stores.append(ast.copy_location(ast.Assign([part], value), node))
        return [node, *stores] if stores else node

    def _chained(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        cells = [each for each in node.targets if isinstance(each, ast.Subscript)]
        bases = [each.value if isinstance(each, ast.Subscript) else each for each in node.targets]
        if not cells or not all(isinstance(each, ast.Name) for each in bases):
            return node
        name = self._name()
        value = ast.copy_location(ast.Name(name, ast.Load()), node.value)
        first = ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), node.targets[0])], node.value)
        stores = [ast.copy_location(ast.Assign([each], value), node) for each in node.targets]
        return [ast.copy_location(first, node), *stores]


def _can_be_split(targets: Sequence[ast.expr]) -> bool:
    # Names and cells of names, of which none is read where a cell is: the names are bound first now.
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    cells = [each for each in targets if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name)]
    read = {part.id for each in cells for part in ast.walk(each) if isinstance(part, ast.Name)}
    return len(names) + len(cells) == len(targets) and not names & read
