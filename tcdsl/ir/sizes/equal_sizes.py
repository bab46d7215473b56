"""Sizes that a program's assertions make equal."""

from __future__ import annotations

from collections.abc import Iterable

from tcdsl.ir.expressions import Apply, SizeValue
from tcdsl.ir.program import Assertion, AxisExtent, Size

__all__ = ["equal_sizes"]


def equal_sizes(sizes: Iterable[Size], assertions: Iterable[Assertion]) -> dict[str, str]:
    """Those of ``sizes`` that the assertions make equal to another one, and that one: ``{"B_0": "K"}``.

    Names that the user gave come before those made from an input's name and axis, earlier ones before later ones.
    """
    renamed: dict[str, str] = {}

    def representative(name: str) -> str:
        while name in renamed:
            name = renamed[name]
        return name

    order = {each.name: (_made_up(each), position) for position, each in enumerate(sizes)}
    for assertion in assertions:
        match assertion.condition:
            case Apply(primitive="eq", arguments=(SizeValue(name=left), SizeValue(name=right))):
                first, second = sorted((representative(left), representative(right)), key=order.__getitem__)
                if first != second:
                    renamed[second] = first
            case _:
                pass
    return {name: representative(name) for name in renamed}


def _made_up(each: Size) -> bool:
    source = each.source
    return isinstance(source, AxisExtent) and each.name == f"{source.tensor}_{source.axis}"
