"""Tensors that Python takes apart: ``a, b = x`` of one that is two long."""

from __future__ import annotations

from typing import Any, TypeAlias

from tcdsl.errors import ShapeError
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import SizeValue
from tcdsl.ir.text.printer import format_expr

__all__ = ["Parts", "nothing_for", "own_memory", "unpacked"]

Parts: TypeAlias = "tuple[Parts, ...] | None"
"""The names that a value is unpacked into: ``None`` for one that takes it as it is."""


def own_memory(value: Any) -> Any:
    """What an assignment binds to a name: of memory, memory of its own that holds the same."""
    return value.own_memory() if isinstance(value, SymbolicTensor) and value.memory else value


def nothing_for(parts: Parts) -> Any:
    """What stands for a value of these parts where none is."""
    return 0 if parts is None else tuple(map(nothing_for, parts))


def unpacked(session: Session, value: Any, parts: Parts) -> Any:
    """``value`` for Python to unpack into ``parts``: as many as there are names say how long a tensor is."""
    if parts is None:
        return value
    if isinstance(value, SymbolicSize | SymbolicNumber):
        hint = "give the names a value each; `enumerate` counts what it goes over"
        raise session.fault(ShapeError, f"a number is unpacked into {len(parts)} names", hint)
    if isinstance(value, SymbolicArray):
        if value.rank == 0:
            fact = f"a tensor of rank 0 is unpacked into {len(parts)} names"
            raise session.fault(ShapeError, fact, "give the names a value each, or unpack a tensor of rank 1 or more")
        extent = value.extents[0]
        length = f"{{{extent.name}}}" if isinstance(extent, SizeValue) else format_expr(extent)
        message = f"a tensor of length {length} is unpacked into {len(parts)} names\ngive as many names as it has parts"
        session.builder.require_equal(extent, integer(len(parts)), message, session.location())
        value = tuple(value[k] for k in range(len(parts)))
    if isinstance(value, tuple | list) and len(value) == len(parts):
        return tuple(unpacked(session, each, inner) for each, inner in zip(value, parts, strict=True))
    return value
