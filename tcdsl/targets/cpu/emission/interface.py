"""What emitted modules and those who compile them agree on: flags, marks of nests, and symbols of the driver."""

from __future__ import annotations

import ast

__all__ = ["FASTMATH", "PLAIN", "READY", "TILED", "TRANSPOSING", "definitions", "driver_symbols", "python_symbol"]

FASTMATH: tuple[str, ...] = ("contract", "reassoc")
"""LLVM's fast-math flags. NaN, inf and the signs of zeros stay what they are.

``reassoc`` is for the terms that a name accumulates, ``acc += x[i]``, and no other operation: with it LLVM makes 0 of
``2 * x - (x + x)``, also where ``x`` is NaN or inf.

So never ``nnan``, ``ninf`` or ``nsz``. Nor ``arcp``: with it x86 computes ``a / sqrt(b)`` from an estimate of the
reciprocal root, which is NaN for 0 and inf, and ``0 / b`` becomes NaN where ``1 / b`` overflows.
"""

PLAIN = "!tcdsl.plain = !{}"
"""What the text of a nest says that LLVM's first level makes as fast as its second: `plain_nests`."""

TRANSPOSING = "tcdsl.transposed."
"""How symbols begin of functions that nests share: `transposed_copies`. The size of a cell follows."""

READY = "!tcdsl.ready = !{}"
"""What the text of a nest says whose loops are vectors where they can be."""

TILED = "!tcdsl.tiled = !{}"
"""What it says besides where sums stay in registers: it has the instructions that it needs, in an order that fits."""


def definitions(text: str) -> list[ast.FunctionDef]:
    """The functions of the driver's text."""
    return [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def driver_symbols(text: str) -> list[str]:
    """The symbols of `tcdsl.targets.cpu.emission.driver_emission.emitted_driver`."""
    public = [definition for definition in definitions(text) if not definition.name.startswith("_")]
    called = [python_symbol(each.name) for each in public if isinstance(each.returns, ast.Name)]
    return [*(each.name for each in public), *called]


def python_symbol(name: str) -> str:
    """The symbol of the function that Python calls."""
    return f"{name}.python"
