"""Axes that broadcast to one."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from tcdsl.rows.inference.equations.facts import (
    equate,
    set_cap,
    set_fallback,
    set_label,
    set_least,
    set_size,
)
from tcdsl.rows.inference.variables.origin import Contradiction, Origin, SourcePlace
from tcdsl.rows.inference.variables.row import Dimension
from tcdsl.rows.inference.variables.transaction import ShapeConstraint, ShapeVariable, Transaction

__all__ = ["AxisJoin"]


class AxisJoin(ShapeConstraint):
    """``operands`` broadcast to ``result``: each has its size, or size 1.

    If it is ``exact``, the result is the least such axis: it has size 1 only if all operands have, and any other size
    only if one of them has. It is not while it is open which operands have an axis here (`RowJoin`).
    """

    __slots__ = ("_result", "exact", "operands", "place")

    def __init__(
        self,
        result: Dimension,
        operands: tuple[Dimension, ...],
        origin: Origin,
        *,
        exact: bool,
        place: SourcePlace | None = None,
    ) -> None:
        super().__init__(origin)
        self._result = _held(result, strongly=self.kept)
        self.operands = operands
        self.exact = exact
        self.place = place

    @property
    def result(self) -> Dimension:
        """The axis that is determined."""
        found = self._result() if isinstance(self._result, weakref.ref) else self._result
        # If it is gone nothing depends on it: any other does.
        return Dimension() if found is None else found.root

    @property
    def is_waiting(self) -> bool:
        """Whether the result is not known, and is there at all."""
        return not self.done and (not isinstance(self._result, weakref.ref) or self._result() is not None)

    def variables(self) -> tuple[Iterable[ShapeVariable], Iterable[ShapeVariable]]:
        """The result, if it is not known, and the operands that are not."""
        result = self.result
        operands = [axis.root for axis in self.operands if axis.root.size is None]
        return ([result] if result.size is None else []), operands

    def narrow(self, transaction: Transaction) -> None:
        """Sizes other than 1, and labels, go up; 1 and upper limits go down; what is left alone is equal."""
        result = self.result
        self._up(transaction, result)
        unknown = self._down(transaction, result.root)
        self._conclude(transaction, result.root, unknown)
        transaction.set(self, "_result", _held(result.root, strongly=self.kept))

    def _conclude(self, transaction: Transaction, result: Dimension, unknown: list[Dimension]) -> None:
        """What follows from there being no more, or one more, that is not known."""
        itself = any(axis.root is result for axis in self.operands)
        if not self.exact:
            if result.size is not None and not unknown:
                transaction.finish(self)
            return
        if itself or self._reached(result):
            if not unknown:
                transaction.finish(self)
        elif not unknown:
            if result.size not in (None, 1):
                raise Contradiction(
                    f"nothing stretches to size {result.size} here: {result.reason} is {result.size}, "
                    "and all that it is made from is 1",
                    place=self.place,
                )
            transaction.finish(self)
            set_size(transaction, result, 1, self.operands[0].root.reason, self.place)
        elif len(unknown) == 1:
            transaction.finish(self)
            equate(transaction, result, unknown[0], self.place)

    def _reached(self, result: Dimension) -> bool:
        return result.size is not None and any(axis.root.size == result.size for axis in self.operands)

    def _up(self, transaction: Transaction, result: Dimension) -> None:
        for operand in self.operands:
            axis, result = operand.root, result.root
            if axis is result:
                continue
            if axis.label is not None:
                set_label(transaction, result, axis.label, axis.label_reason, self.place)
            if axis.size is None:
                continue
            if axis.size != 1:
                if result.size is not None and result.size != axis.size:
                    raise self._no_common_size(axis, result)
                set_size(transaction, result, axis.size, axis.reason, self.place)
            elif axis.weak:
                set_fallback(transaction, result, 1)
            else:
                set_least(transaction, result, 1)

    def _down(self, transaction: Transaction, result: Dimension) -> list[Dimension]:
        """The operands that remain unknown, each once."""
        limit = result.cap if result.size is None else result.size
        if limit is not None:
            reason = result.cap_reason if result.size is None else result.reason
            label = None if result.label is None else (result.label, result.label_reason)
            for operand in self.operands:
                if operand.root is not result and operand.root.size is None:
                    set_cap(transaction, operand, limit, reason, label or result.cap_label, self.place)
        found = [axis.root for axis in self.operands if axis.root.size is None and axis.root is not result.root]
        return list(dict.fromkeys(found))

    def _no_common_size(self, axis: Dimension, result: Dimension) -> Contradiction:
        sizes = f"{result.reason} is {result.size}, and {axis.reason} is {axis.size}"
        fact = f"axes of sizes {result.size} and {axis.size} do not broadcast to one"
        return Contradiction(f"{fact}: {sizes}", place=self.place)


def _held(result: Dimension, *, strongly: bool) -> Dimension | weakref.ref[Dimension]:
    """How a join holds its result: one that is not known holds the join."""
    return result if strongly or result.size is not None else weakref.ref(result)
