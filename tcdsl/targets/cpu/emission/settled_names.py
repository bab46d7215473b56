"""Names that stand for one value where they are used: they need no place in memory."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tcdsl.targets.cpu.emission.walking import walk

__all__ = ["settled_names"]

_Block = tuple[int, ...]


def settled_names(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that are assigned once, before all uses, which stand in the same block or within; or by loops alone, and
    used in their bodies.
    """
    found = _Uses()
    found.block(statements, ())
    return frozenset(name for name in (*found.assigned, *found.looped) if found.is_settled(name))


class _Uses:
    def __init__(self) -> None:
        self.assigned: dict[str, _Block] = {}
        self.looped: dict[str, list[_Block]] = {}
        self._used: dict[str, list[_Block]] = {}
        self._several: set[str] = set()
        self._blocks = 0

    def is_settled(self, name: str) -> bool:
        if name in self._several or (name in self.assigned and name in self.looped):
            return False
        around = [self.assigned[name]] if name in self.assigned else self.looped[name]
        return all(any(use[: len(block)] == block for block in around) for use in self._used.get(name, ()))

    def block(self, statements: Sequence[ast.stmt], block: _Block) -> None:
        for statement in statements:
            self._statement(statement, block)

    def _inner(self, statements: Sequence[ast.stmt], block: _Block) -> _Block:
        self._blocks += 1
        inner = (*block, self._blocks)
        self.block(statements, inner)
        return inner

    def _statement(self, node: ast.stmt, block: _Block) -> None:
        match node:
            case ast.For(target=ast.Name(id=name)):
                self._uses(node.iter, block)
                self.looped.setdefault(name, []).append(self._inner(node.body, block))
            case ast.While() | ast.If():
                self._uses(node.test, block)
                self._inner(node.body, block)
                self._inner(node.orelse, block)
            case ast.Assign(targets=[ast.Name(id=name)]):
                self._uses(node.value, block)
                if name in self.assigned or name in self._used:
                    self._several.add(name)
                self.assigned[name] = block
            case _:
                self._uses(node, block)

    def _uses(self, node: ast.stmt | ast.expr, block: _Block) -> None:
        for each in walk(node):
            if isinstance(each, ast.Name):
                self._used.setdefault(each.id, []).append(block)
                if isinstance(each.ctx, ast.Store):
                    self._several.add(each.id)
