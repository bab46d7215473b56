"""What lowering knows of the machine that will run the loops."""

from __future__ import annotations

from dataclasses import dataclass

from tcdsl.ir.dtypes import numpy_dtype

__all__ = ["Machine"]


@dataclass(frozen=True, slots=True)
class Machine:
    """``Machine(64, 32, masks=True)``: vectors of so many bytes, so many registers for them, and masks for their lanes.

    `Machine()` is like every one.
    """

    vector_bytes: int = 16
    registers: int = 16
    masks: bool = False

    def lanes(self, dtype: str) -> int:
        """How many cells side by side sums of products are made of: those of four registers, or of two."""
        side_by_side = 4 if self.registers >= 32 else 2
        return side_by_side * self.vector_bytes // numpy_dtype(dtype).itemsize
