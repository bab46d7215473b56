"""The operators of SkriptND's library as functions of arrays and tensors.

::

    from tcdsl.library import layout, math, nn

    y = nn.relu(nn.conv(x, w, bias, stride=2))       # NumPy in, NumPy out, differentiable
    first, second = layout.split(y, axis=1, count=2)
    k = math.not_(mask)                              # words of Python get an underscore

Inputs are given by position or name, attributes and types (`layout.cast(x, R="int")`) by name; packs are lists.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tcdsl.tracebacks import missing_name

if TYPE_CHECKING:
    from tcdsl.library.functions import LibraryModule

__all__ = ["algo", "image", "layout", "linalg", "math", "misc", "nn", "quant", "rand"]  # made when used


def __getattr__(name: str) -> LibraryModule:
    if name not in __all__:
        raise missing_name(f"module {__name__}", name, sys.modules[__name__], __all__)
    from tcdsl.library.functions import library_functions

    return library_functions(name)


def __dir__() -> list[str]:
    return sorted(__all__)
