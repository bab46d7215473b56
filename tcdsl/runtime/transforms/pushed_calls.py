"""The short way of ``tc.jvp(f, (x,), (dx,))`` and ``tc.hvp``: calls on arrays, like earlier ones or kept on disk.

To what remembers calls, and keeps them, primals and tangents are the arguments of one function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.calls.content import Contents
from tcdsl.runtime.calls.table import CallTable
from tcdsl.runtime.transforms.derivation import Derivation, name_of

if TYPE_CHECKING:
    from tcdsl.runtime.calling.entries import Entry

__all__ = ["PushedCalls", "are_alike"]


def are_alike(primals: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Whether all primals are floating arrays, and each tangent has the shape and the type of its primal."""
    return all(
        type(primal) is np.ndarray is type(tangent)
        and primal.dtype.kind == "f"
        and primal.dtype == tangent.dtype
        and primal.shape == tangent.shape
        for primal, tangent in zip(primals, tangents, strict=True)
    )


class PushedCalls:
    """The calls of ``derivation`` of ``function``, by all of its ``count`` arguments, on tensors `are_alike`."""

    def __init__(self, function: Callable[..., Any], derivation: Derivation, count: int) -> None:
        self._function, self._derivation = function, derivation
        self.__name__ = f"{derivation.title}_{name_of(function)}"
        operands = (*(f"x{k}" for k in range(count)), *(f"d_x{k}" for k in range(count)))
        self.signature = Signature.of_operands(operands, self.__name__)
        self.calls = CallTable(self)

    def remember(self, entry: Entry, arguments: tuple[Any, ...]) -> None:
        """Serve calls like this one, which ``entry`` has served, in this process and in later ones."""
        count = len(arguments) // 2
        if entry.inputs[:count] != tuple(range(count)) or entry.constants or len(entry.inputs) > count:
            return  # it reads arrays around the function, or is made for numbers
        call = self.signature.call(arguments, {})
        self.calls.remember(replace(entry, inputs=tuple(range(len(arguments)))), call, arguments, {})

    def add_content(self, contents: Contents) -> None:
        """Add the function and what is derived from it."""
        derivation = self._derivation
        contents.put("along", *(getattr(derivation, each.name) for each in fields(derivation)))
        contents.put("rule", derivation.title, getattr(self._function, "oob", "check"), name_of(self._function))
        contents.add(self._function)
