"""Names for what lowering introduces: scalars, loop variables, tensors between."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Names"]


class Names:
    """Hands out names that are not taken: ``Names(["t"]).fresh("t")`` is ``"t1"``."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def take(self, names: Iterable[str]) -> None:
        """These names are in use from here on."""
        self._taken.update(names)

    def fresh(self, hint: str) -> str:
        """``hint`` if it is free, else ``hint`` with the first number that makes it so."""
        name, number = hint, 0
        stem = hint.rstrip("0123456789") or hint
        while name in self._taken:
            number += 1
            name = f"{stem}{number}"
        self._taken.add(name)
        return name
