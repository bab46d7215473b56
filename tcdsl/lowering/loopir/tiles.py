"""Nested loops cut into tiles: whichever of them is long, a tile has at most so many points.

A tile is a whole number of short windows, or a part of a long row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from tcdsl.ir.build import all_of, apply, index, integer, truth
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, index_variables, substitute, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.contraction import Side
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node, loops_over
from tcdsl.lowering.loopir.traversal import renamed, rewritten, walk_nodes
from tcdsl.polyhedra.linear import linear_form, normalized

__all__ = [
    "IN_VECTORS",
    "ClippedTerms",
    "Tiles",
    "is_of_cells",
    "length_of_loop",
    "most_steps",
    "nest_of",
    "quotient_up",
    "unrolled",
    "within_limits",
]

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


def within_limits(limits: Sequence[Expr], values: Mapping[Expr, Expr]) -> Expr:
    """Whether ``limits`` have points where variables have the ``values``."""
    return all_of([apply("ge", normalized(substitute(limit, dict(values))), integer(0)) for limit in limits])


def is_of_cells(limit: Expr, summed: Sequence[Side]) -> bool:
    """Whether a limit says which cells have terms, and not which terms they have."""
    return index_variables(limit).isdisjoint(side.variable for side in summed)


@dataclass(frozen=True, slots=True)
class ClippedTerms:
    """The terms of a tile within limits, in loops over the ``parts``, of which one is in three, from mark to mark::

        for k in marks[0] .. marks[1]:      where there are terms of ``some`` cells
        for k in marks[1] .. marks[2]:      where there are those of all
        for k in marks[2] .. marks[3]:      of some again

    ``limits`` are those of terms, and ``filled`` says whether the tile has cells with any.
    """

    parts: Sequence[tuple[str, Expr, Expr]]
    limits: tuple[Expr, ...]
    filled: Expr
    counter: str
    marks: tuple[Expr, ...]
    rising: bool
    falling: bool

    @staticmethod
    def of(
        limits: Sequence[Expr],
        ends: Mapping[Expr, tuple[Expr, Expr]],
        summed: Sequence[Side],
        parts: Sequence[tuple[str, Expr, Expr]],
        names: FreshNames,
        out: list[Node],
    ) -> ClippedTerms:
        """The terms of a tile whose variables go from one of the ``ends`` to the other."""
        cells = [each for each in limits if is_of_cells(each, summed)]
        filled = all_of([apply("ge", _extreme(each, ends, largest=True), integer(0)) for each in cells])
        starts: list[tuple[Expr, Expr]] = []
        stops: list[tuple[Expr, Expr]] = []
        found: tuple[str, Expr, Expr] = "", integer(0), integer(0)
        for limit in limits:
            for side, part in zip(summed, parts, strict=True):
                scale = linear_form(limit)[0].get(index(side.variable), 0)
                if not scale:
                    continue
                found = part
                first = {**ends, index(side.variable): (side.at(integer(0)),) * 2}
                some, every = (_extreme(limit, first, largest=largest) for largest in (True, False))
                if (scale < 0) == side.down:
                    starts.append((apply("neg", some), apply("neg", every)))
                else:
                    stops.append((apply("add", some, integer(1)), apply("add", every, integer(1))))
        if not (starts or stops):
            return ClippedTerms(parts, (), filled, "", (), False, False)
        counter, low, high = found
        begin = _mark("begin", _most("max", low, [some for some, _ in starts]), names, out)
        end = _mark("stop", _most("min", high, [some for some, _ in stops]), names, out)
        all_from = _mark("low", apply("min", _most("max", begin, [every for _, every in starts]), end), names, out)
        all_to = _mark("high", apply("max", _most("min", end, [every for _, every in stops]), all_from), names, out)
        others = tuple(each for each in limits if each not in cells)
        marks = begin, all_from, all_to, end
        return ClippedTerms(parts, others, filled, counter, marks, len(starts) > 0, len(stops) > 0)

    def around(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """``nodes``, what a tile does, where it has cells."""
        return nodes if self.filled == truth(True) else (Branch(self.filled, nodes),)

    def loops(self, step: tuple[Node, ...], some: tuple[Node, ...]) -> tuple[Node, ...]:
        """Loops over all terms; ``step`` adds those of all cells, and ``some`` those of some."""
        for part in reversed(self.parts):
            counter, *_ = part
            if counter != self.counter:
                step, some = loops_over([part], step), loops_over([part], some)
                continue
            begin, low, high, end = self.marks
            before = (Loop(counter, begin, low, 1, some),) if self.rising else ()
            behind = (Loop(counter, high, end, 1, some),) if self.falling else ()
            step = some = (*before, Loop(counter, low, high, 1, step), *behind)
        return step


def _extreme(limit: Expr, ends: Mapping[Expr, tuple[Expr, Expr]], largest: bool) -> Expr:
    """The largest or the smallest value of a limit whose variables are between ``ends``."""
    terms, _ = linear_form(limit)
    values = {name: pair[(terms.get(name, 0) > 0) == largest] for name, pair in ends.items()}
    return normalized(substitute(limit, values))


def _most(primitive: str, expr: Expr, others: Iterable[Expr]) -> Expr:
    return reduce(partial(apply, primitive), others, expr)


def _mark(title: str, value: Expr, names: FreshNames, out: list[Node]) -> Expr:
    local = Local(names.fresh(title), "int64")
    out.append(Define(local.name, value, index=True))
    return local
