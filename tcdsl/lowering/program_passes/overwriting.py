"""Memory that nobody reads after it was overwritten.

``x_2[t] = v  from x`` takes over the memory of ``x`` only if nothing reads ``x`` later. Readers that do not depend on
``x_2`` come first then (`overwriting_late`). For others the cells that they read are saved before (`saving_cells`)::

    d_2[t] = 0                from d              d_saved = d[t]
    d_3[t] += d[t] * x[t]     from d_2            d_2[t] = 0                  from d
                                                  d_3[t] += d_saved * x[t]    from d_2

A round of a loop takes then what its statements take, and not as long as ``d`` is large. Saved are the cells at the
indices that no variable of the reading statement goes through, along the other axes all. Where data choose several
cells to write, the values are made before::

    d_2[k[t, i]] += d[k[t, i]] * x[t]  from d         d_values[i] = d[k[t, i]] * x[t]
                                                      d_2[k[t, i]] += d_values[i]  from d
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.ir.build import apply, in_range, index, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Expr,
    Local,
    Read,
    certain_children,
    index_variables,
    is_affine_index,
    reads,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import (
    Access,
    Keep,
    Neutral,
    Program,
    Statement,
    Tensor,
    map_statement,
    statement_reads,
    tensors_read,
)
from tcdsl.lowering.program_passes.touched_tensors import others_in_each_round
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.boxes import bounds, box

__all__ = ["overwriting_late", "saving_cells"]


def overwriting_late(program: Program) -> Program:
    """``program`` with statements that start from an earlier version moved behind its other readers."""
    statements = program.statements
    position = {statement.target.tensor: k for k, statement in enumerate(statements)}
    read = [tensors_read(statement) for statement in statements]
    before = [{position[name] for name in names if name in position} for names in read]
    for k, statement in enumerate(statements):
        if not isinstance(statement.start, Keep):
            continue
        earlier = statement.start.tensor
        for other in range(k + 1, len(statements)):
            start = statements[other].start
            continued = isinstance(start, Keep) and start.tensor == earlier
            if earlier in read[other] and not continued and not _leads(before, k, other):
                before[k].add(other)
    order = _order(before)
    return replace(program, statements=tuple(statements[k] for k in order)) if order != sorted(order) else program


def _leads(before: list[set[int]], first: int, last: int) -> bool:
    # Whether the statement ``first`` must come before ``last``.
    waiting, seen = [last], set[int]()
    while waiting:
        current = waiting.pop()
        if current == first:
            return True
        if current not in seen:
            seen.add(current)
            waiting.extend(before[current])
    return False


def _order(before: list[set[int]]) -> list[int]:
    # Each after those that must come before it, otherwise as they stand.
    order: list[int] = []
    done: set[int] = set()

    def add(k: int) -> None:
        if k not in done:
            done.add(k)
            for other in sorted(before[k]):
                add(other)
            order.append(k)

    for k in range(len(before)):
        add(k)
    return order


# More groups of cells than these are no few cells.
_MOST = 8

_Places = tuple[Expr | None, ...]
"""The index along each axis, ``None`` along those that variables go through."""


def saving_cells(program: Program, names: FreshNames) -> Program:
    """``program`` where statements that write few cells of a tensor in place leave nobody to read it later."""
    kept = {*program.outputs, *(new for _, new in program.updates)}
    tensors = list(program.tensors)
    statements = list(program.statements)
    position = 0
    while position < len(statements):
        statement = statements[position]
        position += 1
        start = statement.start
        if not isinstance(start, Keep) or start.tensor in kept:
            continue
        declared = program.tensor(start.tensor)
        if _writes_among_what_it_reads(statement, start.tensor):
            made, values, statement = _with_values_before(statement, names)
            tensors.append(made)
            statements[position - 1 : position] = [values, statement]
            position += 1
        several = others_in_each_round(statement.target.indices)
        if len(statement.domain.variables) >= len(declared.shape) and not several:
            continue
        saving = _Saving(declared, statements[position - 1 :], names)
        first = position - 1 if _may_read_what_it_writes(statement, start.tensor) else position
        readers = saving.readers(statements[first:])
        if readers is None:
            continue
        groups = saving.groups.values()
        tensors.extend((*(group.tensor for group in groups), *saving.at_points))
        stores = [*(group.store(declared) for group in groups), *saving.stores]
        statements[position - 1 :] = [*stores, *statements[position - 1 : first], *readers]
        position += len(stores)
    if len(tensors) == len(program.tensors):
        return program
    return replace(program, tensors=tuple(tensors), statements=tuple(statements))


def _may_read_what_it_writes(statement: Statement, memory: str) -> bool:
    # Where data say which cells these are, and some are written before others are read.
    found = [read for read in statement_reads(statement) if read.tensor == memory]
    indices = [*statement.target.indices, *(axis for read in found for axis in read.indices)]
    return bool(found and statement.domain.variables) and not all(map(is_affine_index, indices))


def _writes_among_what_it_reads(statement: Statement, memory: str) -> bool:
    """Whether data choose several cells to write, others in each round, and the values read these or others of them."""
    if not others_in_each_round(statement.target.indices):
        return False
    apart = [*statement.target.indices, *([statement.condition] if statement.condition is not None else [])]
    return any(read.tensor == memory for read in reads(statement.value)) and not any(
        read.tensor == memory for expr in apart for read in reads(expr)
    )


def _with_values_before(statement: Statement, names: FreshNames) -> tuple[Tensor, Statement, Statement]:
    """A tensor of the statement's values, the statement that makes it, and the one that is left."""
    variables, value = statement.domain.variables, statement.value
    lows, extents = bounds(statement.domain.set, len(variables))
    cell = tuple(apply("sub", index(name), low) for name, low in zip(variables, lows, strict=True))
    made = Tensor(names.fresh(f"{statement.target.tensor}_values"), value.dtype, tuple(extents))
    access = Access(made.name, cell, statement.target.span)
    domain, condition = statement.domain, statement.condition
    first = Statement(access, "assign", Neutral(), value, domain, condition, span=statement.span)
    return made, first, replace(statement, value=plain_read(made.name, cell, value.dtype, value.span))


