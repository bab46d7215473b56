"""What can become known of a dimension, and which facts contradict each other.

Each function draws the conclusions that follow at once, changes the class of the dimension through the transaction, and
wakes the constraints that wait for it. Every change makes a class know more: see the README for why this ends.
"""

from __future__ import annotations

from tcdsl.rows.inference.variables.origin import Contradiction, Reason, SourcePlace
from tcdsl.rows.inference.variables.row import Dimension, RowOwner
from tcdsl.rows.inference.variables.transaction import Transaction

__all__ = [
    "equate",
    "set_cap",
    "set_fallback",
    "set_label",
    "set_least",
    "set_minimum",
    "set_owners",
    "set_size",
]


def set_size(
    transaction: Transaction, dimension: Dimension, size: int, reason: Reason, place: SourcePlace | None = None
) -> None:
    """``dimension`` has this size."""
    root = dimension.root
    if root.size is not None:
        if root.size != size:
            raise _differ(root.size, root.reason, size, reason, place)
        return
    if size < root.minimum:
        raise _too_small(size, reason, root.minimum, root.minimum_reason, place)
    if root.cap is not None and size not in (1, root.cap):
        raise _does_not_stretch(size, reason, root.cap, root.cap_reason, place)
    transaction.set(root, "size", size)
    transaction.set(root, "reason", reason)
    transaction.retire(root)


def set_cap(
    transaction: Transaction,
    dimension: Dimension,
    cap: int,
    reason: Reason,
    label: tuple[str, Reason] | None = None,
    place: SourcePlace | None = None,
) -> None:
    """``dimension`` broadcasts into an axis of size ``cap``: it has that size, or size 1."""
    root = dimension.root
    if root.size is not None:
        if root.size not in (1, cap):
            raise _does_not_stretch(root.size, root.reason, cap, reason, place)
    elif cap == 1 or (root.cap is not None and root.cap != cap):
        if cap == 1 and label is not None:
            set_label(transaction, root, *label, place)
        set_size(transaction, root, 1, reason, place)
    elif root.minimum > (1 if cap else 0):
        set_size(transaction, root, cap if root.minimum > 1 else 1, reason, place)
    elif root.cap is None:
        transaction.set(root, "cap", cap)
        transaction.set(root, "cap_reason", reason)
        transaction.set(root, "cap_label", label)
        transaction.wake(root)


def set_minimum(
    transaction: Transaction, dimension: Dimension, minimum: int, reason: Reason, place: SourcePlace | None = None
) -> None:
    """``dimension`` is at least ``minimum``."""
    root = dimension.root
    if minimum <= root.minimum:
        return
    if root.size is not None:
        if root.size < minimum:
            raise _too_small(root.size, root.reason, minimum, reason, place)
        return
    transaction.set(root, "minimum", minimum)
    transaction.set(root, "minimum_reason", reason)
    if root.cap is None or minimum <= (1 if root.cap else 0):
        transaction.wake(root)
    elif minimum > 1:
        # Larger than 1, so that it does not stretch.
        set_size(transaction, root, root.cap, root.cap_reason, place)
    else:
        set_size(transaction, root, 1, root.cap_reason, place)


def set_label(
    transaction: Transaction, dimension: Dimension, label: str, reason: Reason, place: SourcePlace | None = None
) -> None:
    """``dimension`` has this label. Axes of data keep theirs, or none."""
    root = dimension.root
    if root.label is not None:
        if root.label != label:
            raise Contradiction(
                f"one axis has two labels: {root.label!r} from {root.label_reason}, and {label!r} from {reason}",
                hint="give both axes the same label, or one of them none",
                place=place,
            )
    elif not root.fixed:
        transaction.set(root, "label", label)
        transaction.set(root, "label_reason", reason)
        transaction.wake(root)


def set_least(transaction: Transaction, dimension: Dimension, least: int) -> None:
    """Closing makes ``dimension`` this large, and not larger."""
    root = dimension.root
    if root.size is None and (root.least is None or root.least < least):
        transaction.set(root, "least", least)


def set_fallback(transaction: Transaction, dimension: Dimension, size: int) -> None:
    """``dimension`` has this size if nothing else is found."""
    root = dimension.root
    if root.size is None and root.fallback is None:
        transaction.set(root, "fallback", size)


def set_owners(transaction: Transaction, dimension: Dimension, owners: tuple[RowOwner, ...]) -> None:
    """``dimension`` is an axis of these parameters."""
    root = dimension.root
    merged = tuple(dict.fromkeys(root.owners + owners))
    if root.size is None and merged != root.owners:
        transaction.set(root, "owners", merged)


def equate(transaction: Transaction, left: Dimension, right: Dimension, place: SourcePlace | None = None) -> None:
    """Both are one axis: sizes and labels agree."""
    left, right = left.root, right.root
    if left is right:
        return
    if left.fixed and not right.fixed:
        left, right = right, left
    if right.fixed:
        # Axes of data are compared with. They are never merged, so that one use does not affect others.
        if right.size is not None:
            set_size(transaction, left, right.size, right.reason, place)
        if right.label is not None:
            set_label(transaction, left, right.label, right.label_reason, place)
        return
    if left.size is not None and right.size is not None and left.size != right.size:
        raise _differ(left.size, left.reason, right.size, right.reason, place)
    # The one that fewer constraints wait for is forwarded: a chain of operations costs the same at each step.
    kept, gone = (left, right) if len(left.watchers) >= len(right.watchers) else (right, left)
    transaction.set(gone, "forward", kept)
    transaction.retire(gone)
    if gone.label is not None:
        set_label(transaction, kept, gone.label, gone.label_reason, place)
    set_owners(transaction, kept, gone.owners)
    if gone.least is not None:
        set_least(transaction, kept, gone.least)
    if gone.fallback is not None:
        set_fallback(transaction, kept, gone.fallback)
    set_minimum(transaction, kept, gone.minimum, gone.minimum_reason, place)
    if gone.cap is not None:
        set_cap(transaction, kept, gone.cap, gone.cap_reason, gone.cap_label, place)
    if gone.size is not None:
        set_size(transaction, kept, gone.size, gone.reason, place)


def _differ(size: int, reason: Reason, other: int, why: Reason, place: SourcePlace | None) -> Contradiction:
    return Contradiction(f"the sizes of axes differ: {reason} is {size}, and {why} is {other}", place=place)


def _does_not_stretch(size: int, reason: Reason, cap: int, why: Reason, place: SourcePlace | None) -> Contradiction:
    fact = f"an axis of size {size} does not broadcast to size {cap}: {reason} is {size}, and {why} is {cap}"
    return Contradiction(fact, place=place)


def _too_small(size: int, reason: Reason, minimum: int, why: Reason, place: SourcePlace | None) -> Contradiction:
    return Contradiction(f"{why} needs an axis of size {minimum} or more, but {reason} is {size}", place=place)
