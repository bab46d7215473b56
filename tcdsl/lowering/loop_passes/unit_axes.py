"""Axes of one cell, written at 0: with an index variable of their own, targets are plain.

``s[i, 0] += w[0, k] * h[i, k]``, as rows and kept dimensions give it, becomes ``s[i, u] += ...`` for ``0 <= u <= 0``: a
target whose indices are its variables starts in its own loops, fuses, and shares loops with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Constant, Expr
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Program, Statement
from tcdsl.lowering.loopir.loops import Loop, Node
from tcdsl.lowering.loopir.traversal import renamed, rewritten

__all__ = ["plain_unit_axes", "without_single_steps"]


def plain_unit_axes(program: Program, names: FreshNames) -> Program:
    """``program`` with variables for the target indices 0 along axes whose extent is the constant 1."""
    zero, one = integer(0), integer(1)

    def rewritten(statement: Statement) -> Statement:
        shape = program.tensor(statement.target.tensor).shape
        points = statement.domain.set
        indices: list[Expr] = []
        for axis, extent in zip(statement.target.indices, shape, strict=True):
            if axis != zero or extent != one:
                indices.append(axis)
                continue
            name, last = names.shared(f"u{len(indices)}"), points.dim(isl.dim_type.set)
            points = points.insert_dims(isl.dim_type.set, last, 1).set_dim_name(isl.dim_type.set, last, name)
            points = points.fix_val(isl.dim_type.set, last, isl.Val(0))
            indices.append(index(name))
        if tuple(indices) == statement.target.indices:
            return statement
        target = replace(statement.target, indices=tuple(indices))
        return replace(statement, target=target, domain=Domain.from_set(points))

    return replace(program, statements=tuple(map(rewritten, program.statements)))


def without_single_steps(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` without loops of one step, so that their cells are recognized in what comes next."""

    def rule(node: Node) -> tuple[Node, ...]:
        match node:
            case Loop(start=Constant() as start, stop=Constant() as stop) if start.value + 1 == stop.value:
                return renamed(node.body, {index(node.variable): start})
            case _:
                return (node,)

    return rewritten(nodes, rule)
