"""Reductions into few cells of a tensor that rounds hand on, as reductions of these cells alone.

::

    c_2[t] *= x[j]  from c      c_start[()] = c[t]
                                c_cells[()] *= x[j]  from c_start
                                c_2[t] = c_cells[()]  from c

The derivative of a reduction asks of each cell how many values tie, or how many factors are zero: of all cells of
``c`` in each round, where these are few. Where data choose the cells, or several points share one, each cell is that of
the last point that writes it; who that is, is written to the cells of a tensor beside ``c``, which nothing clears::

    c_2[p[i]] *= x[i]  from c   c_place[p[i]] = i  from unset()
                                c_owner[i] = c_place[p[i]]
                                c_start[i] = c[p[i]]  if c_owner[i] == i
                                c_cells[c_owner[i]] *= x[i]  from c_start
                                c_cleared[p[i]] = -0.0  from c
                                c_2[p[i]] += c_cells[i]  from c_cleared  if c_owner[i] == i
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import islpy as isl

from tcdsl.autodiff.statement_derivatives.reduction_transposition import REDUCTIONS
from tcdsl.ir.build import all_of, apply, constant, index, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, Read, index_variables, is_affine_index, size_names, walk
from tcdsl.ir.fresh_names import FreshNames, cell_names, names_of
from tcdsl.ir.program import Access, Keep, Neutral, Program, Start, Statement, Tensor, Unset
from tcdsl.polyhedra.boxes import bounds, box
from tcdsl.polyhedra.spaces import named
from tcdsl.polyhedra.writes import affine_target, both, cell_map, reached, read_at, writes_each_cell_once

__all__ = ["moves", "with_compact_updates", "writes_few_cells"]


def with_compact_updates(body: Program, active: Collection[str], carried: Collection[str]) -> Program:
    """``body`` with its reductions to ``active`` tensors in this form, if they are into some of the cells only.

    Its inputs ``carried`` are others in each round.
    """
    names = names_of(body)
    ruled = body.ruled
    tensors = list(body.tensors)
    statements: list[Statement] = []
    for statement in body.statements:
        name = statement.target.tensor
        if name in active and name not in ruled and _is_compacted(statement, body, carried):
            update = _Update(statement, body.tensor(name), names)
            made = update.written_apart() if update.has_own_cells() else update.written_by_owners()
            statements.extend(made)
            tensors.extend(update.made)
        else:
            statements.append(statement)
    if len(tensors) == len(body.tensors):
        return body
    return replace(body, tensors=tuple(tensors), statements=tuple(statements))


def moves(axes: Iterable[Expr], body: Program, carried: Collection[str]) -> bool:
    """Whether data choose the place, and other data in other rounds: then the places of one round are few, as a rule.

    Of ``d[v[e]] <<= d[u[e]] + w[e]``, where each round goes through all edges, there are more points than cells.
    """
    changed = {*carried, *(each.name for each in body.tensors)}
    found = [part for axis in axes for part in walk(axis) if isinstance(part, Read)]
    return any(read.tensor in changed or any(map(size_names, read.indices)) for read in found)


def writes_few_cells(statement: Statement, body: Program, carried: Collection[str]) -> bool:
    """Whether a statement writes some of its target's cells only. Inputs ``carried`` are others in each round."""
    if not affine_target(statement):
        return moves(statement.target.indices, body, carried)
    target = body.tensor(statement.target.tensor)
    cells = cell_names(len(target.shape), (size.name for size in body.sizes))
    image = named(cell_map(statement.domain.set, statement.target.indices).range(), cells)
    return not box(cells, target.shape).is_subset(image)


def _is_compacted(statement: Statement, body: Program, carried: Collection[str]) -> bool:
    if statement.accumulate not in REDUCTIONS or not isinstance(statement.start, Keep):
        return False
    if writes_each_cell_once(statement) or not writes_few_cells(statement, body, carried):
        return False
    # What is as large as the points is what this makes.
    extents = bounds(statement.domain.set, len(statement.domain.variables))[1]
    return affine_target(statement) or tuple(extents) != body.tensor(statement.target.tensor).shape


