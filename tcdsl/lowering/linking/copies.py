"""Nests that copy: a tensor into the memory that a loop changes, scalars from the end of a round to the next one."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.ir.build import index, integer, plain_read, product_of
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Local
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Buffer, Define, Loop, LoopKind, Nest, Node, Store

__all__ = ["copy_nest", "scalars_carried"]


def copy_nest(target: Buffer, source: str, names: FreshNames) -> Nest:
    """``target[...] = source[...]`` for all cells."""
    variables = [names.fresh("c") for _ in target.shape]
    cells = tuple(map(index, variables))
    nodes: tuple[Node, ...] = (Store(target.name, cells, plain_read(source, cells, compute_dtype(target.dtype))),)
    for axis in reversed(range(len(variables))):
        # Rows are long enough to be one thread's.
        kind: LoopKind = "parallel" if axis == 0 and len(variables) > 1 else "serial"
        nodes = (Loop(variables[axis], integer(0), target.shape[axis], 1, nodes, kind),)
    name = names.fresh(f"copy_{target.name}")
    return Nest(name, f"copy of {source}", nodes, product_of(target.shape))


def scalars_carried(pairs: Sequence[tuple[Buffer, str]], names: FreshNames) -> Nest:
    """``x, y = y, z`` for buffers of rank 0: all are read before any is written."""
    made = [names.fresh(f"{target.name}_next") for target, _ in pairs]
    dtypes = [compute_dtype(target.dtype) for target, _ in pairs]
    reads = [
        Define(name, plain_read(source, (), dtype))
        for name, dtype, (_, source) in zip(made, dtypes, pairs, strict=True)
    ]
    stores = [
        Store(target.name, (), Local(name, dtype)) for name, dtype, (target, _) in zip(made, dtypes, pairs, strict=True)
    ]
    title = ", ".join(target.name for target, _ in pairs)
    return Nest(names.fresh("carried"), f"{title} of the next round", (*reads, *stores), integer(len(pairs)))
