"""Which sizes are never negative: extents, sums, products and quotients of extents; `N * min(0, M - 2)` may be.

Nothing may be taken for granted of the sign of a size that stands for an expression.
"""

from __future__ import annotations

from collections.abc import Callable

from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue
from tcdsl.ir.program import AxisExtent, Program

__all__ = ["never_negative", "never_negative_in"]


def never_negative(expr: Expr, known: Callable[[str], bool]) -> bool:
    """Whether an expression of sizes is non-negative by its form; ``known`` says so of a size by its name."""
    match expr:
        case Constant(value=value):
            return value >= 0
        case SizeValue(name=name):
            return known(name)
        case Apply(primitive="add" | "mul" | "floor_div" | "mod" | "min", arguments=arguments):
            return all(never_negative(argument, known) for argument in arguments)
        case Apply(primitive="max", arguments=arguments):
            return any(never_negative(argument, known) for argument in arguments)
        case _:
            return False


def never_negative_in(program: Program) -> Callable[[str], bool]:
    """Whether a size of ``program``, by its name, is never negative once a call has passed its checks."""
    sources = {size.name: size.source for size in program.sizes}
    extents = {extent for tensor in (*program.inputs, *program.tensors) for extent in tensor.shape}

    def known(name: str) -> bool:
        source = sources[name]
        return isinstance(source, AxisExtent) or SizeValue(name) in extents or never_negative(source, known)

    return known
