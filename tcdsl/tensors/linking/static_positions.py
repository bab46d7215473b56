"""Reads at static indices, whose range is known before a run: they need no check while it runs.

A program with a check that may fail computes everything that it writes aside, and copies it at the end. `StaticIndex`
refuses numbers out of range, so ``data[batch_n]`` alone does not make a program such a one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcdsl.ir.expressions import Boundary, Cast, Constant, Expr, Read, is_affine_index, transform
from tcdsl.ir.program import Program, Statement, map_statement

__all__ = ["without_checks"]


def without_checks(program: Program, extents: Mapping[str, int]) -> Program:
    """``program`` without checks of the inputs in ``extents``: names, and what each input is at least 0 and below of.

    Where an axis is shorter than that the check stays.
    """
    if not extents:
        return program
    shapes = {tensor.name: tensor.shape for tensor in (*program.inputs, *program.tensors)}

    def within(index: Expr, axis: Expr) -> bool:
        while isinstance(index, Cast):
            index = index.operand
        known = isinstance(index, Read) and not index.indices and index.tensor in extents
        return known and isinstance(axis, Constant) and int(axis.value) >= extents[index.tensor]  # type: ignore[union-attr]

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or Boundary.CHECK not in node.boundaries:
            return node
        axes = zip(node.indices, node.boundaries, shapes[node.tensor], strict=True)
        boundaries = tuple(
            Boundary.CLAMP if boundary is Boundary.CHECK and within(index, axis) else boundary
            for index, boundary, axis in axes
        )
        return replace(node, boundaries=boundaries)

    def changed(statement: Statement) -> Statement:
        made = map_statement(statement, lambda expr: transform(expr, rule))
        target = made.target
        data = [
            (index, axis)
            for index, axis in zip(target.indices, shapes[target.tensor], strict=True)
            if not is_affine_index(index)
        ]
        if data and made.oob == "check" and all(within(index, axis) for index, axis in data):
            made = replace(made, oob="clamp")
        return made

    return replace(program, statements=tuple(map(changed, program.statements)))
