"""Axes, and rows: sequences of axes, with a variable where more may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcdsl.rows.inference.variables.origin import Origin, Reason
from tcdsl.rows.inference.variables.transaction import ShapeVariable
from tcdsl.tracebacks import NamesTold

__all__ = ["EMPTY", "MOST_AXES", "Dimension", "Row", "RowOwner", "RowVariable", "known_dimension"]

_NO_REASON = Reason(text="an axis")

MOST_AXES = 64
"""How many axes a row can have: NumPy's arrays have no more. Inference terminates because there is a limit."""


class Dimension(ShapeVariable):
    """An axis: ``known_dimension(3)``, or a variable, ``Dimension()``.

    Variables that were found equal are one class; `root` is the member that speaks for it. All changes go through a
    `Transaction`, which can undo them. What is known of a class:

    - ``size``, and ``label``, with the reasons for both;
    - ``cap``: it broadcasts into an axis of this size, so it is ``cap`` or 1;
    - ``minimum``: it is at least this;
    - ``least``: unless constraints say more, closing makes it this: the extent that positions of a result write to, or
      1 because a data axis of size 1 is what broadcasts into it;
    - ``fallback``: the same, weaker: a number broadcasts into it, and it is 1 if nothing else is found;
    - ``owners``: the parameters of which it is an axis.

    A ``fixed`` dimension is an axis of data. Its size is known, and it is never changed: equations compare with it, and
    labels that others have do not stick to it. ``weak`` ones are those of numbers.
    """

    __slots__ = (
        "cap",
        "cap_label",
        "cap_reason",
        "fallback",
        "fixed",
        "forward",
        "label",
        "label_reason",
        "least",
        "minimum",
        "minimum_reason",
        "reason",
        "size",
        "weak",
    )

    def __init__(self, owners: tuple[RowOwner, ...] = ()) -> None:
        super().__init__(owners)
        self.forward: Dimension | None = None
        self.size: int | None = None
        self.reason: Reason = _NO_REASON
        self.label: str | None = None
        self.label_reason: Reason = _NO_REASON
        self.cap: int | None = None
        self.cap_reason: Reason = _NO_REASON
        self.cap_label: tuple[str, Reason] | None = None
        self.minimum = 0
        self.minimum_reason: Reason = _NO_REASON
        self.least: int | None = None
        self.fallback: int | None = None
        self.fixed = False
        self.weak = False

    @property
    def root(self) -> Dimension:
        """The member that speaks for the class."""
        found = self
        while found.forward is not None:
            found = found.forward
        return found

    def __str__(self) -> str:
        root = self.root
        size = "?" if root.size is None else str(root.size)
        return size if root.label is None else f"{root.label}={size}"

    def __repr__(self) -> str:
        return f"<Dimension {self}>"


def known_dimension(
    size: int,
    reason: Reason = _NO_REASON,
    label: tuple[str, Reason] | None = None,
    *,
    weak: bool = False,
) -> Dimension:
    """An axis of data."""
    made = Dimension()
    made.size = size
    made.reason = reason
    if label is not None:
        made.label, made.label_reason = label
    made.fixed = True
    made.weak = weak
    return made


@dataclass(frozen=True, slots=True)
class RowOwner:
    """The parameter whose row a variable stands for, and that row.

    ``optional`` rows may stay without axes where nothing determines them: the input row of ``"b"[n]``. ``origin`` is
    where the parameter is declared.
    """

    name: str
    row: str
    whole: Row
    optional: bool = False
    origin: Origin | None = None

    def place_of(self, axis: Dimension) -> str:
        """Which axis of the row ``axis`` is: ``output axis 2 from the right``."""
        resolved = self.whole.resolved
        found = [k for k, each in enumerate(reversed(resolved.trailing)) if each.root is axis.root]
        if found:
            return f"{self.row} axis {found[0] + 1} from the right"
        found = [k for k, each in enumerate(resolved.leading) if each.root is axis.root]
        return f"{self.row} axis {found[0] + 1} from the left" if found else f"an {self.row} axis"


class RowVariable(ShapeVariable):
    """Axes that are not known yet, nor how many there are.

    - ``binding``: the row that it was found to be;
    - ``least``: closing makes it empty, for example the axes to the left of those that a spec names;
    - ``fallback``: how many axes, of size 1, it stands for if nothing else is found, because it meets a number;
    - ``owners``: the parameters whose row it is part of.
    """

    __slots__ = ("binding", "fallback", "least")

    def __init__(self, owners: tuple[RowOwner, ...] = (), *, least: bool = False) -> None:
        super().__init__(owners)
        self.binding: Row | None = None
        self.least = least
        self.fallback: int | None = None


@dataclass(frozen=True, slots=True)
class Row(NamesTold):
    """``leading`` axes, a ``variable``, ``trailing`` axes; without a variable all axes are trailing.

    The rows of numbers determine others only where nothing else does. Those without axes have a ``fallback``: how many
    axes a row then has.
    """

    leading: tuple[Dimension, ...] = ()
    variable: RowVariable | None = None
    trailing: tuple[Dimension, ...] = ()
    fallback: int | None = None

    @property
    def resolved(self) -> Row:
        """The same row, with what is known by now of its variable."""
        leading, variable, trailing = self.leading, self.variable, self.trailing
        if variable is None or variable.binding is None:
            return self
        while variable is not None and variable.binding is not None:
            bound = variable.binding
            leading, variable, trailing = leading + bound.leading, bound.variable, bound.trailing + trailing
        return Row((), None, leading + trailing) if variable is None else Row(leading, variable, trailing)

    @property
    def closed(self) -> bool:
        """Whether it is known which axes there are."""
        return self.resolved.variable is None

    @property
    def least_length(self) -> int:
        """How many axes there are at least."""
        resolved = self.resolved
        return len(resolved.leading) + len(resolved.trailing)

    @property
    def open_axes(self) -> list[Dimension]:
        """The axes of a resolved row whose size is not known."""
        return [root for axis in (*self.leading, *self.trailing) if (root := axis.root).size is None]

    @property
    def is_known(self) -> bool:
        """Whether all sizes are known."""
        resolved = self.resolved
        return resolved.variable is None and all(axis.root.size is not None for axis in resolved.trailing)

    @property
    def is_weak(self) -> bool:
        """Whether nothing but numbers gave it its axes."""
        resolved = self.resolved
        if resolved.variable is not None:
            return False
        return all(axis.root.weak for axis in resolved.trailing) if resolved.trailing else self.fallback is not None

    @property
    def axes(self) -> tuple[Dimension, ...]:
        """The axes, of a closed row."""
        resolved = self.resolved
        if resolved.variable is not None:
            raise ValueError(f"the axes of the row {self} are not all known")
        return resolved.trailing

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes, of a row that is known: ``(2, 16)``."""
        found = tuple(axis.root.size for axis in self.axes)
        known = tuple(size for size in found if size is not None)
        if len(known) < len(found):
            raise ValueError(f"the sizes of the row {self} are not all known")
        return known

    def from_right(self, position: int) -> Dimension | None:
        """The axis at ``position`` from the right, counted from 0, of a resolved row, if that is known."""
        return self.trailing[-1 - position] if position < len(self.trailing) else None

    def _texts(self) -> Iterator[str]:
        resolved = self.resolved
        yield from map(str, resolved.leading)
        if resolved.variable is not None:
            yield "..."
        yield from map(str, resolved.trailing)

    def __str__(self) -> str:
        return ", ".join(self._texts()) or "()"

    def __repr__(self) -> str:
        return f"<Row {self}>"


EMPTY = Row()
