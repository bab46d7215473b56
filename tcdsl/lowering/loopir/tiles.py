"""Nested loops cut into tiles: whichever of them is long, a tile has at most so many points.

A tile is a whole number of short windows, or a part of a long row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, index_variables, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Accumulate, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import renamed, rewritten, walk_nodes
from tcdsl.polyhedra.linear import normalized

__all__ = ["IN_VECTORS", "Tiles", "length_of_loop", "most_steps", "nest_of", "quotient_up", "unrolled"]

IN_VECTORS = 8192
"""Points of a tile at most. Vectors sum many terms at once, and what follows them costs as much as a few hundred."""

# Nodes of a loop that is written out.
_LARGEST = 64
# Steps, and parts of expressions in all of them, of a sum that LLVM unrolls itself before it vectorizes.
_STEPS, _PARTS = 10, 160


def nest_of(loop: Loop) -> list[Loop]:
    """Loops with nothing between them, outermost first, whose bounds do not depend on each other."""
    nest = [loop]
    while len(nest[-1].body) == 1:
        (inner,) = nest[-1].body
        if not isinstance(inner, Loop) or inner.kind == "parallel" or inner.step != 1:
            break
        if (index_variables(inner.start) | index_variables(inner.stop)) & {each.variable for each in nest}:
            break
        nest.append(inner)
    return nest


def length_of_loop(loop: Loop) -> Expr:
    """Its last position minus its first, and 1."""
    return normalized(apply("sub", loop.stop, loop.start))


def quotient_up(steps: Expr, length: Expr) -> Expr:
    """How many blocks of a length so many steps take."""
    return apply("floor_div", normalized(apply("add", steps, apply("sub", length, integer(1)))), length)


def most_steps(start: Expr, stop: Expr) -> int | None:
    """As many steps as a loop has for any sizes, as in windows that are cut at the ends of an array, if known."""
    match start, stop:
        case _, Apply(primitive="min", arguments=ends):
            known = [most_steps(start, end) for end in ends]
        case Apply(primitive="max", arguments=starts), _:
            known = [most_steps(each, stop) for each in starts]
        case _:
            length = normalized(apply("sub", stop, start))
            return max(int(length.value), 0) if isinstance(length, Constant) else None
    return min((most for most in known if most is not None), default=None)


@dataclass(slots=True)
class Tiles:
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
        length = length_of_loop(loop)
        points = apply("mul", self._points, length)
        room = apply("max", apply("floor_div", integer(longest), apply("max", self._points, integer(1))), integer(1))
        steps = most_steps(loop.start, loop.stop)
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
        self._points = apply("min", points, integer(IN_VECTORS))

    def _cut_by_constant(self, loop: Loop, first: str, steps: int) -> None:
        steps = max(steps - steps % loop.step, loop.step)
        end = apply("min", loop.stop, apply("add", index(first), integer(steps)))
        self.inside.append(replace(loop, start=index(first), stop=end))
        self.around.append(lambda body: (Loop(first, loop.start, loop.stop, steps, body),))

    def _cut(self, loop: Loop, first: str, room: Expr) -> None:
        number, start = self.names.fresh("tile"), Local(first, "int64")
        steps = Local(self.names.fresh("steps"), "int64")
        end = apply("min", loop.stop, apply("add", start, steps))
        self.inside.append(replace(loop, start=start, stop=end))
        low = apply("add", loop.start, apply("mul", index(number), steps))
        last = apply("sub", apply("add", length_of_loop(loop), steps), integer(1))
        count = apply("floor_div", last, steps)
        self.around.append(
            lambda body: (
                Define(steps.name, room, index=True),
                Loop(number, integer(0), count, 1, (Define(first, low, index=True), *body)),
            )
        )


def unrolled(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` without serial loops whose ends are constants, innermost first, as long as that stays short.

    LLVM vectorizes the loop around short ones only if it sees no other.
    """
    return rewritten(nodes, lambda node: _loop(node) if isinstance(node, Loop) else (node,))


def _loop(loop: Loop) -> tuple[Node, ...]:
    if loop.kind == "parallel" or not (isinstance(loop.start, Constant) and isinstance(loop.stop, Constant)):
        return (loop,)
    steps = range(int(loop.start.value), int(loop.stop.value), loop.step)
    if len(steps) * sum(1 for _ in walk_nodes(loop.body)) > _LARGEST or _unrolled_later(loop, len(steps)):
        return (loop,)
    return tuple(node for step in steps for node in renamed(loop.body, {index(loop.variable): integer(step)}))


def _unrolled_later(loop: Loop, steps: int) -> bool:
    # Compiling it takes a fraction of the time.
    if steps < _STEPS or len(loop.body) != 1 or not isinstance(loop.body[0], Accumulate):
        return False
    return steps * sum(1 for _ in walk(loop.body[0].value)) <= _PARTS
