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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tcdsl.ir.build import apply, constant, index, integer
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, index_variables, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import expressions, walk_nodes
from tcdsl.lowering.statements.effort import weight
from tcdsl.polyhedra.linear import normalized

__all__ = ["in_blocks"]

# Vectors sum many terms at once, and what follows them costs as much as a few hundred terms.
_LENGTH, _IN_VECTORS = 512, 8192


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
        nest = _nest(loop)
        longest = _IN_VECTORS if _in_vectors(nest[-1]) else _LENGTH
        if not sums or not summed or _is_short(nest, longest):
            return (replace(loop, body=self.of(loop.body, types)),)
        parts = {name: self.names.fresh("part") for name in sums}
        body = self.of(_renamed(nest[-1].body, parts), {name: types[name] for name in types.keys() - sums.keys()})
        before = tuple(Define(part, constant(0, types[name])) for name, part in parts.items())
        after = tuple(Define(name, _sum(name, part, types[name])) for name, part in parts.items())
        tiles = _Tiles(self.names)
        for inner in reversed(nest):
            tiles.add(inner, longest if inner is nest[-1] else _LENGTH)
        for inner in tiles.inside:
            body = (replace(inner, body=body),)
        body = (*before, *body, *after)
        for over_tiles in tiles.around:
            body = over_tiles(body)
        # A few terms in all are one tile, around which so many loops would take longer than they do.
        return body if tiles.many is None else (Branch(tiles.many, body, (loop,)),)


def _nest(loop: Loop) -> list[Loop]:
    # Loops with nothing between them, outermost first, whose bounds do not depend on each other.
    nest = [loop]
    while len(nest[-1].body) == 1:
        (inner,) = nest[-1].body
        if not isinstance(inner, Loop) or inner.kind == "parallel" or inner.step != 1:
            break
        if (index_variables(inner.start) | index_variables(inner.stop)) & {each.variable for each in nest}:
            break
        nest.append(inner)
    return nest


def _is_short(nest: Sequence[Loop], longest: int) -> bool:
    lengths = [_most(each.start, each.stop) for each in nest]
    known = [most for most in lengths if most is not None]
    return nest[0].kind == "parallel" or nest[0].step != 1 or (len(known) == len(lengths) and prod(known) <= longest)


def _length(loop: Loop) -> Expr:
    return normalized(apply("sub", loop.stop, loop.start))


def _most(start: Expr, stop: Expr) -> int | None:
    # As many steps as a loop has for any sizes, as in windows that are cut at the ends of an array.
    match start, stop:
        case _, Apply(primitive="min", arguments=ends):
            known = [_most(start, end) for end in ends]
        case Apply(primitive="max", arguments=starts), _:
            known = [_most(each, stop) for each in starts]
        case _:
            length = normalized(apply("sub", stop, start))
            return max(int(length.value), 0) if isinstance(length, Constant) else None
    return min((most for most in known if most is not None), default=None)


@dataclass(slots=True)
class _Tiles:
    """The tiles of a nest, whose loops are added innermost first.

    ``inside`` are the loops of one tile, ``around`` make those over tiles. ``many`` says whether there are many points,
    if tiles depend on sizes: finding out costs less than dividing for them.
    """

    names: FreshNames
    inside: list[Loop] = field(default_factory=list)
    around: list[Callable[[tuple[Node, ...]], tuple[Node, ...]]] = field(default_factory=list)
    many: Expr | None = None
    # As many as there are in a tile, up to a limit; and a number that they never exceed, if there is one.
    _points: Expr = field(default_factory=lambda: integer(1))
    _most: int | None = 1

    def add(self, loop: Loop, longest: int) -> None:
        """Cut ``loop`` so that a tile has at most ``longest`` points, as far as that depends on it."""
        length = _length(loop)
        points = apply("mul", self._points, length)
        room = apply("max", apply("floor_div", integer(longest), apply("max", self._points, integer(1))), integer(1))
        steps = _most(loop.start, loop.stop)
        self._most = None if self._most is None or steps is None else self._most * steps
        if self._most is not None and self._most <= longest:
            self.inside.append(loop)
        else:
            first = self.names.fresh("first")
            if isinstance(room, Constant):
                self._cut_by_constant(loop, first, int(room.value))
            else:
                self._cut(loop, first, room)
                self.many = apply("gt", points, integer(longest))
        self._points = apply("min", points, integer(_IN_VECTORS))

    def _cut_by_constant(self, loop: Loop, first: str, steps: int) -> None:
        end = apply("min", loop.stop, apply("add", index(first), integer(steps)))
        self.inside.append(replace(loop, start=index(first), stop=end))
        self.around.append(lambda body: (Loop(first, loop.start, loop.stop, steps, body),))

    def _cut(self, loop: Loop, first: str, room: Expr) -> None:
        number, start, steps = (
            self.names.fresh("tile"),
            Local(first, "int64"),
            Local(self.names.fresh("steps"), "int64"),
        )
        end = apply("min", loop.stop, apply("add", start, steps))
        self.inside.append(replace(loop, start=start, stop=end))
        low = apply("add", loop.start, apply("mul", index(number), steps))
        last = apply("sub", apply("add", _length(loop), steps), integer(1))
        count = apply("floor_div", last, steps)
        self.around.append(
            lambda body: (
                Define(steps.name, room, index=True),
                Loop(number, integer(0), count, 1, (Define(first, low, index=True), *body)),
            )
        )


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
