"""Targets to which only whole numbers of Python have been written: int64 until the first floating value.

::

    s = output(N)
    s[0] = 0                int64
    s[i] = x[i], i > 0      float64, if x is: the statement before is made again in that type
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tcdsl.frontend.symbols.symbols import SymbolicTensor, View
from tcdsl.ir.build import cast
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.program import Keep

__all__ = ["Retyping", "in_its_type"]


class Retyping(Exception):  # noqa: N818  # no error: the statement is recorded again
    """The target has to take ``dtype`` before the statement can be recorded."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self.dtype = dtype


def in_its_type(target: object, action: Callable[[], Any]) -> Any:
    """The result of ``action``, a statement on ``target``; the target takes another type first if it asks for that."""
    try:
        return action()
    except Retyping as needed:
        if isinstance(target, View):
            target = target.tensor
        if not isinstance(target, SymbolicTensor):
            raise
        target.become(_retyped(target.builder, target.name, needed.dtype))
        return action()


def _retyped(builder: Any, name: str, dtype: str) -> SymbolicTensor:
    previous = ""
    if not builder.written.numbers(name):
        # In rounds, which take it in the type that one of them gives it.
        shown = builder.tensor(name)
        held = SymbolicTensor(builder, name, shown.dtype, shown.shape, shown.label or name)
        retyped: SymbolicTensor = held.astype(dtype).materialize(held.label)
        builder.written.same(retyped.name, name)
        return retyped
    for statement in builder.written.numbers(name):
        old = builder.tensor(statement.target.tensor)
        label = old.label or old.name
        new = builder.fresh_name(label)
        start = Keep(previous) if previous else statement.start
        value = cast(statement.value, compute_dtype(dtype))
        target = replace(statement.target, tensor=new)
        made = replace(statement, target=target, start=start, value=value, label="")
        builder.append((made,), (replace(old, name=new, dtype=dtype, label=label),))
        builder.written.same(new, old.name)
        previous = new
    tensor = SymbolicTensor(builder, previous, dtype, builder.tensor(previous).shape, label)
    rows = builder.rows(name)
    if rows is not None:
        tensor.rows = rows
    return tensor
