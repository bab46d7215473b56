"""Costly values that all rounds of a loop have in common, computed once before it.

::

    repeat T times:                                  logs[r, s] = log(ways[r, s])
        new[s] >>= old[r] + log(ways[r, s])          repeat T times:
                                                         new[s] >>= old[r] + logs[r, s]

What calls a function of a tensor that no round changes, cell by cell, becomes a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import islpy as isl

from tcdsl.ir.build import plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Read,
    map_children,
    reads,
    substitute,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames, cell_names, names_of
from tcdsl.ir.program import AxisExtent, Program, Repeat, Statement, Tensor, map_statement, with_statements
from tcdsl.lowering.program_passes.effort import weight
from tcdsl.polyhedra.boxes import over_box

__all__ = ["with_invariant_values"]


def with_invariant_values(program: Program) -> Program:
    """``program`` with such values in front of its loops, those of loops in loops as far out as may be."""
    if not program.repeats:
        return program
    names = names_of(program)
    made: list[tuple[Tensor, Statement]] = []
    repeats = []
    for repeat in program.repeats:
        inside = replace(repeat, body=with_invariant_values(repeat.body))
        outside = _Outside(program, inside, names)
        repeats.append(outside.moved())
        made += outside.made
    if not made:
        return replace(program, repeats=tuple(repeats))
    tensors = (*program.tensors, *(tensor for tensor, _ in made))
    statements = (*program.statements, *(statement for _, statement in made))
    return with_statements(replace(program, repeats=tuple(repeats), tensors=tensors), statements)


@dataclass(slots=True)
class _Outside:
    """What moves in front of ``repeat``, a loop of ``program``."""

    program: Program
    repeat: Repeat
    names: FreshNames
    made: list[tuple[Tensor, Statement]] = field(default_factory=list)
    found: dict[Expr, Tensor] = field(default_factory=dict)

    def moved(self) -> Repeat:
        """The loop without it."""
        repeat, body = self.repeat, self.repeat.body
        if repeat.host or isinstance(repeat.count, Cast):
            return repeat  # a branch: at most one round
        statements = [map_statement(each, self._value) if self._whole(each) else each for each in body.statements]
        if not self.made:
            return repeat
        inputs = (*body.inputs, *self.found.values())
        given = (*repeat.inputs, *(tensor.name for tensor, _ in self.made))
        return replace(repeat, body=replace(body, inputs=inputs, statements=tuple(statements)), inputs=given)

    def _whole(self, statement: Statement) -> bool:
        # Whether all rounds have the same points.
        points = statement.domain.set
        for name in _numbers(self.repeat.body):
            place = points.find_dim_by_name(isl.dim_type.param, name)
            if place >= 0 and points.involves_dims(isl.dim_type.param, place, 1):
                return False
        return True

    def _value(self, expr: Expr) -> Expr:
        if isinstance(expr, Apply) and any(map(_is_costly, walk(expr))):
            main = self._main(expr)
            if main is not None:
                return self._made(expr, main)
        return map_children(expr, self._value)

    def _main(self, expr: Expr) -> Read | None:
        # The read whose cells say where the value is needed; None if it is not the same in all rounds.
        body = self.repeat.body
        given = {tensor.name: tensor for tensor in body.inputs[1:]}
        carried = {name for name, _ in body.updates}
        found = list(reads(expr))
        if not found or not all(isinstance(node, Apply | Cast | Constant | IndexValue | Read) for node in walk(expr)):
            return None
        for read in found:
            plain = all(isinstance(axis, IndexValue) for axis in read.indices)
            if (
                read.tensor not in given
                or read.tensor in carried
                or not plain
                or len(set(read.indices)) < len(read.indices)
            ):
                return None
            if any(boundary is not Boundary.SKIP for boundary in read.boundaries):
                return None
        main = max(found, key=lambda read: len(read.indices))
        extents = dict(zip(main.indices, given[main.tensor].shape, strict=True))
        for read in found:
            for axis, extent in zip(read.indices, given[read.tensor].shape, strict=True):
                if extents.get(axis) != extent:
                    return None
        return main if all(node in extents for node in walk(expr) if isinstance(node, IndexValue)) else None

    def _made(self, expr: Expr, main: Read) -> Expr:
        # The read of the tensor that holds the value.
        if compute_dtype(expr.dtype) != expr.dtype:
            return expr
        if expr not in self.found:
            body, program = self.repeat.body, self.program
            outer = dict(zip((each.name for each in body.inputs[1:]), self.repeat.inputs, strict=True))
            shape = program.tensor(outer[main.tensor]).shape
            cells = cell_names(len(shape), (size.name for size in program.sizes))
            places: dict[Expr, Expr] = {old: IndexValue(new) for old, new in zip(main.indices, cells, strict=True)}

            def rule(node: Expr) -> Expr:
                return replace(node, tensor=outer[node.tensor]) if isinstance(node, Read) else node

            name = self.names.fresh("in_all_rounds")
            value = transform(substitute(expr, places), rule)
            self.made.append((Tensor(name, expr.dtype, shape), over_box(name, cells, shape, value)))
            inside = names_of(body)
            inside.take(each.name for each in self.found.values())
            self.found[expr] = Tensor(inside.fresh("in_all_rounds"), expr.dtype, body.tensor(main.tensor).shape)
        return plain_read(self.found[expr].name, main.indices, expr.dtype)


def _is_costly(node: Expr) -> bool:
    if not isinstance(node, Apply) or (node.primitive == "pow" and isinstance(node.arguments[1], Constant)):
        return False
    return weight((replace(node, arguments=()),)) > 1


def _numbers(body: Program) -> Iterator[str]:
    # The sizes that are the number of the round, or made of it.
    changing: set[str] = set()
    for size in body.sizes:
        match size.source:
            case AxisExtent(tensor=tensor):
                if tensor == body.inputs[0].name:
                    changing.add(size.name)
            case source:
                if any(getattr(node, "name", "") in changing for node in walk(source)):
                    changing.add(size.name)
    yield from changing
