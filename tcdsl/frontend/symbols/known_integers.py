"""Integers of Python that remember where they are from: loops over them run in the program.

::

    @op
    def power(A, v, steps):             # in tc.grad(lambda A: power(A, v, 200)[0]) `steps` is an integer of Python's,
        for _ in range(steps):          # but where `power` is called by itself it is a number of the call
            v = A @ v
        return v
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["KnownInteger", "known", "number_kind"]


def _counts(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _closed(operation: Callable[[int, int], int]) -> tuple[Any, Any]:
    # An operator on integers, from both sides.
    def forward(self: KnownInteger, other: Any) -> Any:
        return KnownInteger(operation(int(self), int(other))) if _counts(other) else NotImplemented

    def backward(self: KnownInteger, other: Any) -> Any:
        return KnownInteger(operation(int(other), int(self))) if _counts(other) else NotImplemented

    return forward, backward


class KnownInteger(int):
    """A size, or a number that a decorated function is given, whose value is known while the function is staged.

    So is what is computed from it and from integers. In all else it is Python's integer.
    """

    __slots__ = ()

    __add__, __radd__ = _closed(operator.add)
    __sub__, __rsub__ = _closed(operator.sub)
    __mul__, __rmul__ = _closed(operator.mul)
    __floordiv__, __rfloordiv__ = _closed(operator.floordiv)
    __mod__, __rmod__ = _closed(operator.mod)

    def __neg__(self) -> KnownInteger:
        return KnownInteger(-int(self))

    def __abs__(self) -> KnownInteger:
        return KnownInteger(abs(int(self)))

    def __reduce__(self) -> Any:
        return int, (int(self),)


def known(given: Any) -> Any:
    """What a decorated function is given, among it integers whose loops run."""
    return KnownInteger(given) if _counts(given) else given


def number_kind(number: float) -> str:
    """The class of Python's own that a number belongs to: ``bool``, ``int`` or ``float``."""
    return next(kind.__name__ for kind in (bool, int, float) if isinstance(number, kind))
