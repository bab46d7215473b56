"""Functions of sizes, apart from the expressions that they were made of: plain values, which can be kept on disk.

::

    written = code.written(f"({blocks}, 2 * {blocks})")     # `tcdsl.ir.sizes.size_code.SizeCode`
    function = written.bound()
    function(7, 3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

__all__ = ["SizeFunction"]

_BUILTINS = (abs, bool, float, int, len, max, min, range)


@dataclass(frozen=True, slots=True)
class SizeFunction:
    """Python's code that defines ``function``, and its ``constants``: a name, a kind and a value each.

    The kinds are ``value``, ``exact`` (of `tcdsl.ir.exact.EXACT`), ``primitive`` and ``type`` (of NumPy).
    """

    code: CodeType
    constants: tuple[tuple[str, str, Any], ...]

    def bound(self, given: Mapping[str, object] | None = None) -> Callable[..., Any]:
        """The function. ``given`` are the values of names that stand in it and belong to this process."""
        names: dict[str, Any] = {"__builtins__": {}, **{each.__name__: each for each in _BUILTINS}}
        names["__file__"] = __file__  # or it would be taken for users' code
        names |= {name: _constant(kind, value) for name, kind, value in self.constants}
        names |= given or {}
        exec(self.code, names)  # noqa: S102  # the text that `SizeCode` wrote
        function: Callable[..., Any] = names["function"]
        return function


def _constant(kind: str, value: Any) -> Any:
    if kind == "exact":
        from tcdsl.ir.exact import EXACT

        return EXACT[value]
    if kind == "primitive":
        from tcdsl.ir.primitives import PRIMITIVES

        return PRIMITIVES[value].evaluate
    return np.dtype(value).type if kind == "type" else value
