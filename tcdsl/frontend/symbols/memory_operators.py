"""Stores that plain Python spells with operators: ``x[1:] = 0`` and ``x *= 2`` in a helper that code calls.

In `@cd` functions themselves such statements never get here: `tcdsl.frontend.python.recorder` records them.
"""

from __future__ import annotations

from typing import Any

from tcdsl.frontend.symbols.operators import ArithmeticOperators

__all__ = ["MemoryOperators"]


class MemoryOperators(ArithmeticOperators):
    """Mixin: on memory ``a[key] = value`` and ``a += value`` store; of values the latter makes another value."""

    __slots__ = ()

    def __setitem__(self, key: object, value: object) -> None:
        self.builder.algebra.store(self, key, value)

    def _updated(self, primitive: str, other: object) -> Any:
        if not getattr(self, "memory", False):
            return NotImplemented
        self.builder.algebra.store(self, ..., self.builder.algebra.combine(primitive, self, other))
        return self

    def __iadd__(self, other: object) -> Any:
        return self._updated("add", other)

    def __isub__(self, other: object) -> Any:
        return self._updated("sub", other)

    def __imul__(self, other: object) -> Any:
        return self._updated("mul", other)

    def __itruediv__(self, other: object) -> Any:
        return self._updated("div", other)

    def __ifloordiv__(self, other: object) -> Any:
        return self._updated("floor_div", other)

    def __imod__(self, other: object) -> Any:
        return self._updated("mod", other)

    def __ipow__(self, other: object) -> Any:
        return self._updated("pow", other)

    def __iand__(self, other: object) -> Any:
        return self._updated("bit_and", other)

    def __ior__(self, other: object) -> Any:
        return self._updated("bit_or", other)

    def __ixor__(self, other: object) -> Any:
        return self._updated("bit_xor", other)

    def __ilshift__(self, other: object) -> Any:
        return self._updated("shift_left", other)

    def __irshift__(self, other: object) -> Any:
        return self._updated("shift_right", other)
