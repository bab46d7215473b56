"""What nests of rounds divide sizes by, divided once for all rounds.

::

    repeat t in 0 .. T:                              P = max(1, min(N // 128, 64));  L = (N + P - 1) // P
        parallel for block in 0 .. max(1, ...):      repeat t in 0 .. T:
            for i in block * ((N + ...) // ...) ..       parallel for block in 0 .. P:
                ...                                          for i in block * L ..

A division takes as long as the sum of some cells, and small nests have many. The values become sizes that calls work
out with all else that they know of their sizes (`tcdsl.targets.cpu.call.plan_code`).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, SizeValue, map_children, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Kernel, Nest
from tcdsl.lowering.loopir.traversal import map_expressions
from tcdsl.lowering.rounds.round_bounds import is_positive

__all__ = ["with_size_values"]

_DIVISIONS = ("floor_div", "mod")


def with_size_values(kernel: Kernel) -> Kernel:
    """``kernel`` with such values among its sizes."""
    inside = {number for each in kernel.repeated for number in range(each.first, each.end)}
    if not inside:
        return kernel
    known = {size.name for size in kernel.program.sizes}
    finding = _Finding(known, FreshNames((*known, *(each.rounds.number for each in kernel.repeated))))
    nests = tuple(finding.nest(nest) if k in inside else nest for k, nest in enumerate(kernel.nests))
    values = tuple((name, expr) for expr, name in finding.found.items())
    return replace(kernel.with_nests(nests), size_values=values)


class _Finding:
    def __init__(self, known: Set[str], names: FreshNames) -> None:
        self.found: dict[Expr, str] = {}
        self._known = known
        self._names = names

    def nest(self, nest: Nest) -> Nest:
        return replace(nest, code=map_expressions(nest.body, self._replaced))

    def _replaced(self, expr: Expr) -> Expr:
        if isinstance(expr, Apply) and expr.dtype == "int64" and self._is_long(expr) and self._is_certain(expr):
            if expr not in self.found:
                self.found[expr] = self._names.fresh("of_sizes")
            return SizeValue(self.found[expr])
        return map_children(expr, self._replaced)

    def _is_certain(self, expr: Expr) -> bool:
        # Whether sizes alone say it, whatever they are.
        for part in walk(expr):
            match part:
                case SizeValue(name=name) if name in self._known:
                    pass
                case Constant(dtype="int64" | "bool") | Cast(dtype="int64"):
                    pass
                case Apply(primitive=primitive, arguments=(_, divisor)) if primitive in _DIVISIONS:
                    if not is_positive(divisor):
                        return False
                case Apply(dtype="int64" | "bool"):
                    pass
                case _:
                    return False
        return True

    @staticmethod
    def _is_long(expr: Expr) -> bool:
        # Whether the processor would divide.
        return any(
            isinstance(part, Apply) and part.primitive in _DIVISIONS and not _is_power_of_two(part.arguments[1])
            for part in walk(expr)
        )


def _is_power_of_two(expr: Expr) -> bool:
    return isinstance(expr, Constant) and int(expr.value) > 0 and int(expr.value) & (int(expr.value) - 1) == 0
