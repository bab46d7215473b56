"""What a front end hands to range inference: a statement whose ranges, extents and nested reductions are still open."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcdsl.ir.expressions import ExplicitRange, Expr
from tcdsl.ir.program import Access, Assertion, Start, Statement, Tensor
from tcdsl.span import Span

__all__ = ["Resolved", "Sketch"]


@dataclass(frozen=True, slots=True)
class Sketch:
    """A statement before range inference.

    ``target.tensor`` is the new tensor's name. ``extents`` has one entry per axis, ``None`` where the extent is to be
    inferred. ``mode`` is ``fresh`` (rule 2), ``declared`` or ``existing`` (rule 3), or ``part``: a part of a tensor,
    ``s[1:]``, whose points are known. ``conditions`` are bool expressions, in order; range inference decides which of
    them are explicit ranges, filters, or tests on data. ``filters`` are conditions that came from brackets
    (``O[i] += x[i] * (i < 3)``): tested after ``conditions``, never an explicit range; their reads are accesses like
    those of ``value``. ``value`` is cast to the compute type of ``dtype`` and may hold `Reduction` nodes; ``Read``
    boundaries are as the user wrote them, ``SKIP`` by default, with ``CHECK`` on data indices. ``variables`` lists the
    index variables in the order of first occurrence.

    ``previous`` is the tensor that holds the target's cells before the statement, if it has any. ``resets`` says that
    the statement starts all of them anew, by ``start``; ``restarts``, that it does so with those that the target's
    index list can reach where these conditions hold (`tcdsl.frontend.stores.partial_resets` records such a sketch).
    ``sized`` is the statement of the same function that has inferred the extents of an existing target, if one has;
    ``weak`` says that only whole numbers of Python have given the target its type.
    """

    target: Access
    dtype: str
    extents: tuple[Expr | None, ...]
    mode: str
    accumulate: str
    start: Start
    value: Expr
    variables: tuple[str, ...]
    ranges: tuple[ExplicitRange, ...] = ()
    conditions: tuple[Expr, ...] = ()
    filters: tuple[Expr, ...] = ()
    unique: bool = False
    oob: str = "check"
    label: str = ""
    previous: str = ""
    resets: bool = False
    restarts: tuple[Expr, ...] | None = None
    weak: bool = False
    sized: Span | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What range inference makes of a sketch.

    ``statements`` in order, the last one writing the sketch's target; the others compute nested reductions into
    temporary tensors. ``tensors`` declares what the statements make, in the same order. ``assertions`` hold at the
    call.
    """

    statements: tuple[Statement, ...]
    tensors: tuple[Tensor, ...]
    assertions: tuple[Assertion, ...]
