"""``check="nan"``: results are searched for NaN. Where there is one, the statement that made it is found.

For that the program runs once more, on what the arguments held before, with its intermediate tensors as results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tcdsl.errors import NanError, TcdslError
from tcdsl.ir.build import apply, integer
from tcdsl.ir.dtypes import is_floating, numpy_dtype
from tcdsl.ir.interpreter.index_faults import at_position
from tcdsl.ir.program import BRANCH, Program, Repeat, Statement, tensors_read
from tcdsl.ir.sizes.size_binding import evaluate_size

__all__ = ["NanSearch"]

# Tensors that are larger, and larger than all that goes in and out, are not looked at: some are never stored.
_ALWAYS_STORED = 1 << 28
_MOST_ROUNDS = 1 << 40


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
        sizes: Mapping[str, int],
        run: Callable[[Program, Sequence[np.ndarray]], Sequence[np.ndarray]],
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
            if not _holds_nan(array):
                continue
            fact = self._cell(shown, array)
            for memory, before in zip(self._arrays, self._before, strict=True):
                if memory is not before:
                    memory[...] = before
            raise self._fault(fact, shown, made, sizes, run)

    def _cell(self, name: str, array: np.ndarray) -> str:
        position = tuple(int(k) for k in np.argwhere(np.isnan(array))[0])
        return f"`{self._program.tensor(name).label or name}` holds NaN at {position}"

    def _fault(
        self,
        fact: str,
        shown: str,
        made: str,
        sizes: Mapping[str, int],
        run: Callable[[Program, Sequence[np.ndarray]], Sequence[np.ndarray]],
    ) -> TcdslError:
        stored = self._stored(made, sizes)
        values = {tensor.name: array for tensor, array in zip(self._program.inputs, self._before, strict=True)}
        values.update(zip(stored, run(replace(self._program, outputs=stored, updates=()), self._before), strict=True))
        statement, source = self._origin(made, values)
        loop = next((each for each in self._program.repeats if made in each.results), None)
        if loop is not None:
            hint = "leave `nan` out of tc.config(check=...) to accept it"
            note = "a round of this loop has made it, or was given it"
            if loop.number == BRANCH:
                note = "an arm of this branch has made it, or was given it"
            else:
                note = f"{note}: {at_position(loop.number, self._first_round(loop, made, run))}"
            return NanError.at(fact, loop.span, hint, notes=(note,))
        notes: list[str] = []
        hint = "leave `nan` out of tc.config(check=...) to accept it"
        if source is not None:
            notes.append(f"{self._cell(source, values[source])} already, where the statement reads it")
        else:
            hint = f"no operand holds NaN: look for 0 / 0, inf - inf or a function out of its domain; or {hint}"
        if statement is None:
            return NanError.at(fact, hint=hint, notes=tuple(notes))
        target = statement.target.tensor
        if target not in (shown, made):
            notes.append(f"{fact}, which is computed from it")
            fact = self._cell(target, values[target])
        if statement.span is None:
            from tcdsl.ir.text.printer import format_statement

            notes.append(f"made by {format_statement(statement)}")
        return NanError.at(fact, statement.span, hint, notes=tuple(notes))

    def _first_round(
        self, loop: Repeat, made: str, run: Callable[[Program, Sequence[np.ndarray]], Sequence[np.ndarray]]
    ) -> int:
        # The round after which the result holds NaN, found by running fewer rounds: NaN stays NaN.
        def is_bad(rounds: int) -> bool:
            fewer = replace(loop, count=apply("min", loop.count, integer(rounds)))
            repeats = tuple(fewer if each is loop else each for each in self._program.repeats)
            program = replace(self._program, repeats=repeats, outputs=(made,), updates=())
            return _holds_nan(run(program, self._before)[0])

        most = 1
        while not is_bad(most) and most < _MOST_ROUNDS:
            most *= 2
        least = most // 2
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if is_bad(middle) else (middle, most)
        return most - 1

    def _stored(self, made: str, sizes: Mapping[str, int]) -> tuple[str, ...]:
        # The tensors to look at: floating ones that are not larger than what is stored anyway.
        most = max(_ALWAYS_STORED, *(array.nbytes for array in self._arrays), 0)
        names = dict.fromkeys([made])
        for tensor in self._program.tensors:
            cells = [max(0, int(evaluate_size(extent, sizes))) for extent in tensor.shape]
            if is_floating(tensor.dtype) and np.prod(cells, dtype=float) * numpy_dtype(tensor.dtype).itemsize <= most:
                names[tensor.name] = None
        return tuple(names)

    def _origin(self, name: str, values: Mapping[str, np.ndarray]) -> tuple[Statement | None, str | None]:
        # From the result back to where NaN begins: a statement, and the argument that it has it from, if it has.
        made = {statement.target.tensor: statement for statement in self._program.statements}
        order = {each: k for k, each in enumerate(made)}
        statement = made.get(name)
        while statement is not None:
            read = [each for each in tensors_read(statement) if each in values and _holds_nan(values[each])]
            if not read:
                return statement, None
            first = min(read, key=lambda each: order.get(each, -1))
            if first not in made:
                return statement, first
            statement = made[first]
        return None, name if name in values else None


def _holds_nan(array: np.ndarray) -> bool:
    return is_floating(str(array.dtype)) and bool(np.isnan(array).any())
