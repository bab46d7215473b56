"""Run functions on arrays whose axes are batch, output and input axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcdsl.frontend.staging.session import Session, materialized
from tcdsl.frontend.symbols.symbols import SymbolicArray
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.rows.ranks import RowRanks
from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.calling.entries import Traced
from tcdsl.runtime.calling.results import returned
from tcdsl.runtime.calls.staged import StagedFunction

__all__ = ["Rowed", "rowed", "run", "staged"]


class Rowed:
    """An array and its rows: ``rowed(x, batch=1, input=1)``."""

    def __init__(self, array: Any, batch: int = 0, input: int = 0) -> None:
        self.array = np.asarray(array)
        if self.array.dtype != np.int64:
            self.array = self.array.astype(float)
        self.rows = RowRanks(batch, self.array.ndim - batch - input, input)


rowed = Rowed


class Staging(StagedFunction):
    """``function`` on arrays of these rows. ``found`` are the rows of the results of the last staging."""

    def __init__(self, function: Callable[..., Any], rows: Sequence[RowRanks], memory: bool) -> None:
        super().__init__()
        self._function = function
        self._rows = rows
        self._memory = memory
        self.signature = Signature(function, "f")
        self.found: list[RowRanks] = []

    @property
    def title(self) -> str:
        return "f"

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        for value, rows in zip(positional, self._rows, strict=True):
            value.rows = rows
            value.memory = self._memory
        names = [value.name for value in positional]
        result = self._function(*positional, **configuration)
        results = result if isinstance(result, tuple) else (result,)
        results = tuple(materialized(each, "result") for each in results if each is not None)
        self.found = [each.rows for each in results if isinstance(each, SymbolicArray)]
        outputs, structure = returned(session, results, "f")
        updates = [(name, value.name) for name, value in zip(names, positional, strict=True) if value.name != name]
        return Traced(session.builder.program(outputs, updates), structure)


def staged(function: Callable[..., Any], *arguments: Rowed, memory: bool = False) -> Staging:
    """The staging of ``function`` for arguments of these rows."""
    return Staging(function, [argument.rows for argument in arguments], memory)


def run(function: Callable[..., Any], *arguments: Any, memory: bool = False, interpreted: bool = False) -> list[Rowed]:
    """The results of ``function`` on arrays with rows (`rowed`), each with the rows that it has.

    With ``memory`` the function is a `@cd` function, which changes its arguments. With ``interpreted`` nothing is
    compiled.
    """
    given = [each if isinstance(each, Rowed) else Rowed(each) for each in arguments]
    staging = staged(function, *given, memory=memory)
    if interpreted:
        entry, arrays = staging.entry(staging.signature.call([each.array for each in given], {}))
        results = interpret(entry.executable.program, arrays).outputs
    else:
        results = staging.run(staging.signature, [each.array for each in given], {})
    made = [Rowed(result) for result in results]
    for result, rows in zip(made, staging.found, strict=True):
        assert rows.total == result.array.ndim
        result.rows = rows
    return made
