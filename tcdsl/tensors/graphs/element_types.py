"""The element types of parameters: those of the floating tensors that they meet.

A parameter that is made without a type takes that of the first floating data it is combined with, directly or through
other parameters; float64 where its value is asked for before it has met any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DtypeError
from tcdsl.ir.dtypes import DTYPES, is_floating
from tcdsl.tensors.graphs.location import fault

__all__ = ["FloatingType", "type_name"]


def type_name(dtype: Any) -> str:
    """An element type by name: ``type_name(np.float32)`` is ``"float32"``; `DtypeError` for what is none of tcdsl's."""
    try:
        name = str(np.dtype(getattr(dtype, "__tcdsl_name__", dtype)))
    except (TypeError, ValueError):
        name = ""
    if name not in DTYPES:
        hint = f"write one of {', '.join(DTYPES)}"
        raise fault(DtypeError, f"{dtype!r} as an element type", hint)
    return name


class FloatingType:
    """A floating type that may not be known yet, shared by all tensors that must have the same one."""

    __slots__ = ("_name", "_same_as")

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._same_as: FloatingType | None = None

    @staticmethod
    def of(element_type: str | None) -> FloatingType | None:
        """The type of a leaf; None for integers and booleans, which decide nothing."""
        return FloatingType(element_type) if element_type is None or is_floating(element_type) else None

    def _root(self) -> FloatingType:
        root = self
        while root._same_as is not None:
            root = root._same_as
        if root is not self:
            self._same_as = root
        return root

    @property
    def known(self) -> str | None:
        """The type, if it is known."""
        return self._root()._name

    def settled(self) -> str:
        """The type, from here on float64 if it was open."""
        root = self._root()
        if root._name is None:
            root._name = "float64"
        return root._name

    @staticmethod
    def meeting(types: Sequence[FloatingType | None]) -> FloatingType | None:
        """The type of what is computed from tensors of these; open ones take the type of the others."""
        roots = [each._root() for each in types if each is not None]
        if not roots:
            return None
        known = [np.dtype(each._name) for each in roots if each._name is not None]
        made = FloatingType(str(np.result_type(*known)) if known else None)
        for root in roots:
            if root._name is None:
                root._same_as = made
        return made
