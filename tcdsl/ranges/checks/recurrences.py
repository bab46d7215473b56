"""Recurrences that a statement cannot compute: it would read cells that other points of itself write.

A statement reads everything as it was before the statement, so after ``s: real[N]; s[0] = x[0]`` the statement
``s[t] = s[t - 1] * 2 + x[t], t >= 1`` finds nothing in ``s[1]``. That is an error: of the pairs of points p and q
such that p reads the cell that q writes, none may be left over once the cells are taken away that earlier statements
have surely written. Inputs and whole-array arithmetic write all cells, declarations none, and what data decides counts
as not written (`surely_written`). Reads and writes of the statement itself whose place depends on data are exempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import islpy as isl

from tcdsl.ir.build import conjuncts, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    Expr,
    index_variables,
    is_affine_index,
    reads,
    substitute,
    walk,
)
from tcdsl.ir.program import Assertion, Keep, Statement, Tensor
from tcdsl.polyhedra.affine import NotAffine, equated, sizes_condition
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.read_pieces import places
from tcdsl.polyhedra.spaces import arranged, constant_range, dimension_names, named
from tcdsl.ranges.checks.loop_hints import loop_hint, part_hint
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import Sketch, free_variables
from tcdsl.ranges.sketches.sketch_accesses import Level, OwnRead, levels_of, root_level
from tcdsl.ranges.solving.constraints import named_sizes
from tcdsl.ranges.solving.regions import Region, affine_guard

__all__ = ["check_recurrence", "recurrence_assertions", "surely_written"]

# isl cannot speak of a variable that a size multiplies (`i*P + p`). A recurrence shows in its first two values too.
_SAMPLES = (0, 1)

_BOUNDARIES = (Boundary.CLAMP, Boundary.WRAP, Boundary.REFLECT, Boundary.SYMMETRIC)


def check_recurrence(inference: Inference, root: Level, regions: Mapping[int, Region]) -> None:
    """Note a fault for a recurrence, or an assertion where it depends on sizes whether there is one.

    ``regions`` are those of the levels that are computed, by identity.
    """
    sketch = inference.sketch
    if not root.variables or not sketch.previous or inference.scope.writer(sketch.previous) is None:
        return
    reads = [
        (regions[id(level)].points, read)
        for level in levels_of(root)
        for read in (level.own_reads if id(level) in regions else ())
        # Each point may read the cell that it alone writes.
        if level is not root or read.indices != sketch.target.indices or sketch.accumulate != "assign"
    ]
    _check(inference, regions[id(root)].points, reads)


def recurrence_assertions(
    statement: Statement, target: Tensor, parts: Sequence[Statement], scope: ProgramScope
) -> tuple[Assertion, ...]:
    """What must hold for a statement on a part of ``target``, whose points are known, not to recur.

    ``parts`` are statements that compute its value: each point counts as made of all that they read. Raises the fault
    of one that always recurs.
    """
    sketch = Sketch(
        statement.target,
        target.dtype,
        target.shape,
        "part",
        statement.accumulate,
        Keep(target.name),
        statement.value,
        statement.domain.variables,
        conditions=() if statement.condition is None else (statement.condition,),
        label=target.label or target.name,
        previous=target.name,
        span=statement.span,
    )
    inference = Inference(sketch, scope)
    root = root_level(inference)
    points = arranged(statement.domain.set, root.variables)
    found = [(points, read) for read in root.own_reads]
    for part in parts:
        others: dict[Expr, Expr] = {index(name): index(f"{name}_part") for name in part.domain.variables}
        inside = named(part.domain.set, [f"{name}_part" for name in part.domain.variables])
        both = points.flat_product(inside.reset_tuple_id())
        for read in reads(part.value):
            if read.tensor == sketch.previous:
                indices = tuple(substitute(axis, others) for axis in read.indices)
                found.append((both, OwnRead(indices, read.boundaries, (), sketch.span)))
    _check(inference, points, found)
    inference.raise_faults()
    return tuple(inference.assertions)


def surely_written(made: Statement, conditions: Sequence[Expr]) -> Statement:
    """A statement as far as it writes whatever the data are; ``conditions`` say where it does.

    A condition on data that speaks of the target's variables alone may leave cells out, one with a reduced variable
    only filters. A place that depends on data is no certain one.
    """
    indices = made.target.indices
    used = frozenset().union(*map(free_variables, indices))
    chosen = [each for each in conjuncts(*conditions) if free_variables(each) <= used]
    if all(map(is_affine_index, indices)) and not any(True for each in chosen for _ in reads(each)):
        return made
    return replace(made, domain=Domain.from_set(made.domain.set.subtract(made.domain.set)))


def _check(inference: Inference, points: isl.Set, reads: Sequence[tuple[isl.Set, OwnRead]]) -> None:
    target = inference.sketch.target
    pairs = _Pairs(inference, points)
    first: OwnRead | None = None
    every: isl.Set | None = None
    for there, read in reads:
        if any(map(_apart, read.indices, read.boundaries, target.indices)):
            continue
        found = pairs.left_over(there, read)
        if found is not None:
            first = first or read
            every = found if every is None else every.union(found)
    if first is not None and every is not None:
        _report(inference, pairs, first, every)


def _apart(read: Expr, boundary: Boundary, written: Expr) -> bool:
    # As in the rounds of a loop of Python's: `s[3, j] = s[2, j] * 2`.
    if not isinstance(read, Constant) or not isinstance(written, Constant) or boundary is not Boundary.SKIP:
        return False
    return 0 <= read.value != written.value >= 0


@dataclass(slots=True)
class _Pairs:
    """Pairs of points: the one reads a cell that the other writes. They are sets over ``own``, ``other`` and ``cell``.

    ``points`` are those of the statement, over its variables ``own``.
    """

    inference: Inference
    points: isl.Set

    @property
    def own(self) -> tuple[str, ...]:
        return dimension_names(self.points)

    @property
    def other(self) -> tuple[str, ...]:
        return tuple(f"{name}'" for name in self.own)

    @property
    def cell(self) -> tuple[str, ...]:
        return tuple(f"cell'{k}" for k in range(len(self.inference.sketch.target.indices)))

    def left_over(self, points: isl.Set, read: OwnRead) -> isl.Set | None:
        """The pairs for a read made at ``points``, of cells that nothing has written before; None if there are none."""
        target = tuple(self._named(axis) for axis in self.inference.sketch.target.indices)
        indices = tuple(self._named(axis) for axis in read.indices)
        if not all(map(is_affine_index, (*target, *indices))):
            return None
        held, _ = affine_guard([self._named(condition) for condition in read.guard], points)
        for here, there in product(_samples(indices), _samples(target)):
            try:
                reading = self._read(_at(held, here), tuple(substitute(axis, here) for axis in indices), read)
                wanted = tuple(substitute(axis, there) for axis in target)
                writing = _accessed(_at(self.points, there), wanted, self.cell)
            except NotAffine:
                continue
            found = self._unwritten(self._met(reading, arranged(writing, (*self.own, *self.cell))))
            if not found.is_empty():
                return found
        return None

    def context(self, points: isl.Set) -> isl.Set:
        """What is known about the sizes that ``points`` depend on."""
        return self.inference.algebra.context_of(points)

    def _named(self, expr: Expr) -> Expr:
        return named_sizes(expr, self.inference.algebra)

    def _read(self, points: isl.Set, indices: Sequence[Expr], read: OwnRead) -> isl.Set:
        # Which point of the statement reads which cell, over own and cell.
        scope, dimensions = self.inference.scope, (*self.own, *self.cell)
        extents = scope.tensor(self.inference.sketch.previous).shape
        found = arranged(points, dimensions)
        found = found.subtract(found)
        for place in places(indices, read.boundaries, extents, points, self.context(points)):
            try:
                cells = arranged(_accessed(place.points, place.indices, self.cell), dimensions)
            except NotAffine:
                continue  # further out than a periodic boundary is followed
            found = found.union(cells)
        return found.intersect(arranged(self.points, dimensions))

    def _met(self, reading: isl.Set, writing: isl.Set) -> isl.Set:
        dimensions = (*self.own, *self.other, *self.cell)
        pairs = arranged(reading, dimensions).intersect(arranged(named(writing, self.other), dimensions))
        same = pairs
        for one, other in zip(self.own, self.other, strict=True):
            same = equated(same, index(one), index(other))
        return pairs.subtract(same)

    def _unwritten(self, pairs: isl.Set) -> isl.Set:
        scope, name = self.inference.scope, self.inference.sketch.previous
        while True:
            pairs = pairs.intersect_params(self.context(pairs))
            writer = scope.writer(name)
            if pairs.is_empty() or writer is None:
                return pairs.subtract(pairs)
            written = self._written(writer)
            if written is None or self._every_cell(writer).is_subset(written):
                scope.all_written(name)
                return pairs.subtract(pairs)
            pairs = pairs.subtract(arranged(written, dimension_names(pairs)))
            if not isinstance(writer.start, Keep):
                return pairs.intersect_params(self.context(pairs))
            name = writer.start.tensor

    def _every_cell(self, statement: Statement) -> isl.Set:
        cells = box(self.cell, self.inference.scope.tensor(statement.target.tensor).shape)
        return cells.intersect_params(self.context(cells))

    def _written(self, statement: Statement) -> isl.Set | None:
        # The cells that a statement surely writes; None where isl cannot speak of them, and they may be all.
        indices = tuple(self._named(axis) for axis in statement.target.indices)
        if not all(map(is_affine_index, indices)):
            every = self._every_cell(statement)
            return every.subtract(every)
        try:
            return arranged(_accessed(statement.domain.set, indices, self.cell), self.cell)
        except NotAffine:
            return None


def _accessed(points: isl.Set, indices: Sequence[Expr], cell: Sequence[str]) -> isl.Set:
    """``points`` with further dimensions for the cell that each of them accesses."""
    found = arranged(points, (*dimension_names(points), *cell))
    for name, axis in zip(cell, indices, strict=True):
        found = equated(found, index(name), axis)
    return found


def _at(points: isl.Set, sample: Mapping[Expr, Expr]) -> isl.Set:
    for variable, value in sample.items():
        points = equated(points, variable, value)
    return points


def _samples(indices: Sequence[Expr]) -> Iterator[dict[Expr, Expr]]:
    """Values for the variables that sizes multiply; one empty choice if there are none."""
    names = {
        name
        for axis in indices
        for node in walk(axis)
        if isinstance(node, Apply) and node.primitive == "mul"
        if not any(isinstance(factor, Constant) for factor in node.arguments)
        for name in index_variables(node)
    }
    for values in product(_SAMPLES, repeat=len(names)):
        yield {index(name): integer(value) for name, value in zip(sorted(names), values, strict=True)}


def _report(inference: Inference, pairs: _Pairs, read: OwnRead, found: isl.Set) -> None:
    target = inference.label(inference.sketch.target.tensor)
    if inference.sketch.mode == "part":
        fact = f"the statement reads cells of `{target}` that its other cells write and nothing has written before"
        hint = part_hint(inference, pairs.points, found, pairs.own, pairs.other)
    else:
        shown = ", ".join(
            f"{boundary.value}({inference.text(axis)})" if boundary in _BOUNDARIES else inference.text(axis)
            for axis, boundary in zip(read.indices, read.boundaries, strict=True)
        )
        fact = f"`{target}[{shown}]` reads what other points of this statement write and nothing has written before"
        hint = loop_hint(inference, pairs.points, found, pairs.own, pairs.other)
    context = pairs.context(found)
    allowed = context.subtract(found.params()).coalesce()
    condition = sizes_condition(allowed, context)
    if condition is None:
        inference.fault(fact, read.span, hint=hint)
        return
    if not _degenerate(pairs.points.intersect_params(context), allowed):
        fact = f"{fact}, unless {inference.text(condition)}"
    inference.require(condition, f"{fact}\n{hint}", read.span, assumed=False)


def _degenerate(points: isl.Set, sizes: isl.Set) -> bool:
    # Whether for `sizes` there are no points, or a variable takes a few values only that takes many for others.
    names = dimension_names(points)
    for part in sizes.get_basic_sets():
        some = points.intersect_params(isl.Set.from_basic_set(part))
        if some.is_empty():
            continue
        values = [(constant_range(some, name), constant_range(points, name)) for name in names]
        if not any(few is not None and (many is None or len(few) == 1 < len(many)) for few, many in values):
            return False
    return True
