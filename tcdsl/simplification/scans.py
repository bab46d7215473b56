"""Sums each of which has the terms of the one before, and some more: running totals, maxima, products.

::

    t[i] += x[j], j <= i      t[i] is t[i - 1] and the terms with j = i
    d[j] += g[i], j <= i      d[j] is d[j + 1] and the terms with i = j

Whoever computes the cells one after the other takes each term once. isl says whether terms only join, and which do.
Nothing is ever taken away from a sum again: the difference of infinities would be NaN. Where data say where the terms
of a cell begin or end, they join those of the cell before as long as the data stay the same, and else start anew:

::

    t[i] += x[j], first[i] <= j <= i      t[i] is t[i - 1] and x[i] where first[i] is first[i - 1]
    t[i] += x[j], i // 8 * 8 <= j <= i    t[i] is t[i - 1] and x[i] where i % 8 is not 0
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.conjunctions import conjuncts
from tcdsl.ir.expressions import Expr, IndexValue, index_variables, substitute
from tcdsl.ir.program import Statement
from tcdsl.ir.text.declined import Declined
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.spaces import arranged, dimension_names
from tcdsl.simplification.data_ranges import data_ends

__all__ = ["Scan", "growing", "is_linked", "scan_of", "scan_or_why"]


@dataclass(frozen=True, slots=True)
class Scan:
    """The cells along ``variable``, from the last one with ``descending``, and the points whose terms join at each.

    Where one of ``ends``, which data say of each cell, is another one than that of the cell before, all terms are new;
    so they are in the cells of ``restarts``, of which no two are neighbours.
    """

    variable: str
    descending: bool
    points: isl.Set
    restarts: isl.Set
    ends: tuple[Expr, ...] = ()

    @property
    def step(self) -> int:
        """From a cell to the next one."""
        return -1 if self.descending else 1

    def again(self, points: isl.Set) -> list[tuple[isl.Set, Expr | None]]:
        """The ``points`` whose terms are taken anew though cells before have them, and what data must say for that."""
        former = points.subtract(self.points)
        restarts = arranged(self.restarts, dimension_names(points))
        found = [(former.intersect(restarts), None), (former.subtract(restarts), self.changed())]
        return found if self.ends else found[:1]

    def changed(self) -> Expr | None:
        """Whether data say other ends of a cell than of the one before, if they say any."""
        before: dict[Expr, Expr] = {index(self.variable): apply("sub", index(self.variable), integer(self.step))}
        tests = [apply("ne", end, substitute(end, before)) for end in self.ends]
        return reduce(partial(apply, "or_"), tests) if tests else None


def scan_of(statement: Statement, extents: Sequence[Expr]) -> Scan | None:
    """How the cells of a statement go on from each other, if they do; ``extents`` are those of its target.

    Along one axis, the last one that it is: the terms depend on the index in their conditions alone, which link it with
    what is summed over.
    """
    return scan_or_why(statement, extents) or None


def scan_or_why(statement: Statement, extents: Sequence[Expr]) -> Scan | Declined | None:
    """What `scan_of` gives, or why cells that share terms with the one before do not go on from it."""
    indices = statement.target.indices
    cells = [axis.name for axis in indices if isinstance(axis, IndexValue)]
    if len(set(cells)) < len(indices) or len(cells) == len(statement.domain.variables) or statement.unique:
        return None
    if statement.accumulate == "assign" or ACCUMULATORS[statement.accumulate].ordered:
        return None
    points, value = statement.domain.set, index_variables(statement.value)
    apart: Declined | None = None
    for name, extent in reversed(list(zip(cells, extents, strict=True))):
        ends = None if name in value else _ends(statement, name, cells)
        if ends is None:
            if apart is None:
                apart = Declined("its terms depend on {}" if name in value else _OTHER_DATA, (IndexValue(name),))
            continue
        try:
            inside = box([name], [extent], points)
        except NotAffine:
            continue
        found = growing(points, name, cells, inside)
        if isinstance(found, Scan):
            return replace(found, ends=ends)
        apart = apart if found is None else found
    return apart


def _ends(statement: Statement, name: str, cells: Collection[str]) -> tuple[Expr, ...] | None:
    # What data say of each cell along ``name``; None if it is more than where the terms begin and end.
    if statement.condition is None or name not in index_variables(statement.condition):
        return ()
    found: dict[Expr, None] = {}
    for each in conjuncts(statement.condition):
        if name in index_variables(each):
            inner = (other for other in statement.domain.variables if other not in cells)
            end = next((end.value for variable in inner for end in data_ends(each, variable)), None)
            if end is None or not index_variables(end) <= set(cells):
                return None
            found[end] = None
    return tuple(found)


_OTHER_DATA = "data of {} say more of its terms than where they begin and end"


def growing(points: isl.Set, name: str, cells: Collection[str], inside: isl.Set) -> Scan | Declined | None:
    """The scan along ``name``, one of ``cells``, if from one of its values ``inside`` to the next points only join, or
    why there is none though terms depend on ``name``. Now and then all of them may be other ones.
    """
    if not is_linked(points, name, cells):
        return None
    found = None
    for step in (1, -1):
        before = _moved(points, name, step)
        left = before.intersect(inside)
        behind, restarts = (arranged(each, tuple(cells)) for each in (left, left.subtract(points)))
        if restarts.is_empty():
            return Scan(name, step < 0, points.subtract(before).coalesce(), restarts)
        # Each has terms, none is the neighbour of another one, and not all are restarts.
        apart = restarts.is_disjoint(_moved(restarts, name, step)) and not behind.is_subset(restarts)
        if found is None and apart and restarts.is_subset(arranged(points, tuple(cells))):
            found = Scan(name, step < 0, points.subtract(before).coalesce(), restarts.coalesce())
    if found is not None:
        return found
    return Declined("from one {} to the next some terms leave, which nothing takes away again", (IndexValue(name),))


def is_linked(points: isl.Set, name: str, cells: Collection[str]) -> bool:
    """Whether a condition is on the variable and on one that is summed over."""
    names = dimension_names(points)
    own = names.index(name)
    summed = [k for k, other in enumerate(names) if other not in cells]
    return any(
        constraint.involves_dims(isl.dim_type.set, own, 1)
        and any(constraint.involves_dims(isl.dim_type.set, k, 1) for k in summed)
        for basic in points.get_basic_sets()
        for constraint in basic.get_constraints()
    )


def _moved(points: isl.Set, name: str, step: int) -> isl.Set:
    names = dimension_names(points)
    space = isl.LocalSpace.from_space(points.get_space())
    moved = isl.Map.from_domain(isl.Set.universe(points.get_space()))
    for k, each in enumerate(names):
        column = isl.Aff.var_on_domain(space, isl.dim_type.set, k)
        moved = moved.flat_range_product(isl.Map.from_aff(column.add_constant_val(step) if each == name else column))
    found = points.apply(moved)
    for k, each in enumerate(names):
        found = found.set_dim_name(isl.dim_type.set, k, each)
    return found
