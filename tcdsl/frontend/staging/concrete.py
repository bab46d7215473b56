"""Where Python asks a symbolic object for a concrete value: a number becomes a constant of the program, the rest are
errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.staging.run_time_integers import Specialize
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize

__all__ = ["array_of", "integer_of", "iterate", "length_of", "number_of", "truth_of"]


def _refuse(value: Any, wanted: str, hint: str) -> NoReturn:
    session = session_of(f"{wanted} of a symbolic value")
    if isinstance(value, SymbolicNumber) and value.parameters:
        raise Specialize(value.parameters)
    kind = "the cells of an array are" if isinstance(value, SymbolicArray) else "a size is"
    error: TcdslError = session.fault(
        DslSyntaxError,
        f"{kind} not known while the function is staged, so Python cannot use it {wanted}",
        hint,
        (f"value: {value!r}",),
    )
    raise error


def _refusing(wanted: str, hint: str) -> Callable[[Any], NoReturn]:
    return lambda value: _refuse(value, wanted, hint)


#: ``bool(value)``: for a run-time number, by staging again; else an error.
truth_of = _refusing(
    "as a branch",
    "one program serves every shape; write a condition in a statement (`O[i] = a if c else b`), or pass the choice "
    "as a keyword-only argument",
)
#: ``int(value)`` or ``range(value)``.
integer_of = _refusing(
    "as an integer",
    "one program serves every shape; use an index variable or a generator inside a statement instead of a Python "
    "loop, or pass the number as a keyword-only argument",
)
#: ``float(value)``, and ``np.asarray(value)``.
number_of = _refusing("as a float", "use it in tensor arithmetic as it is")
array_of = _refusing("as a NumPy array", "use it in tensor arithmetic as it is")


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
