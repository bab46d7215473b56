"""What is told of a nest beside its code: how LLVM is to treat it, and for what vectors it is written."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PLAIN", "READY", "VectorForm"]

PLAIN = "!tcdsl.plain = !{}"
"""What the text of a nest says that LLVM's first level makes as fast as its second: `plain_nests`."""

READY = "!tcdsl.ready = !{}"
"""What the text of a nest says whose loops are vectors where they can be."""


@dataclass(frozen=True, slots=True)
class VectorForm:
    """The vectors of a processor: how many bytes they have, and whether their lanes have masks."""

    size: int
    masks: bool
