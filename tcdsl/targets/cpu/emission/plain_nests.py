"""Nests that LLVM's first level makes as fast as its second, in six sevenths of the time, or in less.

What the second one adds: cells that one round reads and the next one reads again, at another place, stay in registers;
branches are threaded; stores side by side become vectors, where no loop stands beside them that takes all the time.
Where each loop reads and writes a buffer at one place of the axes that it runs along, and does not branch, there is
nothing of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tcdsl.ir.expressions import Apply, Expr, IndexValue, Read, walk
from tcdsl.lowering.loopir.loops import Branch, Check, Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import own_expressions, walk_nodes
from tcdsl.targets.cpu.emission.primitive_code import ARITHMETIC

__all__ = ["is_plain"]


def is_plain(nodes: Sequence[Node]) -> bool:
    """Whether ``nodes`` are those of such a nest."""
    return all(_one_place(buffers) for buffers in _blocks(nodes))


def _blocks(nodes: Sequence[Node]) -> Iterator[Iterable[tuple[str, object]] | None]:
    # Where innermost loops, each by itself, and nodes with no loop beside them read and write buffers; None where they
    # branch.
    between: list[tuple[str, object]] = []
    loops = False
    for node in nodes:
        loops = loops or _has_loop(node)
        match node:
            case Loop() if not any(map(_has_loop, node.body)):
                yield _places(node)
            case Loop():
                yield from _blocks(node.body)
            case Branch():
                yield from _blocks(node.body)
                yield from _blocks(node.otherwise)
            case Store():
                between.append((node.buffer, node.indices))
            case Update() if node.accumulate not in ARITHMETIC:
                between.append((node.buffer, node.indices))
            case _:
                pass
    if not loops:
        # Nothing runs often there, but stores may stand side by side.
        yield between


def _has_loop(node: Node) -> bool:
    return any(isinstance(each, Loop) for each in walk_nodes((node,)))


def _one_place(places: Iterable[tuple[str, object]] | None) -> bool:
    known: dict[str, object] = {}
    return places is not None and all(known.setdefault(buffer, at) == at for buffer, at in places)


def _places(loop: Loop) -> list[tuple[str, object]] | None:
    found: list[tuple[str, object]] = []
    for node in walk_nodes((loop,)):
        if isinstance(node, Branch | Check) or (isinstance(node, Loop) and node.rounds):
            return None
        if isinstance(node, Store | Update):
            found.append((node.buffer, _along(node.indices, loop.variable)))
        for part in (each for expr in own_expressions(node) for each in walk(expr)):
            match part:
                case Apply(primitive="and_" | "or_"):
                    return None
                case Apply(primitive="where", arguments=(test, *_)) if any(isinstance(p, Read) for p in walk(test)):
                    return None
                case Read(tensor=buffer, indices=indices):
                    found.append((buffer, _along(indices, loop.variable)))
                case _:
                    pass
    return found


def _along(indices: Sequence[Expr], variable: str) -> tuple[Expr | None, ...]:
    # The place along the axes that the loop runs along.
    return tuple(index if _names(index, variable) else None for index in indices)


def _names(expr: Expr, variable: str) -> bool:
    return any(isinstance(part, IndexValue) and part.name == variable for part in walk(expr))
