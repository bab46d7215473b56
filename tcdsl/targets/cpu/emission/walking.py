"""Walks over the trees of generated code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

__all__ = ["walk"]


def walk(node: ast.stmt | ast.expr) -> Iterator[Any]:
    """All statements and expressions of ``node``, in no order; `ast.walk`, which goes into the operators too, takes
    twice the time.
    """
    left: list[Any] = [node]
    take = left.pop
    while left:
        each = take()
        yield each
        for field in each._fields:
            part = getattr(each, field, None)
            if isinstance(part, ast.expr):
                left.append(part)
            elif part.__class__ is list:
                left += part
