"""Routines: code linked into one compiled function.

::

    step = tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.1))
    for epoch in range(100):
        step.run(learning_rate=0.1 * (1 - epoch / 100))
    print(loss.value)

A run does forward pass, backward pass and update without Python in between, and allocates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.ir.program import Program
from tcdsl.runtime.calling.execution import BoundProgram
from tcdsl.runtime.explanation import Explanation
from tcdsl.tensors.functions.parameters import by_label
from tcdsl.tensors.graph_linking.asked_values import executable, read_memory
from tcdsl.tensors.graph_linking.code import Code, sequence
from tcdsl.tensors.graph_linking.linked_within_memory import linked_within_memory
from tcdsl.tensors.graph_linking.static_indices import StaticIndex
from tcdsl.tensors.graphs.initialization import Drawn
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory, tick
from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    from tcdsl.runtime.displays.tables import Table
    from tcdsl.runtime.profiles.profile import Profile

__all__ = ["Routine", "compile_code"]


class Routine:
    """One compiled function for a whole step. ``run()`` runs it on the memory of its tensors.

    ``run(learning_rate=0.05, batch_n=3)`` sets numbers and static indices by name; they stay set. ``program`` is the
    program, and ``explain`` shows the stages of its compilation.
    """

    @user_facing
    def __init__(self, code: Code) -> None:
        if not isinstance(code, Code):
            raise fault(ConfigurationError, f"no routine can be made of {code!r}", "write `tc.compile(code)`")
        self.code = code
        self._bound: BoundProgram | None = None
        self._numbers: dict[Setting, np.ndarray] = {}
        self._indices: list[StaticIndex] = []
        #: The program with the memory behind it.
        self.linked = linked_within_memory(code)
        self._given = tuple(each for each in self.linked.inputs if isinstance(each, TensorMemory))
        #: What a run draws anew.
        self._keys = [each for each in self._given if isinstance(each.owner.initial, Drawn)]
        for each in self.linked.inputs:
            if isinstance(each, Setting):
                self._numbers[each] = each.array()
            elif isinstance(each.owner, StaticIndex):
                self._indices.append(each.owner)
        # What a run sets by each name, and the memory of what is no tensor.
        self._named: dict[str, list[tuple[Setting | StaticIndex, np.ndarray | None]]] = {}
        for setting, array in self._numbers.items():
            self._named.setdefault(setting.name, []).append((setting, array))
        for index in self._indices:
            self._named.setdefault(index.label, []).append((index, None))

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a routine", name, self)

    @property
    def program(self) -> Program:
        """The `tcdsl.ir.program.Program` of the whole step."""
        return self.linked.program

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors that its code keeps from run to run, such as momenta, by label: ``v.w`` for ``v`` of ``w``.

        Set them to zero to start anew: ``for each in step.state.values(): each.value = 0``.
        """
        owners = dict.fromkeys(buffer.owner for buffer in (*self._given, *self.linked.written))
        kept = {id(made) for owner in owners for states in owner.states.values() for made in states.values()}
        return by_label([owner for owner in owners if id(owner) in kept])

    def _arrays(self) -> list[np.ndarray]:
        # All memory is there before anything runs, so that an error leaves everything as it was.
        return [self._numbers[each] if isinstance(each, Setting) else read_memory(each) for each in self.linked.inputs]

    def _bind(self) -> BoundProgram:
        outputs = [buffer.allocated() for buffer in self.linked.outputs]
        return executable(self.program).bind(self._arrays(), outputs)

    @user_facing
    def compile(self) -> Routine:
        """Compile now rather than at the first run; returns the routine itself."""
        if self._bound is None:
            self._bound = self._bind()
        return self

    @user_facing
    def run(self, **numbers: Any) -> None:
        """Run once. Keywords set the numbers and static indices of that name before, from here on.

        Raises `ConfigurationError` for an unknown name or a tensor that has no value yet, `DataIndexError` for an index
        out of range; memory is then as it was.
        """
        if numbers:
            self._set(numbers)
        bound = self._bound
        if bound is None:
            bound = self._bound = self._bind()
        for key in self._keys:
            key.drawn()
        bound()
        now = tick()
        for buffer in self.linked.written:
            buffer.clock = now

    __call__ = run

    def _set(self, numbers: Mapping[str, Any]) -> None:
        # All are checked before any is set.
        for name in numbers:
            if name not in self._named:
                known = ", ".join(self._named) or "none"
                raise fault(
                    ConfigurationError,
                    f"this routine has no number `{name}`",
                    "they are the keyword arguments of @cd functions that are numbers, and static indices",
                    notes=(f"numbers that a run sets: {known}",),
                )
        given = [(*found, found[0].checked(number)) for name, number in numbers.items() for found in self._named[name]]
        for each, array, number in given:
            if array is not None:
                array[()] = number
            elif isinstance(each, StaticIndex):
                each.set(number)

    @user_facing
    def explain(self, stage: str = "ir") -> Explanation:
        """One stage of the compilation as text: ``ir``, ``passes``, ``schedule``, ``loops`` or ``python``."""
        from tcdsl.runtime.explanation import explain_program

        return explain_program(executable(self.program), stage)

    @user_facing
    def profile(self) -> Profile:
        """Where the time of a run goes, as `tcdsl.runtime.inspection.Inspected.profile` says it. No memory changes."""
        from tcdsl.runtime.profiles.profile import profile_of

        return profile_of(executable(self.program), self._arrays(), self.code.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Routine, (self.code,), {setting: array.item() for setting, array in self._numbers.items()}

    def __setstate__(self, numbers: Mapping[Setting, Any]) -> None:
        for setting, number in numbers.items():
            self._numbers[setting][()] = number

    def __copy__(self) -> Routine:
        return self

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name != "linked"]

    def table(self) -> Table:
        """What a run reads and writes, and the numbers that it takes by name."""
        from tcdsl.runtime.displays.tables import Table

        written = {id(buffer) for buffer in self.linked.written}
        memory = dict.fromkeys((*self._given, *self.linked.written))
        rows = [
            ("changes" if id(each) in written else "reads", each.label, str(each.owner.rows), each.owner.element_type)
            for each in memory
        ]
        rows += [("number", each.name, "", str(self._numbers[each])) for each in self._numbers]
        rows += [("index", each.label, "", "") for each in self._indices]
        title = f"routine {self.code.name}"
        return Table(title, ("", "name", "shape", "type or value"), rows, left=frozenset(range(4)))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __rich__(self) -> Any:
        return self.table().__rich__()

    def __str__(self) -> str:
        from tcdsl.ir.text.printer import format_program

        return format_program(self.program)

    def __repr__(self) -> str:
        changed = ", ".join(buffer.label for buffer in self.linked.written)
        return f"<routine {self.code.name}: writes {changed}>"


@user_facing
def compile_code(*parts: Any) -> Routine:
    """``step = tc.compile(grad_update(loss), sgd(p, learning_rate=0.1))``: one compiled function for all of it.

    Parts are code, and tensors whose values each run leaves as well, or lists of these. They are linked in this order:
    ``tc.compile(scores, grad_update(loss), update)`` leaves the scores before the update. `ConfigurationError` for
    anything else.
    """
    return Routine(sequence(parts))
