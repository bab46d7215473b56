"""What statements of a round read of a large tensor at several places that data choose, for each of their points.

::

    d_x_2[t] += d_y * u[k[t, i]]      u_read[i] = u[k[t, i]]      (in the loop forwards)
                                      d_x_2[t] += d_y * u_read[i]

That is less than all of ``u`` as a rule, where the rounds write few of its cells, and each reads other ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import islpy as isl

from tcdsl.autodiff.loop_derivatives.compact_updates import moves
from tcdsl.ir.build import apply, in_range, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Boundary,
    Expr,
    Local,
    Read,
    index_variables,
    is_affine_index,
    size_names,
    substitute,
    transform,
    walk,
)
from tcdsl.ir.program import Access, Neutral, Program, Statement, Tensor, map_statement, tensors_read
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.boxes import bounds
from tcdsl.polyhedra.spaces import named

__all__ = ["ReadsAtPoints"]


class ReadsAtPoints:
    """Reads of ``tensor``, which ``values`` makes; its inputs ``carried`` are others in each round.

    ``made`` are the tensors of what is read, with the statements that make them.
    """

    def __init__(self, values: Program, tensor: Tensor, carried: Collection[str], fresh: Callable[[str], str]) -> None:
        self._values = values
        self._tensor = tensor
        self._carried = carried
        self._fresh = fresh
        self._known = {each.name for each in (*values.inputs, *values.tensors)}
        self._sizes = {size.name for size in values.sizes}
        self._groups: dict[object, Tensor] = {}
        self.made: list[tuple[Tensor, Statement]] = []

    def rewritten(self, linear: Program) -> Program:
        """``linear`` reading that instead."""
        statements: list[Statement] = []
        for statement in linear.statements:
            if self._tensor.name in tensors_read(statement):
                statement = self._rewritten(statement)
            statements.append(statement)
        return replace(linear, statements=tuple(statements))

    def _rewritten(self, statement: Statement) -> Statement:
        def rule(node: Expr) -> Expr:
            if not isinstance(node, Read) or node.tensor != self._tensor.name:
                return node
            return self._at_points(node, statement.domain) or node

        return map_statement(statement, lambda expr: transform(expr, rule))

    def _at_points(self, read: Read, domain: Domain) -> Read | None:
        mentioned = {name for axis in read.indices for name in index_variables(axis)}
        variables = [name for name in domain.variables if name in mentioned]
        if not variables or read.fill is not None or not self._are_known(read.indices, domain):
            return None
        points = domain.set
        for position, name in reversed(list(enumerate(domain.variables))):
            if name not in mentioned:
                points = points.project_out(isl.dim_type.set, position, 1)
        lows, extents = bounds(points, len(variables))
        if any(not size_names(each) <= self._sizes for each in (*lows, *extents)):
            return None
        place = tuple(apply("sub", index(name), low) for name, low in zip(variables, lows, strict=True))
        # Statements call their variables what they like.
        common = [f"v{k}" for k in range(len(variables))]
        renaming: dict[Expr, Expr] = {index(one): index(two) for one, two in zip(variables, common, strict=True)}
        key = (tuple(substitute(axis, renaming) for axis in read.indices), Domain.from_set(named(points, common)))
        made = self._groups.get(key)
        if made is None:
            made = Tensor(self._fresh(f"{self._tensor.name}_read"), self._tensor.dtype, tuple(extents))
            try:
                store = self._store(made, place, read, points)
            except NotAffine:
                return None
            self._groups[key] = made
            self.made.append((made, store))
        return Read(made.name, place, (Boundary.SKIP,) * len(place), read.dtype)

    def _are_known(self, axes: tuple[Expr, ...], domain: Domain) -> bool:
        parts = [part for axis in axes for part in walk(axis)]
        return (
            moves(axes, self._values, self._carried)
            and not any(isinstance(part, Local) for part in parts)
            and all(part.tensor in self._known for part in parts if isinstance(part, Read))
            and all(size_names(axis) <= self._sizes for axis in axes)
            and set(domain.parameters) <= self._sizes
        )

    def _store(self, made: Tensor, place: tuple[Expr, ...], read: Read, points: isl.Set) -> Statement:
        """The statement that makes it. Nothing fails: branches that are not taken read out of range."""
        boundaries: list[Boundary] = []
        for axis, extent in zip(read.indices, self._tensor.shape, strict=True):
            inside = is_affine_index(axis)
            boundaries.append(Boundary.SKIP if inside else Boundary.CLAMP)
            points = points.intersect(condition_set(in_range(axis if inside else integer(0), extent), points))
        value = Read(read.tensor, read.indices, tuple(boundaries), compute_dtype(self._tensor.dtype))
        return Statement(Access(made.name, place), "assign", Neutral(), value, Domain.from_set(points))
