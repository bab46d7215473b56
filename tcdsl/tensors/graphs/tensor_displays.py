"""What notebooks and terminals show of tensors: their axes, what they are computed from, and tables of several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tcdsl.runtime.displays.pictures import graph
from tcdsl.runtime.displays.tables import Table

__all__ = ["axes_of", "graph_of", "table_of"]

_NODES = 40
Tensor = Any  # `tcdsl.tensors.graphs.tensor.Tensor`, which shows itself by what is here


def axes_of(tensor: Tensor) -> Table:
    """A row for each axis: which row it belongs to, its label, and its size, where that is known."""
    rows = []
    for name, row in zip(("batch", "input", "output"), tensor.rows.rows, strict=True):
        known = row.resolved
        more = () if known.variable is None else (None,)
        for axis in (*known.leading, *more, *known.trailing):
            label, size = ("...", None) if axis is None else (axis.root.label, axis.root.size)
            rows.append((name, label or "", "?" if size is None else str(size)))
    return Table(repr(tensor)[1:-1], ("row", "label", "size"), rows, left=frozenset((0, 1)))


def graph_of(tensor: Tensor) -> str:
    """A picture of what a tensor is computed from: the tensors nearest to it. Nothing for one that holds data."""
    if tensor.is_leaf:
        return ""
    found: dict[int, Tensor] = {id(tensor): tensor}
    near = [tensor]
    while near and len(found) < _NODES:
        near = list({id(each): each for one in near for each in one.operands if id(each) not in found}.values())
        for each in near[: _NODES - len(found)]:
            found[id(each)] = each
    order = _in_order(tensor, found)
    numbers = {id(each): k for k, each in enumerate(order)}
    edges = [
        (numbers[id(operand)], numbers[id(each)])
        for each in order
        for operand in each.operands
        if id(operand) in numbers
    ]
    return graph([(each.label or each.name, _kind(each)) for each in order], edges)


def _in_order(tensor: Tensor, found: dict[int, Tensor]) -> list[Tensor]:
    # Operands come before what is computed from them.
    order: dict[int, Tensor] = {}
    waiting = [tensor]
    while waiting:
        each = waiting[-1]
        missing = [one for one in each.operands if id(one) in found and id(one) not in order]
        if missing:
            waiting += missing
        else:
            order[id(waiting.pop())] = each
    return list(order.values())


def _kind(tensor: Tensor) -> str:
    if tensor.operation is None:
        return f"{'param' if tensor.parameter else 'tensor'} {tensor.rows}"
    return f"{tensor.operation.name}: {tensor.rows}"


def table_of(title: str, tensors: Iterable[tuple[str, Tensor]], notes: tuple[str, ...] = ()) -> Table:
    """A row for each tensor: what it is, its label, its rows, and its type."""
    rows = [(kind, each.label, str(each.rows), each.element_type) for kind, each in tensors]
    return Table(title, ("", "label", "shape", "type"), rows, notes, frozenset(range(4)))
