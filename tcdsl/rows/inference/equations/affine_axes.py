"""Axes that a spec indexes with affine forms: ``2*o + k``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from tcdsl.rows.inference.equations.facts import set_least, set_minimum, set_size
from tcdsl.rows.inference.variables.origin import Contradiction, Origin, Reason, SourcePlace
from tcdsl.rows.inference.variables.row import Dimension
from tcdsl.rows.inference.variables.transaction import ShapeConstraint, ShapeVariable, Transaction

__all__ = ["AffineAxis", "ReadAxis", "WrittenAxis"]

AffineTerm = tuple[int, str, Dimension]


class AffineAxis(ShapeConstraint):
    """``axis`` is indexed by ``offset`` plus ``coefficient * index`` for each of ``terms``.

    With sizes n of the indices, the largest index is ``offset + sum(c * (n - 1))`` over positive coefficients, and the
    least one ``offset - sum(|c| * (n - 1))`` over negative ones, which is not negative.
    """

    __slots__ = ("axis", "offset", "place", "terms")

    def __init__(
        self, axis: Dimension, terms: tuple[AffineTerm, ...], offset: int, origin: Origin, place: SourcePlace
    ) -> None:
        super().__init__(origin)
        self.axis = axis
        self.terms = terms
        self.offset = offset
        self.place = place

    def variables(self) -> tuple[Iterable[ShapeVariable], Iterable[ShapeVariable]]:
        """All that are unknown: any of them may be what the others determine."""
        return self._unknown(), ()

    def narrow(self, transaction: Transaction) -> None:
        """Draw what conclusions the side of the spec allows, once all but one are known."""
        self._check_least_index()
        self._narrow(transaction)

    @abstractmethod
    def _narrow(self, transaction: Transaction) -> None: ...

    @abstractmethod
    def choice(self) -> tuple[Dimension, int] | None:
        """For closing: where one is unknown and several sizes would do, the one that the language says."""

    def choose(self, transaction: Transaction) -> None:
        """Take the `choice`."""
        found = self.choice()
        if found is not None:
            set_size(transaction, *found, self.reason, self.place)

    @property
    def text(self) -> str:
        """The form, as the user wrote it."""
        return self.place.text[self.place.start : self.place.stop]

    @property
    def reason(self) -> Reason:
        """For sizes that this determines."""
        return Reason(text=f"`{self.text}` in `{self.place.text}`")

    def _unknown(self) -> list[Dimension]:
        roots = [self.axis.root, *(size.root for _, _, size in self.terms)]
        return list(dict.fromkeys(root for root in roots if root.size is None))

    def _part(self, sign: int) -> tuple[int, list[tuple[int, Dimension]]]:
        """What the known sizes of coefficients of this sign add to the index, and the others."""
        total, others = 0, []
        for coefficient, _, size in self.terms:
            if coefficient * sign <= 0:
                continue
            known = size.root.size
            if known is None:
                others.append((abs(coefficient), size.root))
            else:
                total += abs(coefficient) * (known - 1)
        return total, others

    def _check_least_index(self) -> None:
        total, others = self._part(-1)
        if not others and total > self.offset and all(size.root.size != 0 for _, _, size in self.terms):
            raise Contradiction(
                f"`{self.text}` is {self.offset - total} where the indices are largest{self._given()}",
                hint=f"add {total - self.offset} to the index",
                place=self.place,
            )

    def _largest_subtracted(self) -> tuple[Dimension, int] | None:
        """The largest size that keeps the index from being negative."""
        total, others = self._part(-1)
        if len(others) != 1 or total > self.offset:
            return None
        coefficient, size = others[0]
        return size, (self.offset - total) // coefficient + 1

    def _given(self) -> str:
        sizes = ", ".join(f"{name} = {size.root.size}" for _, name, size in self.terms if size.root.size is not None)
        return f", with sizes {sizes}" if sizes else ""


class ReadAxis(AffineAxis):
    """An axis of an operand: the indices take all positions at which it can be read ("valid" size).

    With slack s, the positions after the largest index, ``0 <= s < c`` for the largest positive coefficient c: for
    ``c*o + d*k`` that is ``o = (axis - 1 - d*(k - 1) - offset) // c + 1``.
    """

    __slots__ = ()

    def _narrow(self, transaction: Transaction) -> None:
        step = max((c for c, _, _ in self.terms if c > 0), default=None)
        if step is None:
            set_minimum(transaction, self.axis, self.offset + 1, self.reason, self.place)
        else:
            total, others = self._part(1)
            if self.axis.root.size is None:
                others.append((-1, self.axis.root))
            if len({size for _, size in others}) <= 1:
                self._solve(transaction, total, others, step)
        if not self._unknown():
            transaction.finish(self)

    def _slack(self, total: int) -> int:
        """Positions after the largest index, in which the unknown size counts as 1."""
        return (self.axis.root.size if self.axis.root.size is not None else 1) - 1 - self.offset - total

    def _range(self, total: int, others: list[tuple[int, Dimension]], step: int) -> tuple[int, int | None]:
        """The least and the largest n - 1 for the unknown size n, by ``0 <= slack - c * (n - 1) < step``."""
        slack, coefficient = self._slack(total), sum(c for c, _ in others)
        if coefficient > 0:
            return max(-1, -((step - 1 - slack) // coefficient)), slack // coefficient
        if coefficient < 0:
            return max(-1, -(slack // -coefficient)), (step - 1 - slack) // -coefficient
        return (-1, None) if 0 <= slack < step else (0, -1)

    def _solve(self, transaction: Transaction, total: int, others: list[tuple[int, Dimension]], step: int) -> None:
        if not others:
            slack = self._slack(total)
            if not 0 <= slack < step:
                raise self._misfit(slack)
            return
        least, largest = self._range(total, others, step)
        if largest is not None and largest < least:
            raise self._misfit(self._slack(total))
        if least == largest:
            set_size(transaction, others[0][1], least + 1, self.reason, self.place)

    def choice(self) -> tuple[Dimension, int] | None:
        """The largest sizes of indices; the least axis."""
        total, others = self._part(1)
        if self.axis.root.size is None:
            others.append((-1, self.axis.root))
        step = max((c for c, _, _ in self.terms if c > 0), default=None)
        if step is None or len({size for _, size in others}) != 1:
            return self._largest_subtracted()
        least, largest = self._range(total, others, step)
        if largest is None:
            return None
        return others[0][1], 1 + (least if sum(c for c, _ in others) < 0 else largest)

    def _misfit(self, slack: int) -> Contradiction:
        axis = self.axis.root
        if axis.size is None:
            fact = f"no size of the axis fits `{self.text}`{self._given()}"
        elif slack < 0:
            more = "at least " if self._unknown() else ""
            needed = axis.size - slack
            fact = f"`{self.text}` needs an axis of {more}{needed}{self._given()}, but {axis.reason} is {axis.size}"
        else:
            fact = f"`{self.text}` leaves {slack} of the {axis.size} positions of {axis.reason} unread{self._given()}"
        notes = [f"{name} is {s.root.size}: {s.root.reason}" for _, name, s in self.terms if s.root.size is not None]
        return Contradiction(fact, place=self.place, notes=notes)


class WrittenAxis(AffineAxis):
    """An axis of the result: large enough for the largest index, and if it is made here, not larger."""

    __slots__ = ()

    def _narrow(self, transaction: Transaction) -> None:
        total, others = self._part(1)
        if not others:
            extent = max(0, self.offset + total + 1)
            set_minimum(transaction, self.axis, extent, self.reason, self.place)
            set_least(transaction, self.axis, extent)
        if all(size.root.size is not None for _, _, size in self.terms):
            transaction.finish(self)

    def variables(self) -> tuple[Iterable[ShapeVariable], Iterable[ShapeVariable]]:
        """The axis is determined by the indices."""
        unknown = self._unknown()
        return [each for each in unknown if each is self.axis.root], [u for u in unknown if u is not self.axis.root]

    def choice(self) -> tuple[Dimension, int] | None:
        """The largest size of an index that nothing but a known result limits."""
        total, others = self._part(1)
        extent = self.axis.root.size
        if extent is None or len(others) != 1 or extent - 1 - self.offset - total < 0:
            return self._largest_subtracted()
        coefficient, size = others[0]
        return size, (extent - 1 - self.offset - total) // coefficient + 1
