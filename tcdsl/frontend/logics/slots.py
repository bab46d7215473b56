"""Slots: the names by which code that defines a primitive speaks of the operation's own operands.

::

    @cd
    def add_gradient(g, t1, t2, *, projections):
        g1 += g
        g2 += g

In a function with a parameter ``projections``, ``lhs t v g`` stand for the operation's result, its value and its
gradient; ``rhs1 t1 v1 g1`` for the first operand, and so on. They are parameters, or names that nobody needs to bind:
who runs the function gives them (`run_projected`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from tcdsl.frontend.arrays.arithmetic import element_of
from tcdsl.frontend.arrays.row_alignment import axis_variable
from tcdsl.frontend.logics.projections import Projections
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.surroundings.reachable import Surroundings
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Expr, IndexValue, Read, index_variables, walk

__all__ = ["PROJECTIONS", "SLOTS", "mixed_indices", "run_projected", "slots_of"]

PROJECTIONS = "projections"
"""The parameter that makes a function speak of slots."""

SLOTS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("lhs", "t", "v", "g"), 0),
        **{f"{name}{k}": k for k in (1, 2, 3) for name in ("rhs", "t", "v", "g")},
    }
)
"""The slot of each name: 0 for the result, 1, 2, 3 for the operands."""


def slots_of(names: Iterable[str]) -> frozenset[int]:
    """The slots that these names stand for."""
    return frozenset(SLOTS[name] for name in names if name in SLOTS)


class ProjectedFunction(Protocol):
    """A decorated function ready for staging, as `tcdsl.frontend.python.template.Template` is one."""

    surroundings: Surroundings
    parameters: tuple[str, ...]

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Run the rewritten function in the current session."""


def run_projected(function: ProjectedFunction, slots: Mapping[str, Any], projections: Projections) -> None:
    """Run a `@cd` function with a parameter ``projections`` in the current session.

    ``slots`` holds tensors of the program by slot name: ``v`` and ``t`` the result's value, ``g`` its gradient, ``v1``
    and ``t1`` the first operand's value, ``g1`` its gradient. Those that the function writes have to be memory.
    """
    session = session_of("a projected function")
    given: dict[str, Any] = {**slots, PROJECTIONS: projections}
    session.read(function.surroundings.read(None, {}))
    with session.within(slots=dict(slots)):
        function.run(None, **{name: given.get(name) for name in function.parameters})


def mixed_indices(
    session: Session, operand: object, names: frozenset[str], lists: Mapping[str, tuple[Expr, ...]]
) -> tuple[Expr, ...] | None:
    """The index list of ``operand``, in which the slot names ``names`` occur; ``None`` where their slots disagree.

    ``lists`` holds the index list of each slot name. ``t2 * t1 ** (t2 - 1)`` in the gradient of a primitive is
    arithmetic of whole arrays, aligned at the right, and has no slot of its own. Where that alignment and the index
    lists of its tensors' slots agree, each of its axes has one index, and these are its index list.
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
