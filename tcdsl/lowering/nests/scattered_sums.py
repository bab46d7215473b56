"""Scattered sums in single and half precision: many terms that meet in one cell are added a block at a time.

``h[idx[i]] += w[i]`` adds each term to a cell that may hold millions of them already. So a block of terms goes into
cells of its own that start from zero, and what they hold then goes to the target. Blocks are long beside the number of
cells, and few terms go to the target at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tcdsl.ir.build import apply, constant, index, integer, plain_read, product_of
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local, is_affine_index
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Tensor
from tcdsl.lowering.loopir.loops import Branch, Buffer, Define, Loop, Node, Store, Update, loops_over
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import rewritten
from tcdsl.lowering.nests.blocks import Block
from tcdsl.lowering.program_passes.effort import lengths_of
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.polyhedra.linear import normalized

__all__ = ["in_scattered_blocks"]

# Terms of a block, and how many times as many as there are cells.
_TERMS, _PER_CELL = 1 << 12, 8


def in_scattered_blocks(
    nodes: Sequence[Node],
    plan: LoopOrder,
    target: str,
    tensors: dict[str, Tensor],
    names: FreshNames,
    block: Block | None,
) -> tuple[tuple[Node, ...], tuple[Buffer, ...]]:
    """The loops ``nodes`` that add to the memory ``target``, in blocks where they are long, and the memory for that.

    As they are if the statement is no such sum. Of a ``block`` of its rows, if given.
    """
    statement, tensor = plan.statement, plan.tensor
    known = all(map(is_affine_index, statement.target.indices))
    if known or statement.accumulate not in ("add", "subtract") or tensor.dtype not in ("float16", "float32"):
        return tuple(nodes), ()
    loop = nodes[0] if len(nodes) == 1 else None
    if not isinstance(loop, Loop) or loop.kind == "parallel" or loop.step != 1:
        return tuple(nodes), ()
    dtype = compute_dtype(tensor.dtype)
    length = _length(plan, loop.variable, tensors, block)
    steps = normalized(apply("sub", loop.stop, loop.start))
    many = apply("gt", steps, length)
    # Half precision would round every term.
    always = tensor.dtype == "float16"
    shape = tensor.shape if always else tuple(apply("where", many, extent, integer(0)) for extent in tensor.shape)
    sums = Buffer(names.fresh(f"sums_{tensor.name}"), dtype, shape, "temporary", ())

    def over_cells(act: Callable[[tuple[Expr, ...]], Node]) -> tuple[Node, ...]:
        variables = [names.fresh("c") for _ in tensor.shape]
        cells: list[tuple[str, Expr, Expr]] = []
        for name, extent, axis in zip(variables, tensor.shape, statement.target.indices, strict=True):
            inside = block is not None and axis == index(block.variable)
            cells.append((name, *(block.ends if block is not None and inside else (integer(0), extent))))
        return loops_over(cells, (act(tuple(map(index, variables))),))

    number, first = names.fresh("block"), names.fresh("first")
    low = apply("add", loop.start, apply("mul", index(number), length))
    start = Local(first, "int64")
    stop = apply("min", loop.stop, apply("add", start, length))
    inner = (
        Define(first, low),
        *over_cells(lambda cell: Store(sums.name, cell, constant(0, dtype))),
        replace(loop, start=start, stop=stop, body=_into(loop.body, target, sums.name)),
        *over_cells(lambda cell: Update(target, cell, "add", plain_read(sums.name, cell, dtype))),
    )
    blocks = Loop(number, integer(0), quotient_up(steps, length), 1, inner)
    return ((blocks,) if always else (Branch(many, (blocks,), (loop,)),)), (sums,)


def _length(plan: LoopOrder, variable: str, tensors: dict[str, Tensor], block: Block | None) -> Expr:
    # The steps of a block.
    cells: Expr = integer(_PER_CELL)
    for extent, axis in zip(plan.tensor.shape, plan.statement.target.indices, strict=True):
        if block is None or axis != index(block.variable):
            cells = apply("mul", cells, extent)
    blocked = {variable} if block is None else {variable, block.variable}
    others = [name for name in plan.statement.domain.variables if name not in blocked]
    terms = product_of(lengths_of(plan.statement, others, tensors))
    most = apply("max", integer(_TERMS), cells)
    return apply("max", apply("floor_div", most, apply("max", terms, integer(1))), integer(1))


def _into(nodes: Sequence[Node], target: str, sums: str) -> tuple[Node, ...]:
    def rule(node: Node) -> tuple[Node, ...]:
        return (replace(node, buffer=sums) if isinstance(node, Update) and node.buffer == target else node,)

    return rewritten(nodes, rule)
