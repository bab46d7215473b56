"""Decorated functions as bytes: their names, as Python's functions, or for tools that can do that, their code."""

from __future__ import annotations

import importlib
import sys
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from tcdsl.frontend.source.function_source import read_source

if TYPE_CHECKING:
    from types import FrameType, FunctionType

__all__ = ["BoundFunctions", "reduced"]

# They write functions that other processes cannot import by value.
_BY_VALUE = ("cloudpickle", "dill")


class BoundFunctions(dict[tuple[int, int], Any]):
    """The decorated methods of an instance, by the addresses of both, which mean nothing to copies of the instance."""

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundFunctions, ()


def reduced(function: Any) -> tuple[Any, ...]:
    """What ``function.__reduce__()`` gives. ``PicklingError`` for what its name does not lead to."""
    if function.receiver is not None:
        return getattr, (function.receiver, function.function.__name__)
    place = function.function.__module__, function.function.__qualname__
    try:
        found = _by_name(*place)
    except (ImportError, AttributeError, ValueError):
        found = None
    by_value = _is_by_value()
    if found is function and not (by_value and place[0] == "__main__"):
        return _by_name, place
    if by_value:
        return _decorated, (
            type(function),
            function.function,
            function.in_place,
            function.oob,
            function.decorators,
            function.rules,
        )
    # What `exec` has run need not be of any module.
    fact = f"{function!r} cannot be pickled: the name {'.'.join(filter(None, place))} does not lead to it"
    raise PicklingError(f"{fact}; decorate a function of a module or of a class there, or use cloudpickle")


def _is_by_value() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _BY_VALUE:
            return True
        frame = frame.f_back
    return False


def _by_name(module: str, qualname: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _decorated(
    kind: type, function: FunctionType, in_place: bool, oob: str, decorators: tuple[str, ...], rules: dict[str, Any]
) -> Any:
    made = kind(function, in_place, oob, decorators=decorators)
    made.rules = rules
    # Its decorators were looked at where it was decorated; their names need not mean anything here.
    made.source = read_source(function)
    return made
