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

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from tcdsl.frontend.logics.projections import Projections
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.staging.surroundings import Surroundings

__all__ = ["PROJECTIONS", "SLOTS", "run_projected", "slots_of"]

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

    filename: str
    surroundings: Surroundings
    parameters: tuple[str, ...]

    def run(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the rewritten function in the current session."""


def run_projected(function: ProjectedFunction, slots: Mapping[str, Any], projections: Projections) -> None:
    """Run a `@cd` function with a parameter ``projections`` in the current session.

    ``slots`` holds tensors of the program by slot name: ``v`` and ``t`` the result's value, ``g`` its gradient, ``v1``
    and ``t1`` the first operand's value, ``g1`` its gradient. Those that the function writes have to be memory.
    """
    session = session_of("a projected function")
    given: dict[str, Any] = {**slots, PROJECTIONS: projections}
    session.filenames.add(function.filename)
    session.readings.extend(function.surroundings.read(None))
    with session.within(slots=dict(slots)):
        function.run(**{name: given.get(name) for name in function.parameters})
