"""Operands of several slots: ``t2 * t1 ** (t2 - 1)`` in the gradient of a primitive.

Such arithmetic is of whole arrays, aligned at the right, and has no slot of its own. Where that alignment and the index
lists of its tensors' slots agree, each of its axes has one index, and these are its index list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcdsl.frontend.arrays.arithmetic import element_of
from tcdsl.frontend.arrays.row_alignment import axis_variable
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Expr, IndexValue, Read, index_variables, walk

__all__ = ["mixed_indices"]


def mixed_indices(
    session: Session, operand: object, names: frozenset[str], lists: Mapping[str, tuple[Expr, ...]]
) -> tuple[Expr, ...] | None:
    """The index list of ``operand``, in which the slot names ``names`` occur; ``None`` where their slots disagree.

    ``lists`` holds the index list of each slot name.
    """
    if not isinstance(operand, PendingArray):
        return None
    given: dict[str, set[tuple[Expr, ...]]] = {}
    for name in names & lists.keys():
        tensor = session.context.slots.get(name)
        if isinstance(tensor, SymbolicTensor):
            given.setdefault(tensor.name, set()).add(lists[name])
    value, extents = element_of(operand, session)
    found: dict[str, Expr] = {}
    for node in walk(value.expr):
        if isinstance(node, Read) and node.indices:
            choices = given.get(node.tensor, set())
            if len(choices) != 1 or not _agree(node.indices, next(iter(choices)), found):
                return None
    axes = [axis_variable(len(extents) - 1 - k) for k in range(len(extents))]
    return tuple(found.get(axis, integer(0)) for axis in axes)


def _agree(indices: Sequence[Expr], slot: Sequence[Expr], found: dict[str, Expr]) -> bool:
    """Whether a read at these axes may stand for one at the indices of its slot; ``found`` says which axis is which."""
    if len(indices) != len(slot):
        return False
    for axis, index in zip(indices, slot, strict=True):
        if isinstance(axis, IndexValue):
            if found.setdefault(axis.name, index) != index:
                return False
        elif index_variables(axis) or axis != index:
            return False
    return True