@dataclass(slots=True)
class _Group:
    """Reads of one tensor at the same places: what they find is saved as ``tensor``, for the sizes of ``context``."""

    read: Read
    places: _Places
    tensor: Tensor
    cells: tuple[str, ...]
    points: isl.Set
    context: isl.Set

    def store(self, whole: Tensor) -> Statement:
        """The statement that saves it."""
        free = iter(self.cells)
        places = [index(next(free)) if place is None else place for place in self.places]
        pairs = zip(self.places, self.read.boundaries, strict=True)
        boundaries = tuple(Boundary.SKIP if place is None else boundary for place, boundary in pairs)
        value = Read(whole.name, tuple(places), boundaries, compute_dtype(whole.dtype))
        target = Access(self.tensor.name, tuple(map(index, self.cells)))
        points = self.points.intersect_params(self.context)
        return Statement(target, "assign", Neutral(), value, Domain.from_set(points), span=whole.span)


class _Saving:
    """What is saved of the tensor ``whole`` for statements that read it after it was overwritten."""

    def __init__(self, whole: Tensor, unmade: Sequence[Statement], names: FreshNames) -> None:
        self._whole = whole
        self._names = names
        self._first = unmade[0]
        self._made = {statement.target.tensor for statement in unmade}
        self.groups: dict[tuple[_Places, tuple[Boundary, ...]], _Group] = {}
        self.at_points: list[Tensor] = []
        self.stores: list[Statement] = []

    def readers(self, later: Sequence[Statement]) -> list[Statement] | None:
        """The statements ``later``, reading what was saved; ``None`` where that cannot be, or is not few."""
        found: list[Statement] = []
        for position, statement in enumerate(later):
            continued = isinstance(statement.start, Keep) and statement.start.tensor == self._whole.name
            if continued and (position or statement is not self._first):
                return None
            renamed: dict[Expr, Expr] = {}
            for read in statement_reads(statement):
                if read.tensor == self._whole.name:
                    changed = self._replaced(read, statement)
                    if changed is None:
                        return None
                    renamed[read] = changed
            found.append(_with_reads(statement, renamed) if renamed else statement)
        return found if 0 < len(self.groups) + len(self.at_points) <= _MOST else None

    def _replaced(self, read: Read, statement: Statement) -> Read | None:
        places = tuple(None if index_variables(each) else each for each in read.indices)
        axes = [axis for axis, place in enumerate(places) if place is None]
        if others_in_each_round(read.indices):
            return self._at_points(read, statement) if self._is_known(read, read.indices, statement) else None
        if len(axes) == len(places) or not self._is_known(read, places, statement):
            return None
        boundaries = tuple(
            boundary for boundary, place in zip(read.boundaries, places, strict=True) if place is not None
        )
        group = self.groups.get((places, boundaries))
        context = statement.domain.set.params()
        if group is None:
            try:
                group = self._group(read, places, axes, context)
            except NotAffine:
                return None
            self.groups[places, boundaries] = group
        group.context = group.context.union(context)
        return replace(
            read,
            tensor=group.tensor.name,
            indices=tuple(read.indices[axis] for axis in axes),
            boundaries=tuple(read.boundaries[axis] for axis in axes),
        )

    def _at_points(self, read: Read, statement: Statement) -> Read:
        """What is saved for each point of a statement that reads several cells that data choose."""
        variables = statement.domain.variables
        lows, extents = bounds(statement.domain.set, len(variables))
        cell = tuple(apply("sub", index(name), low) for name, low in zip(variables, lows, strict=True))
        saved = replace(self._whole, name=self._names.fresh(f"{self._whole.name}_saved"), shape=tuple(extents))
        target, domain, condition = Access(saved.name, cell), statement.domain, statement.condition
        self.at_points.append(saved)
        self.stores.append(Statement(target, "assign", Neutral(), read, domain, condition, span=statement.span))
        return plain_read(saved.name, cell, read.dtype, read.span)

    def _is_known(self, read: Read, places: _Places, statement: Statement) -> bool:
        # Whether the places are known before, and can be read there.
        if read.fill is not None:
            return False
        certain = read in _certain(statement)
        for place, boundary in zip(places, read.boundaries, strict=True):
            if place is None or (is_affine_index(place) and boundary is Boundary.SKIP):
                continue
            if not certain or any(isinstance(part, Local) for part in walk(place)):
                return False
            if any(part.tensor in (*self._made, self._whole.name) for part in reads(place)):
                return False
        return True

    def _group(self, read: Read, places: _Places, axes: Sequence[int], context: isl.Set) -> _Group:
        whole = self._whole
        cells = tuple(self._names.fresh("c") for _ in axes)
        points = box(cells, [whole.shape[axis] for axis in axes])
        for axis, place in enumerate(places):
            if place is not None and is_affine_index(place):
                points = points.intersect(condition_set(in_range(place, whole.shape[axis]), points))
        shape = tuple(whole.shape[axis] for axis in axes)
        saved = replace(whole, name=self._names.fresh(f"{whole.name}_saved"), shape=shape)
        return _Group(read, places, saved, cells, points, context)


def _certain(statement: Statement) -> set[Read]:
    """The reads that a statement makes wherever it has a point."""
    found: set[Read] = set()
    waiting: list[Expr] = [statement.value if statement.condition is None else statement.condition]
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Read):
            found.add(expr)
        waiting.extend(certain_children(expr))
    return found


def _with_reads(statement: Statement, renamed: dict[Expr, Expr]) -> Statement:
    return map_statement(statement, lambda expr: transform(expr, lambda node: renamed.get(node, node)))
