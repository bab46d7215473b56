"""How large a statement needs the open extents of its target to be."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from itertools import combinations

from tcdsl.errors import ShapeError, TcdslError
from tcdsl.ir.build import apply
from tcdsl.ir.expressions import Apply, Expr
from tcdsl.ir.program import Assertion, Neutral
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.size_facts import SizeFacts
from tcdsl.ranges.range_inference import resolve
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

__all__ = ["circular_extent", "larger_extent", "needed_extents"]


def needed_extents(
    sketch: Sketch, scope: ProgramScope, axes: Collection[int], known: Collection[int]
) -> tuple[dict[int, Expr], tuple[Assertion, ...]]:
    """The extents of the open ``axes`` that ``sketch`` needs, as it would on a fresh target, and what must hold.

    Along axes whose indices nothing else bounds, as in ``q[i] *= 2``, it runs over what there is, and needs no more.
    Only those can be such that are ``known``: earlier statements have said how large they are.
    """
    first: ShapeError | None = None
    for count in range(len(axes), 0, -1):
        for chosen in combinations(axes, count):
            if not set(axes).difference(chosen) <= set(known):
                continue
            extents = tuple(None if k in chosen else extent for k, extent in enumerate(sketch.extents))
            try:
                fresh = resolve(replace(sketch, extents=extents, mode="fresh", start=Neutral()), scope)
            except ShapeError as fault:
                first = first or fault
            else:
                return {k: fresh.tensors[-1].shape[k] for k in chosen}, tuple(fresh.assertions)
    if first is not None and not set(axes) <= set(known):
        raise first
    return {}, ()


def larger_extent(known: Expr, needed: Expr, facts: SizeFacts) -> Expr:
    """The larger one of two extents: one of them, where that can be told."""
    for one, other in ((known, needed), (needed, known)):
        with suppress(NotAffine):
            if one == other or facts.never(apply("gt", other, one)):
                return one
    return known if needed in _terms(known) else apply("max", known, needed)


def _terms(largest: Expr) -> list[Expr]:
    match largest:
        case Apply(primitive="max", arguments=(one, other)):
            return [*_terms(one), *_terms(other)]
    return [largest]


def circular_extent(name: str, label: str, span: Span | None) -> TcdslError:
    """The fault of a statement on ``label`` that makes its open extent larger than itself."""
    return ShapeError.at(
        f"the open extent `{name}` of `{label}` would depend on itself",
        span,
        "declare the target with an extent that is known, or write a range as a condition",
    )
