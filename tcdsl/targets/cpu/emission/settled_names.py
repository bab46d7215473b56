"""Names that stand for one value where they are used: they need no place in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, Local, walk
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import own_expressions

__all__ = ["Block", "Name", "NameUses", "local_name", "settled_names"]

Name = tuple[str, str]
"""A loop variable (its type is ``""``) or a scalar local, by its type and its name."""

Block = tuple[int, ...]
"""Where something stands: the numbers of the blocks around, outermost first."""


def local_name(name: str, dtype: str) -> Name:
    """A scalar local; those of one name and several types are several."""
    return compute_dtype(dtype), name


class NameUses:
    """Where names are assigned and used, told in the order of the code."""

    def __init__(self) -> None:
        self._assigned: dict[Name, Block] = {}
        self._looped: dict[Name, list[Block]] = {}
        self._used: dict[Name, list[Block]] = {}
        self._several: set[Name] = set()
        self._blocks = 0

    def inner(self, block: Block) -> Block:
        """A new block within ``block``."""
        self._blocks += 1
        return (*block, self._blocks)

    def assigned(self, name: Name, block: Block) -> None:
        """It is assigned here, for the first time or again."""
        if name in self._assigned or name in self._used:
            self._several.add(name)
        self._assigned[name] = block

    def accumulated(self, name: Name) -> None:
        """It is assigned what depends on what it was."""
        self._several.add(name)

    def looped(self, name: Name, body: Block) -> None:
        """It is the variable of a loop with this body."""
        self._looped.setdefault(name, []).append(body)

    def used(self, name: Name, block: Block) -> None:
        """It is used here."""
        self._used.setdefault(name, []).append(block)

    def settled(self) -> frozenset[Name]:
        """Names that are assigned once, before all uses, which stand in the same block or within; or by loops alone,
        and used in their bodies.
        """
        return frozenset(name for name in (*self._assigned, *self._looped) if self._is_settled(name))

    def _is_settled(self, name: Name) -> bool:
        if name in self._several or (name in self._assigned and name in self._looped):
            return False
        around = [self._assigned[name]] if name in self._assigned else self._looped[name]
        return all(any(use[: len(block)] == block for block in around) for use in self._used.get(name, ()))


def settled_names(nodes: Sequence[Node]) -> frozenset[Name]:
    """The names in ``nodes`` that stand for one value."""
    found = NameUses()
    _tell(found, nodes, ())
    return found.settled()


def _tell(found: NameUses, nodes: Sequence[Node], block: Block) -> None:
    for node in nodes:
        match node:
            case Loop(variable=variable):
                _uses(found, node.start, block)
                _uses(found, node.stop, block)
                body = found.inner(block)
                if node.condition is not None:
                    _uses(found, node.condition, body)
                _tell(found, node.body, body)
                found.looped(("", variable), body)
            case Branch():
                _uses(found, node.condition, block)
                _tell(found, node.body, found.inner(block))
                _tell(found, node.otherwise, found.inner(block))
            case Define(value=value):
                _uses(found, value, block)
                found.assigned(local_name(node.name, value.dtype), block)
            case _:
                if isinstance(node, Accumulate):
                    found.accumulated(local_name(node.name, node.value.dtype))
                for expr in own_expressions(node):
                    _uses(found, expr, block)


def _uses(found: NameUses, expr: Expr, block: Block) -> None:
    for part in walk(expr):
        if isinstance(part, IndexValue):
            found.used(("", part.name), block)
        elif isinstance(part, Local):
            found.used(local_name(part.name, part.dtype), block)
