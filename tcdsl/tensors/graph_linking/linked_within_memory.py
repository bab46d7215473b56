"""Routines whose gradients would keep more of their loops than ``tc.config(tape_memory=...)`` allows keep less.

How many states fit is known on disk afterwards: it takes the loops of the whole routine to find out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tcdsl.config import settings, tape_memory
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.locks import without_collecting
from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.calling.tape_memory import Derived, allocated_bytes, with_states_that_fit
from tcdsl.targets.cache.store import store, value_name
from tcdsl.tensors.graph_linking.asked_values import executable
from tcdsl.tensors.graph_linking.graph_linker import LinkedProgram, linking

if TYPE_CHECKING:
    from tcdsl.tensors.graph_linking.code import Code

__all__ = ["linked_within_memory"]


def linked_within_memory(code: Code) -> LinkedProgram:
    """``code`` as one program, whose gradients keep as many states of loops as there is room for."""
    first, tapes = _linked(code, 0)
    if not tapes:
        return first
    current = settings()
    place = store(Path(current.cache_dir) if current.cache_dir else None)
    name = value_name(code.name, (first.program, current.optimize, tape_memory()), "states")
    states = place.value(name)
    if states is not None:
        return _linked(code, states)[0] if states else first
    found = with_states_that_fit(_derived(first, 0), lambda count: _derived(_linked(code, count)[0], count))
    place.keep(name, found.states)
    return found.staged


@without_collecting()
def _linked(code: Code, states: int) -> tuple[LinkedProgram, bool]:
    with linking(code.name, states=states) as linker:
        code.link(linker)
        return linker.finished(), linker.tapes


def _derived(linked: LinkedProgram, states: int) -> Derived[LinkedProgram]:
    made: Executable = executable(linked.program)
    needed = allocated_bytes([made])
    return Derived(linked, states, needed, int(evaluate_size(needed, {})))
