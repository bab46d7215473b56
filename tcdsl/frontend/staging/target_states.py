"""The states of a statement's target, and what a name without a value holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import Expr
from tcdsl.span import Span

__all__ = ["UNBOUND", "Declared", "Existing", "Fresh", "TargetState", "Unbound"]


class Unbound(Enum):
    """The type of `UNBOUND`, which stands for a name without a value."""

    UNBOUND = "unbound"


UNBOUND = Unbound.UNBOUND


@dataclass(frozen=True, slots=True)
class Fresh:
    """A target that the statement creates; its extents are inferred."""

    label: str
    mode = "fresh"
    extents = None
    previous = ""
    sized = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A target that was declared and not written yet: ``O: real[N, X]``, ``O = output(N, X)``.

    ``dtype`` is ``"real"`` for the floating type of what is written, ``None`` for the type that a fresh target gets.
    Where only numbers of Python are written ``real`` is the type of that name.
    """

    extents: tuple[Expr, ...]
    dtype: str | None
    label: str
    real: str = "float64"
    mode = "declared"
    previous = ""
    sized = None


@dataclass(frozen=True, slots=True)
class Existing:
    """A target that holds cells already. ``declared`` stays true for one that was declared.

    ``sized`` is the statement of the function that has inferred its extents, if one has.
    """

    tensor: SymbolicTensor
    declared: bool = False
    sized: Span | None = None

    @property
    def mode(self) -> str:
        """How range inference treats its extents."""
        return "declared" if self.declared else "existing"

    @property
    def label(self) -> str:
        """What the user calls it."""
        return self.tensor.label

    @property
    def extents(self) -> tuple[Expr, ...]:
        """Its extents; a target that is fresh has none yet."""
        return self.tensor.extents

    @property
    def previous(self) -> str:
        """The version that the statement continues."""
        return self.tensor.name


TargetState = Fresh | Declared | Existing
