"""Dimensions: known sizes, and variables for those that are not known yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcdsl.rows.inference.variables.origin import Reason

if TYPE_CHECKING:
    from tcdsl.rows.inference.variables.row import RowOwner
    from tcdsl.rows.inference.variables.transaction import Watcher

__all__ = ["Dimension", "known_dimension"]


class Dimension:
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
        "__weakref__",
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
        "owners",
        "reason",
        "size",
        "watchers",
        "weak",
    )

    def __init__(self, owners: tuple[RowOwner, ...] = ()) -> None:
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
        self.owners = owners
        self.fixed = False
        self.weak = False
        self.watchers: list[Watcher] = []

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


_NO_REASON = Reason(text="an axis")


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
