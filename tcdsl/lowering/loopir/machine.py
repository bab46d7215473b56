"""What lowering knows of the machine that will run the loops."""

from __future__ import annotations

from dataclasses import dataclass

from tcdsl.ir.dtypes import numpy_dtype

__all__ = ["ROUND_WORK", "SERIAL_WORK", "Machine"]

SERIAL_WORK = 1 << 20
"""Points below which waking threads (2 to 60 microseconds; a time slice, 20 milliseconds, where other programs keep the
cores busy) costs more than it saves: about 200 microseconds of work on one core."""

ROUND_WORK = 1 << 18
"""The same in rounds of a loop: threads that have just been at work wait for more before they sleep."""


@dataclass(frozen=True, slots=True)
class Machine:
    """``Machine(64, 32, masks=True)``: vectors of so many bytes, so many registers for them, and masks for their lanes.

    `Machine()` is like every one. Without ``registers`` a compiler behind the target chooses vectors, of cells that an
    innermost loop makes side by side. So many ``near_bytes`` stay in a core's own caches, beside what passes through
    them.
    """

    vector_bytes: int = 16
    registers: int = 16
    masks: bool = False
    near_bytes: int = 1 << 18

    def widths(self, dtype: str) -> tuple[int, ...]:
        """How many cells side by side sums of products are made of: those of one register, two, and four if many."""
        cells = self.vector_bytes // numpy_dtype(dtype).itemsize
        return tuple(cells << k for k in range(3 if self.registers >= 32 else 2))
