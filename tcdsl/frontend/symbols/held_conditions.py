"""Conditions that tensors of one cell hold, so that branches see what those say of sizes.

::

    b = t > 0 and x[t] > 0
    if b:
        s = s + x[t - 1]
"""

from __future__ import annotations

from itertools import islice

from tcdsl.ir.conjunctions import said_of_sizes
from tcdsl.ir.expressions import Expr, Read, transform, walk

__all__ = ["HeldConditions"]

# Longer ones are left where they are held: those of unrolled loops may double with each round.
_MOST_NODES = 200


class HeldConditions:
    """The conditions on sizes, among others, by the tensors that hold them."""

    def __init__(self) -> None:
        self._held: dict[str, Expr] = {}

    def hold(self, name: str, condition: Expr) -> None:
        """Say that the only cell of the tensor ``name`` holds a condition."""
        condition = self.asked(condition)
        short = len(list(islice(walk(condition), _MOST_NODES))) < _MOST_NODES
        if short and any(said_of_sizes(condition, holds) is not None for holds in (True, False)):
            self._held[name] = condition

    def forget(self, name: str) -> None:
        """The tensor ``name`` is known no longer."""
        self._held.pop(name, None)

    def asked(self, condition: Expr) -> Expr:
        """A condition with those that it reads."""

        def rule(node: Expr) -> Expr:
            return self._held.get(node.tensor, node) if isinstance(node, Read) and not node.indices else node

        return transform(condition, rule) if self._held else condition
