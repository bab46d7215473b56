"""What each nest of a kernel does: operations, points, and the bytes that it needs at least.

Operations are those of the loops as they are made, lanes beyond the end of a row included. A buffer counts once for a
nest that reads or writes it, with the cells that the nest asks for or all that it has, whichever is less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tcdsl.autodiff.cost.operations import operations_of
from tcdsl.ir.dtypes import compute_dtype, is_floating, numpy_dtype
from tcdsl.ir.expressions import Apply, Read, walk
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.lowering.loopir.loops import Accumulate, Buffer, Define, Kernel, Node, Store, Update
from tcdsl.lowering.loopir.point_counts import executed_by_nest
from tcdsl.lowering.loopir.traversal import own_expressions

__all__ = ["NestWork", "work_of_nests"]


@dataclass(frozen=True, slots=True)
class NestWork:
    """What a nest does each time that it runs, on average; ``cell_bytes`` are those of its widest floating cell."""

    points: float
    operations: float
    bytes: float
    cell_bytes: int


def work_of_nests(kernel: Kernel, sizes: Mapping[str, int]) -> list[NestWork]:
    """The work of the nests of ``kernel``, in order."""
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    floating = {name for name, buffer in buffers.items() if is_floating(compute_dtype(buffer.dtype))}
    floating |= {each.name for procedure in kernel.procedures for each in procedure.parameters if _is_floating(each)}

    def measured(node: Node) -> Counter[tuple[str, str]]:
        return _work_of(node, floating)

    known = dict(sizes)
    for name, value in kernel.size_values:
        known[name] = evaluate_size(value, known)
    found = []
    for work, runs in executed_by_nest(kernel, known, measured):
        touched = [(name, count / max(1, runs)) for (kind, name), count in work.items() if kind in ("read", "write")]
        moved = [(buffers[name], count) for name, count in touched if name in buffers]
        cells = [numpy_dtype(buffer.dtype).itemsize for buffer, _ in moved if buffer.name in floating]
        found.append(
            NestWork(
                work["points", ""] / max(1, runs),
                work["operations", ""] / max(1, runs),
                sum(_bytes(buffer, count, known) for buffer, count in moved),
                max(cells, default=8),
            )
        )
    return found


def _is_floating(buffer: Buffer) -> bool:
    return is_floating(compute_dtype(buffer.dtype))


def _bytes(buffer: Buffer, accesses: float, sizes: Mapping[str, int]) -> float:
    try:
        cells = prod(max(0, evaluate_size(extent, sizes)) for extent in buffer.shape)
    except KeyError:  # as large as the number of a round
        return accesses * numpy_dtype(buffer.dtype).itemsize
    return min(accesses, cells) * numpy_dtype(buffer.dtype).itemsize


def _work_of(node: Node, floating: set[str]) -> Counter[tuple[str, str]]:
    work: Counter[tuple[str, str]] = Counter()
    for expr in own_expressions(node):
        for part in walk(expr):
            if isinstance(part, Apply):
                work["operations", ""] += len(operations_of(part))
            elif isinstance(part, Read):
                work["read", part.tensor] += 1
    match node:
        case Define():
            return work
        case Accumulate(value=value):
            work["operations", ""] += is_floating(value.dtype)
        case Store(buffer=buffer):
            work["write", buffer] += 1
        case Update(buffer=buffer):
            work["write", buffer] += 1
            work["read", buffer] += 1
            work["operations", ""] += buffer in floating
    work["points", ""] += 1
    return work
