"""What is told of a nest beside its code: how LLVM is to treat it."""

from __future__ import annotations

__all__ = ["FASTMATH", "PLAIN", "READY"]

FASTMATH: tuple[str, ...] = ("contract", "reassoc")
"""LLVM's fast-math flags. NaN, inf and the signs of zeros stay what they are.

``reassoc`` is for the terms that a name accumulates, ``acc += x[i]``, and no other operation: with it LLVM makes 0 of
``2 * x - (x + x)``, also where ``x`` is NaN or inf.

So never ``nnan``, ``ninf`` or ``nsz``. Nor ``arcp``: with it x86 computes ``a / sqrt(b)`` from an estimate of the
reciprocal root, which is NaN for 0 and inf, and ``0 / b`` becomes NaN where ``1 / b`` overflows.
"""

PLAIN = "!tcdsl.plain = !{}"
"""What the text of a nest says that LLVM's first level makes as fast as its second: `plain_nests`."""

READY = "!tcdsl.ready = !{}"
"""What the text of a nest says whose loops are vectors where they can be."""
