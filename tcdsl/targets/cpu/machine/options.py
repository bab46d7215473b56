"""What the caller may choose about code generation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["FASTMATH", "CodegenOptions"]

FASTMATH: tuple[str, ...] = ("contract", "nsz", "reassoc")
"""The liberties that generated code takes with rounding. NaN and inf stay what they are.

So never ``nnan`` or ``ninf``. Nor ``arcp``: with it x86 computes ``a / sqrt(b)`` from an estimate of the reciprocal
root, which is NaN for 0 and inf, and ``0 / b`` becomes NaN where ``1 / b`` overflows.
"""


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """``CodegenOptions(threads=1)``: how a kernel is compiled, kept and run.

    ``threads`` is the largest number of threads of a call (``None``: as many as Numba has); results do not depend on
    it. ``cache_dir`` is where generated modules and their machine code are kept (``None``: the user's cache directory).
    ``fastmath`` lists LLVM's fast-math flags. With ``debug`` every access is tested against its buffer's extents, and
    one that is out of range raises instead of touching memory: for finding faults in lowering, about three times
    slower.
    """

    threads: int | None = None
    cache_dir: Path | None = None
    fastmath: tuple[str, ...] = FASTMATH
    debug: bool = False
