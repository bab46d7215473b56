"""The rounds of a loop: how many there are, in the sizes of a body, and going through them backwards."""

from __future__ import annotations

from collections.abc import Mapping

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, SizeValue, size_names, substitute
from tcdsl.ir.program import AxisExtent, Program, Repeat
from tcdsl.polyhedra.linear import normalized

__all__ = [
    "backwards",
    "count_of_sizes",
    "extents_around",
    "in_body",
    "largest_extent",
    "number_of",
]


def count_of_sizes(repeat: Repeat) -> bool:
    """Whether the sizes of a call say how often a loop runs."""
    return repeat.condition is None and not repeat.read_by_ends


def extents_around(body: Program, shapes: Mapping[str, tuple[Expr, ...]]) -> dict[Expr, Expr]:
    """The sizes of a body that are extents of its inputs, as extents of the tensors around, which have these shapes."""
    return {
        SizeValue(size.name): shapes[size.source.tensor][size.source.axis]
        for size in body.sizes
        if isinstance(size.source, AxisExtent) and size.source.tensor in shapes
    }


def in_body(count: Expr, around: Mapping[Expr, Expr]) -> Expr | None:
    """A number of rounds in the sizes of a body, if it is made of the extents ``around`` that they stand for."""
    known: dict[Expr, Expr] = {}
    for inner, outer in around.items():
        known.setdefault(outer, inner)
    if count in known:
        return known[count]
    plain: dict[Expr, Expr] = {outer: inner for outer, inner in known.items() if isinstance(outer, SizeValue)}
    if all(SizeValue(name) in plain for name in size_names(count)):
        return substitute(count, plain)
    return None


def backwards(count: Expr, number: Expr) -> Expr:
    """The round that comes as the given one, counted from the last."""
    return normalized(apply("sub", apply("sub", count, integer(1)), number))


def number_of(body: Program) -> str | None:
    """The size that is the number of the round, if it is a size."""
    counter = body.inputs[0]
    numbers = (size.name for size in body.sizes if size.source == AxisExtent(counter.name, 0))
    return next(numbers, None) if counter.shape else None


def largest_extent(extent: Expr, body: Program, number: str | None, count: Expr) -> Expr:
    """An extent that may depend on the round, as it is in the first or in the last one, whichever is larger."""
    sources: dict[Expr, Expr] = {}
    for size in body.sizes:
        if not isinstance(size.source, AxisExtent):
            source = substitute(size.source, sources)
            if number in size_names(source):
                sources[SizeValue(size.name)] = source
    extent = substitute(extent, sources)
    if number is None or number not in size_names(extent):
        return extent
    first, last = integer(0), apply("sub", count, integer(1))
    ends = (normalized(substitute(extent, {SizeValue(number): end})) for end in (first, last))
    return apply("max", *ends)
