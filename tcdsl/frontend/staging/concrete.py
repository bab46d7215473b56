"""Where Python asks a symbolic object for a concrete value: a number becomes a constant of the program, the rest are
errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.staging.run_time_integers import Specialize
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize

__all__ = ["concrete", "iterate", "length_of"]


_INSTEAD = "one program serves every shape; {}, or pass {} as a keyword-only argument"
_OF_INTEGERS = "use an index variable or a generator inside a statement instead of a Python loop"
_REFUSED: Mapping[type, tuple[str, str]] = {
    bool: ("as a branch", _INSTEAD.format("write a condition in a statement (`O[i] = a if c else b`)", "the choice")),
    int: ("as an integer", _INSTEAD.format(_OF_INTEGERS, "the number")),
    float: ("as a float", "use it in tensor arithmetic as it is"),
    np.ndarray: ("as a NumPy array", "use it in tensor arithmetic as it is"),
}


def concrete(value: Any, kind: type) -> NoReturn:
    """``bool(value)`` and the like: of a run-time number, by staging again; else an error."""
    _refuse(value, *_REFUSED[kind])


def _refuse(value: Any, wanted: str, hint: str) -> NoReturn:
    session = session_of(f"{wanted} of a symbolic value")
    if isinstance(value, SymbolicNumber) and value.parameters:
        raise Specialize(value.parameters)
    kind = "the cells of an array are" if isinstance(value, SymbolicArray) else "a size is"
    fact = f"{kind} not known while the function is staged, so Python cannot use it {wanted}"
    raise session.fault(DslSyntaxError, fact, hint, (f"value: {value!r}",))


def length_of(value: Any) -> int:
    """``len(value)``: only of arrays whose first extent is a constant."""
    if isinstance(value, SymbolicArray) and value.rank:
        extent = value.shape[0]
        if isinstance(extent, int):
            return extent
    _refuse(value, "as a length", "write `x.shape[0]`, which gives the size as a symbol")


def iterate(value: Any) -> Iterator[Any]:
    """``for row in value``: only over arrays whose first extent is a constant."""
    if isinstance(value, SymbolicArray) and value.rank and isinstance(value.shape[0], int):
        return (value[k] for k in range(value.shape[0]))
    if isinstance(value, SymbolicSize | SymbolicNumber):
        raise TypeError(f"{value!r} is not iterable")
    _refuse(value, "in a loop", "use an index variable in a statement: `O[i] = ... x[i] ...`")
