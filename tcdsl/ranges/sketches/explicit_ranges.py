"""Explicit ranges: generators, and conditions between one index variable and sizes.

``i < m`` is the range ``0 <= i < m``, ``a <= i < b`` is what it says, ``i >= a`` and ``i > a`` bound one side, ``i
== a`` both. Everything else only filters: other variables or factors beside the variable, ``!=``, ``or``, ``not``,
data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tcdsl.ir.build import conjuncts
from tcdsl.ir.expressions import Apply, Expr
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.sketches.sketch_accesses import Level, levels_of

__all__ = ["Ends", "explicit_ranges"]


@dataclass(slots=True)
class Ends:
    """The ends that are stated for a variable, both inclusive; each is the largest low and the smallest high of
    its list. ``skips`` says that the user has stated a high end, so that points out of range are skipped.
    """

    lows: list[Polynomial] = field(default_factory=list)
    highs: list[Polynomial] = field(default_factory=list)
    skips: bool = False


def explicit_ranges(root: Level, algebra: SizeAlgebra) -> dict[str, Ends]:
    """The stated ends of every variable of ``root`` and the reductions in it that has some."""
    found: dict[str, Ends] = {}
    for level in levels_of(root):
        for given in level.ranges:
            ends = found.setdefault(given.variable, Ends())
            ends.lows.append(algebra.form(given.low))
            ends.highs.append(algebra.form(given.high) - 1)
            ends.skips |= given.stated
        for condition in level.conditions:
            _take(condition, level, algebra, found)
    return found


def _take(condition: Expr, level: Level, algebra: SizeAlgebra, found: dict[str, Ends]) -> None:
    # A condition is taken as a whole: a high end alone implies 0 <= i, but not in a <= i < b.
    stated: dict[str, Ends] = {}
    for part in conjuncts(condition):
        for name, low, high in _ends(part, level, algebra):
            ends = stated.setdefault(name, Ends())
            ends.lows.extend(low)
            ends.highs.extend(high)
    generated = {given.variable for given in level.ranges}
    for name, ends in stated.items():
        both = found.setdefault(name, Ends())
        # In `for k in range(-2, 3) if k < 1` the generator states the low end.
        both.lows.extend(ends.lows or ([] if name in generated else [Polynomial.number(0)]))
        both.highs.extend(ends.highs)
        both.skips |= bool(ends.highs)


def _ends(part: Expr, level: Level, algebra: SizeAlgebra) -> Iterator[tuple[str, list[Polynomial], list[Polynomial]]]:
    if not isinstance(part, Apply) or part.primitive not in ("lt", "le", "gt", "ge", "eq"):
        return
    if part.arguments[0].dtype != "int64":
        return
    try:
        left, right = (algebra.form(argument) for argument in part.arguments)
    except NotAffine:
        return
    if part.primitive in ("gt", "ge"):
        left, right = right, left
    # left <= right, left < right or left == right
    difference = right - left - (1 if part.primitive in ("lt", "gt") else 0)
    names = difference.variables
    if len(names) != 1:
        return
    (name,) = names
    factor = difference.coefficient(name).value
    if name not in level.variables or factor not in (1, -1) or not difference.linear_in(name):
        return
    rest = difference.without(name)
    if factor == 1:  # name + rest >= 0
        yield name, [-rest], [-rest] if part.primitive == "eq" else []
    else:
        yield name, [rest] if part.primitive == "eq" else [], [rest]
