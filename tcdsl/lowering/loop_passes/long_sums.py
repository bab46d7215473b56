"""Long sums in a scalar, a block at a time: the error grows with blocks and their number, not with all terms.

::

    acc = 0.0                          acc = 0.0
    for k in 0 .. K:                   for first in 0 .. K by 8192:
        acc += x[i, k]                     part = 0.0
                                           for k in first .. min(K, first + 8192):
                                               part += x[i, k]
                                           acc = acc + part

Inside, the loop is what it was, and is vectorized as it was. Nested loops are cut into tiles, whichever of them is
long: a whole number of short windows, or a part of a long row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from tcdsl.ir.build import apply, constant
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Expr, Local
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node
from tcdsl.lowering.loopir.tiles import IN_VECTORS, Tiles, most_steps, nest_of
from tcdsl.lowering.loopir.traversal import expressions, rewritten, scalars_of, walk_nodes, with_bodies
from tcdsl.lowering.program_passes.effort import weight

__all__ = ["in_blocks"]

# Vectors sum many terms at once, and what follows them costs as much as a few hundred terms.
_LENGTH = 512


def in_blocks(nodes: Iterable[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with every long sum in a scalar of floating type cut into blocks."""
    return _Blocks(names).of(nodes, {})


class _Blocks:
    def __init__(self, names: FreshNames) -> None:
        self.names = names

    def of(self, nodes: Iterable[Node], types: Mapping[str, str]) -> tuple[Node, ...]:
        """``nodes``, with the types of the scalars that are defined around them."""
        known = dict(types)
        out: list[Node] = []
        for node in nodes:
            if isinstance(node, Define):
                known[node.name] = node.value.dtype
            if isinstance(node, Loop):
                out.extend(self.loop(node, known))
            else:
                out.append(with_bodies(node, lambda body: self.of(body, known)))
        return tuple(out)

    def loop(self, loop: Loop, types: Mapping[str, str]) -> tuple[Node, ...]:
        """The loop, or one over its blocks; one in lanes has blocks of its own."""
        if loop.kind == "vector":
            return (loop,)
        own = {node.name for node in walk_nodes(loop.body) if isinstance(node, Define)}
        sums = {
            node.name: node.accumulate
            for node in walk_nodes(loop.body)
            if isinstance(node, Accumulate) and node.name not in own and is_floating(types.get(node.name, "bool"))
        }
        read = frozenset[str]().union(*map(scalars_of, expressions((loop,))))
        summed = set(sums.values()) <= {"add", "subtract"} and read.isdisjoint(sums)
        nest = nest_of(loop)
        longest = IN_VECTORS if _in_vectors(nest[-1]) else _LENGTH
        if not sums or not summed or _is_short(nest, longest):
            return (replace(loop, body=self.of(loop.body, types)),)
        parts = {name: self.names.fresh("part") for name in sums}
        body = self.of(_renamed(nest[-1].body, parts), {name: types[name] for name in types.keys() - sums.keys()})
        before = tuple(Define(part, constant(0, types[name])) for name, part in parts.items())
        after = tuple(Define(name, _sum(name, part, types[name])) for name, part in parts.items())
        tiles = Tiles(self.names)
        for inner in reversed(nest):
            tiles.add(inner, longest if inner is nest[-1] else _LENGTH)
        for inner in tiles.inside:
            body = (replace(inner, body=body),)
        body = (*before, *body, *after)
        for over_tiles in tiles.around:
            body = over_tiles(body)
        # A few terms in all are one tile, around which so many loops would take longer than they do.
        return body if tiles.many is None else (Branch(tiles.many, body, (loop,)),)


def _is_short(nest: Sequence[Loop], longest: int) -> bool:
    lengths = [most_steps(each.start, each.stop) for each in nest]
    known = [most for most in lengths if most is not None]
    return nest[0].kind == "parallel" or nest[0].step != 1 or (len(known) == len(lengths) and prod(known) <= longest)


def _sum(name: str, part: str, dtype: str) -> Expr:
    return apply("add", Local(name, dtype), Local(part, dtype))


def _in_vectors(loop: Loop) -> bool:
    plain = all(isinstance(node, Accumulate) for node in loop.body)
    return plain and weight(node.value for node in loop.body if isinstance(node, Accumulate)) == 1


def _renamed(nodes: Iterable[Node], parts: Mapping[str, str]) -> tuple[Node, ...]:
    def rule(node: Node) -> tuple[Node, ...]:
        return (replace(node, name=parts.get(node.name, node.name)) if isinstance(node, Accumulate) else node,)

    return rewritten(nodes, rule)
