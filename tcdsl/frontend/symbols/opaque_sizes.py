"""Sizes that are products, quotients and remainders of sizes: what they are called, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, size_names, transform
from tcdsl.ir.program import AxisExtent, Size, Tensor
from tcdsl.ir.sizes.known_sizes import never_negative
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.size_facts import SizeFacts

__all__ = ["learn_quotients", "mentioned", "named_sizes", "opaque_facts", "with_declared_extents"]


def named_sizes(expr: Expr, opaque_size: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with names for what domains cannot hold: N * M and N // K, but no sums, and no quotients by integers."""

    def opaque(node: Expr) -> Expr:
        if isinstance(node, Apply) and node.primitive in ("mul", "floor_div", "mod"):
            left, right = node.arguments
            if node.primitive == "mul" and not isinstance(left, Constant) and not isinstance(right, Constant):
                return opaque_size(node)
            if node.primitive != "mul" and not (isinstance(right, Constant) and right.value > 0):
                return opaque_size(node)
        return node

    return transform(expr, opaque)


def opaque_facts(size: Size, known: Callable[[str], bool]) -> list[Expr]:
    """What holds for a size by its definition: ``N // K`` is at most N, and ``(N - 5) % K`` below K, as in Python.

    ``known`` says of a size by its name whether it is never negative.
    """
    name = SizeValue(size.name)
    match size.source:
        case Apply(primitive="floor_div", arguments=(dividend, _)) if never_negative(size.source, known):
            return [apply("le", name, dividend)]
        case Apply(primitive="mod", arguments=(dividend, divisor)) if never_negative(size.source, known):
            below = apply("lt", name, apply("max", divisor, integer(1)))
            return [below, apply("le", name, dividend)] if never_negative(dividend, known) else [below]
        case _:
            return []


def learn_quotients(facts: SizeFacts, sizes: Iterable[Size], known: Callable[[str], bool]) -> None:
    """Add to ``facts`` what holds for quotients that they, not their forms, say are not negative.

    ``(N - 1 - t) // K`` is one where t is below N.
    """
    for size in sizes:
        match size.source:
            case Apply(primitive="floor_div", arguments=(dividend, divisor)) if never_negative(
                divisor, known
            ) and not never_negative(dividend, known):
                try:
                    signed = not facts.never(apply("lt", dividend, integer(0)))
                except NotAffine:
                    continue
                if not signed:
                    facts.add(apply("ge", SizeValue(size.name), integer(0)))
                    facts.add(apply("le", SizeValue(size.name), dividend))
            case _:
                pass


def mentioned(expr: Expr, sizes: Mapping[str, Size]) -> frozenset[str]:
    """All sizes that an expression mentions, and those that their definitions mention."""
    found = size_names(expr)
    for name in size_names(expr):
        source = sizes[name].source
        if not isinstance(source, AxisExtent):
            found |= mentioned(source, sizes)
    return found


def with_declared_extents(
    tensor: Tensor, declared: Sequence[Expr | None], opened: Collection[str], existing: bool
) -> Tensor:
    """``tensor`` with the extents that are ``declared`` where it is ``existing``, whatever is known of them here, and
    where those are open: what they are so far says nothing.
    """

    def extent(own: Expr | None, known: Expr) -> Expr:
        stays = existing or (isinstance(own, SizeValue) and own.name in opened)
        return own if own is not None and stays else known

    return replace(tensor, shape=tuple(map(extent, declared, tensor.shape)))