@dataclass
class _Update:
    """One statement, and what is ``made`` beside its target."""

    statement: Statement
    target: Tensor
    names: FreshNames

    def __post_init__(self) -> None:
        self.made: list[Tensor] = []
        self._dtype = compute_dtype(self.target.dtype)

    def has_own_cells(self) -> bool:
        """Whether points that differ in a variable of the target's indices write different cells."""
        axes = self.statement.target.indices
        if self.statement.condition is not None and not all(map(is_affine_index, axes)):
            return False  # a place that no point reaches may be out of range
        several = [axis for axis in axes if index_variables(axis)]
        return all(isinstance(axis, IndexValue) for axis in several) and len(set(several)) == len(several)

    @cached_property
    def _variables(self) -> tuple[str, ...]:
        # Those that say which cell it is, and whether a point is one of those that write.
        statement = self.statement
        if statement.condition is not None and not self.has_own_cells():
            return statement.domain.variables
        mentioned = {name for axis in statement.target.indices for name in index_variables(axis)}
        return tuple(name for name in statement.domain.variables if name in mentioned)

    @cached_property
    def _points(self) -> isl.Set:
        points = self.statement.domain.set
        for place, name in reversed(list(enumerate(self.statement.domain.variables))):
            if name not in self._variables:
                points = points.project_out(isl.dim_type.set, place, 1)
        return points

    @cached_property
    def _box(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        # The place of a point, and the extents that it needs.
        lows, extents = bounds(self._points, len(self._variables))
        place = tuple(apply("sub", index(name), low) for name, low in zip(self._variables, lows, strict=True))
        return place, tuple(extents)

    def _declare(self, hint: str, dtype: str, shape: tuple[Expr, ...], label: str = "") -> Tensor:
        self.made.append(Tensor(self.names.fresh(f"{self.target.name}_{hint}"), dtype, shape, label))
        return self.made[-1]

    def _each(self, target: Tensor, indices: Sequence[Expr], start: Start, value: Expr, test: Expr | None) -> Statement:
        # A statement of all places.
        domain = Domain.from_set(self._points)
        access = Access(target.name, tuple(indices))
        oob = self.statement.oob if target.shape == self.target.shape else "check"
        return Statement(access, "assign", start, value, domain, test, oob, span=self.statement.span)

    def _reading(self, tensor: Tensor) -> Read:
        return read_at(self.statement, tensor, compute_dtype(tensor.dtype))

    def _started(self, test: Expr | None) -> tuple[Tensor, Statement]:
        start = self.statement.start
        assert isinstance(start, Keep)
        place, extents = self._box
        begun = self._declare("start", self.target.dtype, extents)
        before = replace(self.target, name=start.tensor)
        return begun, self._each(begun, place, Neutral(), self._reading(before), test)

    def written_apart(self) -> list[Statement]:
        """For cells that each have a place of their own."""
        place, extents = self._box
        test = reached(replace(self.statement, condition=None), self.target)
        begun, first = self._started(test)
        cells = self._declare("cells", self.target.dtype, extents)
        reduced = replace(
            self.statement,
            target=Access(cells.name, place),
            start=Keep(begun.name),
            condition=self._reached,
            oob="check",
        )
        value = plain_read(cells.name, place, self._dtype)
        last = self._each(self.target, self.statement.target.indices, self.statement.start, value, None)
        return [first, reduced, last]

    @property
    def _reached(self) -> Expr | None:
        return reached(self.statement, self.target)

    def written_by_owners(self) -> list[Statement]:
        """For cells that several points may share: each has the place of the last one that writes it."""
        statement = self.statement
        place, extents = self._box
        indices = statement.target.indices
        shown = self.target.label or self.target.name  # where an index is out of range
        statements: list[Statement] = []
        owner: list[Expr] = []
        for k, each in enumerate(place):
            told = self._declare(f"place_{k}", "int64", self.target.shape, shown)
            asked = self._declare(f"owner_{k}", "int64", extents)
            statements.append(self._each(told, indices, Unset(), each, statement.condition))
            statements.append(self._each(asked, place, Neutral(), self._reading(told), self._reached))
            owner.append(plain_read(asked.name, place, "int64"))
        owns = all_of(apply("eq", one, other) for one, other in zip(owner, place, strict=True))
        test = both(self._reached, owns)
        begun, first = self._started(test)
        cells = self._declare("cells", self.target.dtype, extents)
        reduced = replace(
            statement,
            target=Access(cells.name, tuple(owner)),
            start=Keep(begun.name),
            condition=self._reached,
            oob="clamp",
        )
        cleared = self._declare("cleared", self.target.dtype, self.target.shape, shown)
        nothing = constant(-0.0, self._dtype)  # adding to that changes nothing, the sign of a zero included
        empty = self._each(cleared, indices, statement.start, nothing, statement.condition)
        value = plain_read(cells.name, place, self._dtype)
        last = self._each(self.target, indices, Keep(cleared.name), value, test)
        return [*statements, first, reduced, empty, replace(last, accumulate="add")]
