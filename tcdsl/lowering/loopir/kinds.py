"""What nodes do, whatever the names in them: equal layers have nests of one kind.

::

    kind_of(nodes)      # (1, Loop, 0, Constant, "0", ...), (("scalar", "i"), ("size", "N"), ("buffer", "y"))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from tcdsl.ir.expressions import Apply, Cast, Constant, IndexValue, Local, Read, SizeValue
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    BufferView,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Node,
    ProcedureCall,
    Store,
    Update,
)

__all__ = ["Kind", "Named", "kind_of"]

Kind = tuple[object, ...]
Named = tuple[str, str]
"""What a name is of, a buffer, a size or a scalar, and the name."""

# The field of each node that is a name, and what it is of.
_NAMES: dict[type, Named] = {
    Accumulate: ("scalar", "name"),
    BufferView: ("buffer", "buffer"),
    Define: ("scalar", "name"),
    IndexValue: ("scalar", "name"),
    Local: ("scalar", "name"),
    LocalBuffer: ("buffer", "name"),
    Loop: ("scalar", "variable"),
    Read: ("buffer", "tensor"),
    SizeValue: ("size", "name"),
    Store: ("buffer", "buffer"),
    Update: ("buffer", "buffer"),
}
_OTHERS: tuple[type, ...] = (Apply, Branch, Cast, Check, Constant, ProcedureCall)
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(each.name for each in fields(kind) if each.compare and each.name != _NAMES.get(kind, ("", ""))[1])
    for kind in (*_NAMES, *_OTHERS)
}


def kind_of(nodes: Iterable[Node]) -> tuple[Kind, tuple[Named, ...]]:
    """The kind of ``nodes``, and the names in them in the order in which they are met.

    Nodes of one kind are the same but for these names.
    """
    parts: list[object] = []
    names: dict[Named, int] = {}
    _write(tuple(nodes), parts, names)
    return tuple(parts), tuple(names)


def _write(value: Any, parts: list[object], names: dict[Named, int]) -> None:
    kind = type(value)
    if kind is tuple:
        parts.append(len(value))
        for each in value:
            _write(each, parts, names)
        return
    own = _FIELDS.get(kind)
    if own is None:
        # Not the number itself: 1, 1.0 and True are equal, and 0.0 and -0.0.
        parts.append(repr(value) if kind in (int, float, bool) else value)
        return
    parts.append(kind)
    named = _NAMES.get(kind)
    if named is not None:
        parts.append(names.setdefault((named[0], getattr(value, named[1])), len(names)))
    for field in own:
        _write(getattr(value, field), parts, names)
