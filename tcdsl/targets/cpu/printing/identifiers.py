"""Identifiers of generated code: every thing of a nest gets one, valid, readable and its own."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from tcdsl.ir.fresh_names import FreshNames

__all__ = ["Identifiers"]


# LLVM cuts names of more than 1,024 characters off, and then they are no longer different.
_LONGEST = 200


class Identifiers:
    """``Identifiers(reserved)("buffer", "A.grad")`` is ``"A_grad"``, the same at every call with the same arguments.

    Another thing of the same spelling gets ``A_grad_2``, and nothing gets a reserved name or a keyword.
    """

    def __init__(self, reserved: Iterable[str]) -> None:
        self._names = FreshNames((*reserved, *keyword.kwlist))
        self._given: dict[tuple[str, str], str] = {}

    def __call__(self, kind: str, name: str) -> str:
        """The identifier of the ``kind`` of thing called ``name``."""
        key = (kind, name)
        if key not in self._given:
            self._given[key] = self.fresh(name)
        return self._given[key]

    def fresh(self, name: str) -> str:
        """An identifier like ``name`` that nothing else has."""
        base = re.sub(r"\W", "_", name, flags=re.ASCII)[:_LONGEST] or "x"
        return self._names.fresh("_" + base if base[0].isdigit() else base)
