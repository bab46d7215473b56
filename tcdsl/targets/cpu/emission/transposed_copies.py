"""Copies of what lies along rows to where it lies across them, a square of vectors at a time.

::

    for j in range(first, last):                       rows = [x[j + k, i : i + 16] for k in range(16)]
        for i in range(first1, last1):                 in four steps, halves of each two rows change places
            tile[i, j] = x[j, i]                       tile[i + k, j : j + 16] = rows[k] for all k

Single cells would be stored one by one, which takes many times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Apply, Expr, IndexValue, Read
from tcdsl.lowering.loopir.loops import Loop, Store
from tcdsl.lowering.loopir.traversal import scalars_of
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import BufferKind

__all__ = ["TransposedCopy", "transposed", "transposed_copy"]

_TYPES = frozenset(("float32", "float64", "int32", "int64"))


@dataclass(frozen=True, slots=True)
class TransposedCopy:
    """``target = source`` in two loops: the cells of the ``source`` lie side by side along one variable, those of the
    ``target`` along the other one; each takes ``size`` bytes.
    """

    inner: Loop
    target: Store
    source: Read
    along_source: str
    along_target: str
    size: int


def transposed_copy(loop: Loop, kind_of: Callable[[str], BufferKind]) -> TransposedCopy | None:
    """What is known of ``loop``, if it is such a copy; ``kind_of`` says what buffers are."""
    match loop.body:
        case (Loop(body=(Store(value=Read() as source) as target,)) as inner,):
            pass
        case _:
            return None
    outer, name = loop.variable, inner.variable
    if not (_is_plain(loop) and _is_plain(inner)) or outer in scalars_of(inner.start) | scalars_of(inner.stop):
        return None
    written, read = kind_of(target.buffer), kind_of(source.tensor)
    if written.slot == read.slot or written.dtype != read.dtype or written.dtype not in _TYPES:
        return None
    if any(kind.checked or not kind.contiguous for kind in (written, read)):
        return None
    for along, across in ((outer, name), (name, outer)):
        if _lies_along(source.indices, along, across) and _lies_along(target.indices, across, along):
            return TransposedCopy(inner, target, source, along, across, numpy_dtype(read.dtype).itemsize)
    return None


def _is_plain(loop: Loop) -> bool:
    return loop.step == 1 and loop.kind != "vector" and not (loop.rounds or loop.seldom or loop.condition)


def _lies_along(indices: Sequence[Expr], along: str, across: str) -> bool:
    if not indices:
        return False
    *rows, last = indices
    around = frozenset[str]().union(*map(scalars_of, rows))
    return across in around and along not in around and across not in scalars_of(last) and _is_next(last, along)


def _is_next(place: Expr, name: str) -> bool:
    # Whether it counts as the variable does.
    match place:
        case IndexValue(name=found):
            return found == name
        case Apply(primitive="add" | "sub", arguments=(left, right)) if name not in scalars_of(right):
            return _is_next(left, name)
        case Apply(primitive="add", arguments=(left, right)) if name not in scalars_of(left):
            return _is_next(right, name)
        case _:
            return False


def transposed(builder: ir.Builder, rows: Sequence[ir.Operand]) -> list[ir.Operand]:
    """Vectors with as many lanes as there are of them, lanes and vectors exchanged."""
    count = len(rows)
    made = list(rows)
    step = count // 2
    while step:
        for first, second in _pairs(count, step):
            lanes = range(count)
            low = [lane + (0 if not lane & step else count - step) for lane in lanes]
            high = [lane + (step if not lane & step else count) for lane in lanes]
            one, other = made[first], made[second]
            made[first], made[second] = builder.shuffled(one, other, low), builder.shuffled(one, other, high)
        step //= 2
    return made


def _pairs(count: int, step: int) -> Iterator[tuple[int, int]]:
    return ((first, first + step) for first in range(count) if not first & step)
