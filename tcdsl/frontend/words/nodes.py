"""What texts say, as values: nodes that compare equal wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

__all__ = ["TextNode", "parts_of", "walk"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class TextNode:
    """What is compared by its fields, and never changed; ``expressions`` are the fields that hold some."""

    expressions: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        # Frozen ones take three times as long to make.
        dataclass(unsafe_hash="__hash__" not in vars(cls))(cls)
        kinds = ("Expression", "Subscript")
        cls.expressions = tuple(each.name for each in fields(cls) if any(kind in str(each.type) for kind in kinds))


Node = TypeVar("Node", bound=TextNode)


def parts_of(node: Node) -> tuple[Node, ...]:
    """The expressions that stand directly in ``node``, from left to right."""
    found: list[Node] = []
    for name in node.expressions:
        part = getattr(node, name)
        found.extend(part if isinstance(part, tuple) else () if part is None else (part,))
    return tuple(found)


def walk(node: Node) -> Iterator[Node]:
    """``node`` and all expressions in it, outermost first, from left to right."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        if found.expressions:
            waiting.extend(reversed(parts_of(found)))
