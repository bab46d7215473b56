"""``check="nan"``: results are searched for NaN. Where there is one, the statement that made it is found.

For that the program runs once more, on what the arguments held before, with its intermediate tensors as results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tcdsl.errors import NanError, TcdslError
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.faulty_rounds import at_positions
from tcdsl.runtime.calling.nan_origins import Run, holds_nan, operands_at, origin_of

__all__ = ["NanSearch"]


class NanSearch:
    """The search in one run: made before it, of the arrays that it is about to read and to change."""

    def __init__(self, program: Program, arrays: Sequence[np.ndarray]) -> None:
        self._program = program
        self._arrays = arrays
        changed = {name for name, _ in program.updates}
        self._before = [
            array.copy() if tensor.name in changed else array
            for tensor, array in zip(program.inputs, arrays, strict=True)
        ]

    def after(
        self,
        results: Sequence[np.ndarray],
        run: Run,
        updates: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Raise `NanError` if a result or a changed argument holds NaN. Arguments are then as they were.

        ``run`` runs a program of the same inputs. ``updates`` are the changed arguments where these are new arrays.
        """
        program = self._program
        given = updates or {tensor.name: array for tensor, array in zip(program.inputs, self._arrays, strict=True)}
        changed = [(name, made, given[name]) for name, made in program.updates]
        returned = [(name, name, array) for name, array in zip(program.outputs, results, strict=True)]
        for shown, made, array in (*returned, *changed):
            if not holds_nan(array):
                continue
            array = array.copy()
            for memory, before in zip(self._arrays, self._before, strict=True):
                if memory is not before:
                    memory[...] = before
            raise self._fault(shown, made, array, run)

    def _fault(self, name: str, made: str, array: np.ndarray, run: Run) -> TcdslError:
        fact = _cell(self._program, name, array)
        found, source = origin_of(self._program, self._before, made, run)
        accept = "leave `nan` out of tc.config(check=...) to accept it"
        if found is None:
            given = dict(zip((tensor.name for tensor in self._program.inputs), self._before, strict=True))
            notes = [] if source is None else [f"{_cell(self._program, source, given[source])} already"]
            return NanError.at(fact, hint=accept, notes=tuple(notes))
        statement, target = found.statement, found.statement.target.tensor
        first = _cell(found.program, target, found.values[target])
        point, operands = operands_at(found)
        notes = [*at_positions([*found.rounds, *point.items()])]
        if found.source is not None:
            held = _cell(found.program, found.source, found.values[found.source])
            notes.append(f"{held} already, where the statement reads it")
            hint = accept
        else:
            notes.extend(operands)
            hint = f"no operand holds NaN: look for 0 / 0, inf - inf or a function out of its domain; or {accept}"
        if first != fact:
            notes.append(f"{fact}, which is computed from it")
        if statement.span is None:
            from tcdsl.ir.text.printer import format_statement

            notes.append(f"made by {format_statement(statement)}")
        return NanError.at(first, statement.span, hint, notes=tuple(notes))


def _cell(program: Program, name: str, array: np.ndarray) -> str:
    position = tuple(int(k) for k in np.argwhere(np.isnan(array))[0])
    return f"`{program.tensor(name).label or name}` holds NaN at {position}"
