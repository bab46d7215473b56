"""What is known of a program's sizes before any call: none is negative, definitions and assertions hold."""

from __future__ import annotations

import islpy as isl

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.expressions import Apply, Expr, SizeValue
from tcdsl.ir.program import AxisExtent, Program
from tcdsl.shapes.affine import NotAffine, condition_set, universe

__all__ = ["equal_sizes", "size_context"]


def size_context(program: Program) -> isl.Set:
    """A set of parameters: all sizes of ``program`` for which a call gets as far as its first statement.

    Of sizes that the assertions make equal it speaks of the first only.
    """
    names = [each.name for each in program.sizes]
    known = universe((), names)
    facts: list[Expr] = [apply("ge", size(name), integer(0)) for name in names]
    facts.extend(
        apply("eq", size(each.name), each.source) for each in program.sizes if not isinstance(each.source, AxisExtent)
    )
    facts.extend(assertion.condition for assertion in program.assertions)
    for fact in facts:
        try:
            known = known.intersect(condition_set(fact, known))
        except NotAffine:
            continue
    known = known.params()
    for name in equal_sizes(program):
        known = known.project_out(isl.dim_type.param, known.find_dim_by_name(isl.dim_type.param, name), 1)
    return known


def equal_sizes(program: Program) -> dict[str, str]:
    """Sizes that the assertions make equal to an earlier one, and that one."""
    renamed: dict[str, str] = {}

    def representative(name: str) -> str:
        while name in renamed:
            name = renamed[name]
        return name

    order = {each.name: position for position, each in enumerate(program.sizes)}
    for assertion in program.assertions:
        match assertion.condition:
            case Apply(primitive="eq", arguments=(SizeValue(name=left), SizeValue(name=right))):
                first, second = sorted((representative(left), representative(right)), key=order.__getitem__)
                if first != second:
                    renamed[second] = first
            case _:
                pass
    return {name: representative(name) for name in renamed}
