"""Why a rule or a pass leaves a statement as it is: a value, which is a text when somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from tcdsl.ir.expressions import Boundary, Cast, Constant, Expr, IndexValue, Read, is_affine_index, transform
from tcdsl.ir.text.expression_printer import format_expr

__all__ = ["Declined"]


_IN_RANGE = frozenset((Boundary.SKIP, Boundary.CHECK))
_LONGEST = 60
"""Characters of what is shown of an expression."""


@dataclass(frozen=True, slots=True)
class Declined:
    """``Declined("{} is not affine in {}", (read, index("k")))``: a reason, and what it is about, as a text with
    "`A[i, k * k]` is not affine in k".

    It stands in the place of what would have been found, and is false. ``what`` is what did not happen, as in
    ``of("no register tiles")``.
    """

    reason: str
    about: tuple[Expr | str | int, ...] = ()
    what: str = ""

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        text = self.reason.format(*map(_shown, self.about))
        return f"{self.what}: {text}" if self.what else text

    def of(self, what: str) -> Declined:
        """The same reason for something that did not happen."""
        return replace(self, what=what)

    def changed(self, change: Callable[[Expr], Expr]) -> Declined:
        """The same about other expressions, as where names change."""
        about = tuple(part if isinstance(part, str | int) else change(part) for part in self.about)
        return replace(self, about=about)


def _shown(part: Expr | str | int) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return f"{part:,}"
    if isinstance(part, IndexValue):
        return part.name
    if isinstance(part, Constant):
        return f"{part.value:,}"
    text = format_expr(transform(part, _plain))
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + ' ...'}`"


def _plain(part: Expr) -> Expr:
    # Users do not write that an index made of index variables is exact, nor that indices are in range.
    match part:
        case Cast(operand=operand, dtype="integer"):
            return operand
        case Read(indices=indices, boundaries=boundaries):
            plain = (Boundary.SKIP if is_affine_index(index) else Boundary.CHECK for index in indices)
            own = (each if each not in _IN_RANGE else own for each, own in zip(boundaries, plain, strict=True))
            return replace(part, boundaries=tuple(own))
        case _:
            return part
