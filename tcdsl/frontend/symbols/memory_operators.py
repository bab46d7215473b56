"""Stores that plain Python spells with operators: ``x[1:] = 0`` and ``x *= 2`` in a helper that code calls.

In `@cd` functions themselves such statements never get here: `tcdsl.frontend.python.recorder` records them.
"""

from __future__ import annotations

from typing import Any

from tcdsl.frontend.symbols.operators import ArithmeticOperators

__all__ = ["MemoryOperators"]


def _storing(primitive: str) -> Any:
    return lambda self, other: self._updated(primitive, other)


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

    __iadd__, __isub__, __imul__ = _storing("add"), _storing("sub"), _storing("mul")
    __itruediv__, __ifloordiv__ = _storing("div"), _storing("floor_div")
    __imod__, __ipow__ = _storing("mod"), _storing("pow")
    __iand__, __ior__, __ixor__ = _storing("bit_and"), _storing("bit_or"), _storing("bit_xor")
    __ilshift__, __irshift__ = _storing("shift_left"), _storing("shift_right")
