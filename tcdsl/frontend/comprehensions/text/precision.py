"""A source with another floating type throughout."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tcdsl.frontend.comprehensions.text.parsing import parse
from tcdsl.frontend.comprehensions.text.printing import format_source
from tcdsl.frontend.comprehensions.text.syntax import Convert, ElementType
from tcdsl.ir.dtypes import is_floating

__all__ = ["in_double"]


def in_double(text: str) -> str:
    """The text of a source whose floating types are all double."""
    return format_source(_changed(parse(text)))


def _changed(node: Any) -> Any:
    if isinstance(node, tuple):
        return tuple(map(_changed, node))
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {each.name: _changed(getattr(node, each.name)) for each in fields(node) if each.name != "span"}
    if isinstance(node, ElementType | Convert) and is_floating(node.dtype):
        changed["dtype"] = "float64"
    return replace(node, **changed)
