"""How much work stays on one thread."""

from __future__ import annotations

__all__ = ["ROUND_WORK", "SERIAL_WORK"]

SERIAL_WORK = 1 << 20
"""Points below which waking threads (2 to 60 microseconds; a time slice, 20 milliseconds, where other programs keep the
cores busy) costs more than it saves: about 200 microseconds of work on one core."""

ROUND_WORK = 1 << 18
"""The same in rounds of a loop: threads that have just been at work wait for more before they sleep."""
