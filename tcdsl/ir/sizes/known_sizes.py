"""What is known of sizes before a call: which ones the assertions make equal, and which are never negative.

Extents, sums, products and quotients of extents are not; `N * min(0, M - 2)` may be. Nothing may be taken for granted
of the sign of a size that stands for an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue
from tcdsl.ir.program import Assertion, AxisExtent, Program, Size

__all__ = ["equal_sizes", "never_negative", "never_negative_in"]


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


def never_negative(expr: Expr, known: Callable[[str], bool]) -> bool:
    """Whether an expression of sizes is non-negative by its form; ``known`` says so of a size by its name."""
    match expr:
        case Constant(value=value):
            return value >= 0
        case SizeValue(name=name):
            return known(name)
        case Apply(primitive="mod", arguments=(_, divisor)):
            return never_negative(divisor, known)  # a remainder has the sign of its divisor
        case Apply(primitive="add" | "mul" | "floor_div" | "min", arguments=arguments):
            return all(never_negative(argument, known) for argument in arguments)
        case Apply(primitive="max", arguments=arguments):
            return any(never_negative(argument, known) for argument in arguments)
        case _:
            return False


def never_negative_in(program: Program) -> Callable[[str], bool]:
    """Whether a size of ``program``, by its name, is never negative once a call has passed its checks."""
    sources = {size.name: size.source for size in program.sizes}
    computed = any(not isinstance(source, AxisExtent) for source in sources.values())
    tensors = (*program.inputs, *program.tensors) if computed else ()
    extents = {extent for tensor in tensors for extent in tensor.shape}

    def known(name: str) -> bool:
        source = sources[name]
        return isinstance(source, AxisExtent) or SizeValue(name) in extents or never_negative(source, known)

    return known
