"""Long sums in a scalar, a block at a time: the error grows with blocks and their number, not with all terms.

::

    acc = 0.0                          acc = 0.0
    for k in 0 .. K:                   for first in 0 .. K by 8192:
        acc += x[i, k]                     part = 0.0
                                           for k in first .. min(K, first + 8192):
                                               part += x[i, k]
                                           acc = acc + part

Inside, the loop is what it was, and is vectorized as it was. Of nested loops the outermost one that sums is cut: inner
ones may be short windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tcdsl.ir.build import apply, constant, index, integer
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Constant, Expr, Local, walk
from tcdsl.lowering.effort import weight
from tcdsl.lowering.loops import Accumulate, Branch, Define, Loop, Node
from tcdsl.lowering.names import Names
from tcdsl.lowering.traversal import expressions, walk_nodes
from tcdsl.shapes.linear import normalized

__all__ = ["in_blocks"]

# Vectors sum many terms at once, and what follows them costs as much as a few hundred terms.
_LENGTH, _IN_VECTORS = 512, 8192


def in_blocks(nodes: Iterable[Node], names: Names) -> tuple[Node, ...]:
    """``nodes`` with every long sum in a scalar of floating type cut into blocks."""
    return _Blocks(names).of(nodes, {})


class _Blocks:
    def __init__(self, names: Names) -> None:
        self.names = names

    def of(self, nodes: Iterable[Node], types: Mapping[str, str]) -> tuple[Node, ...]:
        """``nodes``, with the types of the scalars that are defined around them."""
        known = dict(types)
        out: list[Node] = []
        for node in nodes:
            match node:
                case Define(name=name, value=value):
                    known[name] = value.dtype
                    out.append(node)
                case Loop():
                    out.extend(self.loop(node, known))
                case Branch(body=body, otherwise=otherwise):
                    out.append(replace(node, body=self.of(body, known), otherwise=self.of(otherwise, known)))
                case _:
                    out.append(node)
        return tuple(out)

    def loop(self, loop: Loop, types: Mapping[str, str]) -> tuple[Node, ...]:
        """The loop, or one over its blocks."""
        own = {node.name for node in walk_nodes(loop.body) if isinstance(node, Define)}
        sums = {
            node.name: node.accumulate
            for node in walk_nodes(loop.body)
            if isinstance(node, Accumulate) and node.name not in own and is_floating(types.get(node.name, "bool"))
        }
        summed = set(sums.values()) <= {"add", "subtract"} and not _reads_any(loop, sums)
        length = normalized(apply("sub", loop.stop, loop.start))
        longest = _IN_VECTORS if _in_vectors(loop) else _LENGTH
        most = int(length.value) if isinstance(length, Constant) else longest + 1
        if not sums or not summed or loop.parallel or loop.step != 1 or most <= longest:
            return (replace(loop, body=self.of(loop.body, types)),)
        parts = {name: self.names.fresh("part") for name in sums}
        body = self.of(_renamed(loop.body, parts), {name: types[name] for name in types.keys() - sums.keys()})
        before = tuple(Define(part, constant(0, types[name])) for name, part in parts.items())
        after = tuple(Define(name, _sum(name, part, types[name])) for name, part in parts.items())
        first = self.names.fresh("first")
        end = apply("min", loop.stop, apply("add", index(first), integer(longest)))
        block = replace(loop, start=index(first), stop=end, body=body)
        return (Loop(first, loop.start, loop.stop, longest, (*before, block, *after)),)


def _sum(name: str, part: str, dtype: str) -> Expr:
    return apply("add", Local(name, dtype), Local(part, dtype))


def _in_vectors(loop: Loop) -> bool:
    plain = all(isinstance(node, Accumulate) for node in loop.body)
    return plain and weight(node.value for node in loop.body if isinstance(node, Accumulate)) == 1


def _reads_any(loop: Loop, names: Mapping[str, str]) -> bool:
    found: Iterable[Expr] = (part for expr in expressions((loop,)) for part in walk(expr))
    return any(isinstance(part, Local) and part.name in names for part in found)


def _renamed(nodes: Iterable[Node], parts: Mapping[str, str]) -> tuple[Node, ...]:
    out: list[Node] = []
    for node in nodes:
        match node:
            case Accumulate(name=name):
                out.append(replace(node, name=parts.get(name, name)))
            case Loop(body=body):
                out.append(replace(node, body=_renamed(body, parts)))
            case Branch(body=body, otherwise=otherwise):
                out.append(replace(node, body=_renamed(body, parts), otherwise=_renamed(otherwise, parts)))
            case _:
                out.append(node)
    return tuple(out)
