"""Long sums into rows, in single precision, a block of terms at a time: the error does not grow with all terms.

A row that has taken some hundred terms moves to a row of sums, and starts from zero again::

    for k in 0 .. K:                       for first in 0 .. K by 512:
        for j in 0 .. N:                       if first > 0:
            c[i, j] += a[i, k] * b[k, j]           for j in 0 .. N:
                                                       sums[i, j] = (sums[i, j] if first > 512 else 0.0) + c[i, j]
                                                       c[i, j] = 0.0
                                               for k in first .. min(K, first + 512):
                                                   for j in 0 .. N:
                                                       c[i, j] += a[i, k] * b[k, j]
                                           if K > 512:
                                               for j in 0 .. N:
                                                   c[i, j] += sums[i, j]

The loops that do the work are what they were, and stand in the code once. Where there are few terms, there is no memory
for sums. Several loops are cut into tiles, and count the terms that they have added. In double precision millions of
terms do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, constant, index, integer, plain_read, product_of
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Constant, Expr, Local, Read, reads
from tcdsl.lowering.loopir.loops import Branch, Buffer, Define, Loop, Node, Store, Update, loops_over
from tcdsl.lowering.loopir.tiles import Tiles, length_of_loop, nest_of
from tcdsl.lowering.loopir.traversal import walk_nodes, with_bodies
from tcdsl.lowering.nests.bodies import StatementLoops
from tcdsl.lowering.program_passes.effort import lengths_of
from tcdsl.lowering.program_passes.touched_tensors import evaluated
from tcdsl.polyhedra.linear import normalized

__all__ = ["SummedCells", "in_row_blocks"]

# Terms of a block, and how many there are at least where their number is known.
_LENGTH, _MANY = 512, 1024

SummedCells = Sequence[tuple[str, Expr, Expr]]
"""Variables along the target whose loops are inside those that sum, and where these begin and end."""


def in_row_blocks(nodes: Sequence[Node], body: StatementLoops, cells: SummedCells) -> tuple[Node, ...]:
    """The ``nodes`` that add to the ``cells`` of a plain target, with a row of sums if there may be many terms."""
    if not _is_sum(body):
        return tuple(nodes)
    plan, setting = body.plan, body.setting
    summed = [name for name in plan.inner if name not in plan.cells]
    terms = normalized(product_of(lengths_of(plan.statement, summed, setting.tensors)))
    if isinstance(terms, Constant) and terms.value < _MANY:
        return tuple(nodes)
    many = apply("gt", terms, integer(_LENGTH))
    # Loops over other cells reuse the row, but threads have rows of their own.
    inside = [name for name, _, _ in cells]
    variables = [*(name for name in plan.outer[:1] if name not in inside), *inside]
    shape = tuple(apply("where", many, plan.extent(name), integer(0)) for name in variables)
    dtype = compute_dtype(plan.tensor.dtype)
    sums = Buffer(setting.names.fresh(f"sums_{plan.tensor.name}"), dtype, shape, "temporary", ())
    setting.extra.append(sums)
    blocks = _Blocks(body, frozenset(summed), tuple(cells), sums, tuple(index(name) for name in variables))
    loop = nodes[0] if len(nodes) == 1 else None
    if isinstance(loop, Loop) and loop.variable in summed and len(summed) == 1:
        return blocks.of_loop(loop, terms)
    return blocks.of(nodes, many)


def _is_sum(body: StatementLoops) -> bool:
    plan, statement = body.plan, body.plan.statement
    if not body.setting.long_sums or body.place.marks is not None or not plan.plain:
        return False
    if statement.accumulate not in ("add", "subtract") or plan.tensor.dtype != "float32":
        return False
    # What is read must not be set to zero in between.
    read = (read.tensor for expr in evaluated(statement) for read in reads(expr))
    return all(body.setting.buffers[tensor] != body.place.buffer for tensor in read)


@dataclass(frozen=True, slots=True)
class _Blocks:
    body: StatementLoops
    summed: frozenset[str]
    cells: tuple[tuple[str, Expr, Expr], ...]
    sums: Buffer
    place: tuple[Expr, ...]

    def of_loop(self, loop: Loop, terms: Expr) -> tuple[Node, ...]:
        """A single loop that sums, and what it has moved to the sums put back."""
        length = length_of_loop(loop)
        step = _LENGTH - _LENGTH % loop.step
        first = index(self.body.setting.names.fresh("first"))
        begun = apply("gt", first, loop.start)
        again = apply("gt", first, normalized(apply("add", loop.start, integer(step))))
        long = apply("gt", length, integer(step))
        if length != terms:
            # There is memory for the sums of so many terms only.
            few = apply("le", terms, integer(_LENGTH))
            begun, long = (apply("and_", apply("not_", few), each) for each in (begun, long))
        stop = apply("min", loop.stop, apply("add", first, integer(step)))
        move = Branch(begun, self.over_cells(lambda cell: self.move(cell, again)))
        blocks = Loop(first.name, loop.start, loop.stop, step, (move, replace(loop, start=first, stop=stop)))
        return (blocks, Branch(long, self.back()))

    def of(self, nodes: Sequence[Node], many: Expr) -> tuple[Node, ...]:
        """The nodes, counting terms, and what they have moved to the sums put back."""
        names = self.body.setting.names
        count, moved, most = (Local(names.fresh(name), "int64") for name in ("count", "moved", "most"))
        blocks = self.cut(nodes, count, moved, most)
        return (
            # Whether there is memory for sums is asked together with the number of terms. Tiles are at most as long.
            Define(most.name, apply("where", many, integer(_LENGTH // 2), integer(2**62))),
            Define(count.name, integer(0)),
            Define(moved.name, integer(0)),
            *blocks,
            Branch(apply("gt", moved, integer(0)), self.back()),
        )

    def cut(self, nodes: Iterable[Node], count: Local, moved: Local, most: Local) -> tuple[Node, ...]:
        out: list[Node] = []
        for node in nodes:
            nest = nest_of(node) if isinstance(node, Loop) else []
            nest = [loop for loop in nest if loop.variable in self.summed]
            if nest and not self._sums_inside(nest[-1].body):
                out.extend(self.block(nest, count, moved, most))
            else:
                out.append(with_bodies(node, lambda body: self.cut(body, count, moved, most)))
        return tuple(out)

    def _sums_inside(self, nodes: Sequence[Node]) -> bool:
        return any(isinstance(node, Loop) and node.variable in self.summed for node in walk_nodes(nodes))

    def block(self, nest: Sequence[Loop], count: Local, moved: Local, most: Local) -> tuple[Node, ...]:
        """The loops that sum, in tiles before each of which the row may be moved."""
        move = Branch(
            apply("ge", count, most),
            (
                *self.over_cells(lambda cell: self.move(cell, apply("gt", moved, integer(0)))),
                Define(count.name, integer(0)),
                Define(moved.name, integer(1)),
            ),
        )
        tiles = Tiles(self.body.setting.names)
        for loop in reversed(nest):
            tiles.add(loop, _LENGTH)
        points: Expr = integer(1)
        body = nest[-1].body
        for loop in tiles.inside:
            points = apply("mul", length_of_loop(loop), points)
            body = (replace(loop, body=body),)
        body = (move, Define(count.name, apply("add", count, points)), *body)
        for over_tiles in tiles.around:
            body = over_tiles(body)
        return body

    def back(self) -> tuple[Node, ...]:
        """Add the sums to the cells."""
        return self.over_cells(lambda cell: (Update(self.body.place.buffer, cell, "add", self.sum),))

    def move(self, cell: tuple[Expr, ...], again: Expr) -> tuple[Node, ...]:
        """Add the cell to its sum, if it has been moved before, and start it from zero."""
        zero = constant(0, self.sums.dtype)
        before = apply("where", again, self.sum, zero)
        own = plain_read(self.body.place.buffer, cell, self.sums.dtype)
        return (
            Store(self.sums.name, self.place, apply("add", before, own)),
            Store(self.body.place.buffer, cell, zero),
        )

    @property
    def sum(self) -> Read:
        return plain_read(self.sums.name, self.place, self.sums.dtype)

    def over_cells(self, act: Callable[[tuple[Expr, ...]], tuple[Node, ...]]) -> tuple[Node, ...]:
        # Once for hundreds of terms.
        return loops_over(self.cells, act(self.body.plan.statement.target.indices), seldom=True)
