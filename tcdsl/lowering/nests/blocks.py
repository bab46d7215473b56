"""Parts of a row, whose ends are scalars: what isl knows of them, and how they get their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from tcdsl.ir.build import apply, index, size
from tcdsl.ir.expressions import Expr, Local, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Define, Node
from tcdsl.lowering.loopir.traversal import map_expressions
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.linear import has_cases

__all__ = ["Block", "block_context", "in_block", "inside_block", "with_locals", "with_parameters"]


@dataclass(frozen=True, slots=True)
class Block:
    """A part ``low <= variable < high`` of a row, both names of scalars; for parallel loops along rows."""

    variable: str
    low: str
    high: str

    @staticmethod
    def of(variable: str, names: FreshNames) -> Block:
        """A block with new names for its ends."""
        return Block(variable, names.fresh("low"), names.fresh("high"))

    @property
    def ends(self) -> tuple[Local, Local]:
        """The scalars that hold them."""
        return Local(self.low, "int64"), Local(self.high, "int64")

    def defined(self, low: Expr, length: Expr, stop: Expr) -> tuple[Node, ...]:
        """Nodes that begin the block at ``low`` and end it after ``length`` steps, or at ``stop``."""
        high = apply("min", stop, apply("add", self.ends[0], length))
        return Define(self.low, low, index=True), Define(self.high, high, index=True)


def with_parameters(context: isl.Set, names: Sequence[str]) -> isl.Set:
    """``context`` with ``names`` among its parameters."""
    for name in names:
        if context.find_dim_by_name(isl.dim_type.param, name) < 0:
            position = context.dim(isl.dim_type.param)
            context = context.add_dims(isl.dim_type.param, 1).set_dim_name(isl.dim_type.param, position, name)
    return context


def block_context(context: isl.Set, block: Block, start: Expr, stop: Expr) -> isl.Set:
    """``context``, and that a block lies between the expressions of sizes ``start`` and ``stop``."""
    context = with_parameters(context, (block.low, block.high))
    for left, right in ((start, size(block.low)), (size(block.high), stop)):
        if has_cases(left) or has_cases(right):
            continue
        try:
            context = context.intersect(condition_set(apply("le", left, right), context).params())
        except NotAffine:
            continue
    return context


def inside_block(context: isl.Set, block: Block) -> isl.Set:
    """``context`` within a loop over the block."""
    row = size(block.variable)
    for condition in (apply("ge", row, size(block.low)), apply("lt", row, size(block.high))):
        context = context.intersect(condition_set(condition, context).params())
    return context


def in_block(points: isl.Set, block: Block) -> isl.Set:
    """The ``points`` whose variable lies in the block."""
    row = index(block.variable)
    points = points.intersect(condition_set(apply("ge", row, size(block.low)), points))
    return points.intersect(condition_set(apply("lt", row, size(block.high)), points))


def with_locals(nodes: Sequence[Node], block: Block | None) -> tuple[Node, ...]:
    """``nodes`` with scalars for the ends of the block, which isl knows by name only."""
    if block is None:
        return tuple(nodes)
    ends: dict[Expr, Expr] = {index(end.name): end for end in block.ends}
    return map_expressions(nodes, lambda expr: substitute(expr, ends))
