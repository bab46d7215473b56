"""`assert` and `raise` that only the call can decide: statements that fail.

::

    assert x[t] >= 0, "negative"      checked_2[int64(not condition)] |= true     for a tensor of one cell
                                      checked_3 = checked and checked_2[0]

An index that is out of range stops the program; the label of the tensor says what is raised. What a function returns is
its results where all checks have passed (`passed`): so nothing leaves a check out that comes before a result, in
derivatives neither. Rounds, and arms of branches, carry the truth value.

Conditions on sizes alone are asked at the call, before anything runs.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tcdsl.errors import RAISED, raised_by_user
from tcdsl.frontend.arrays.arithmetic import combine, element_of, record_elementwise
from tcdsl.frontend.running_loops.conditions import taken
from tcdsl.frontend.running_loops.round_counts import RoundCount
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.ir.build import apply, cast, constant, integer, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Constant, Expr, reads
from tcdsl.ir.program import Access, Neutral, Statement, Tensor
from tcdsl.polyhedra.boxes import box

__all__ = ["Shown", "both_passed", "builtin_kind", "passed", "record_check", "record_raise"]


class Shown(str):
    """How a message shows what only the call knows: as it is written, whatever its format."""

    __slots__ = ()

    def __format__(self, specification: str) -> str:
        return str(self)


def builtin_kind(error: BaseException) -> str:
    """The name of the first class of Python's own that an exception belongs to."""
    found = (kind for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind)
    return str(next(found).__name__)


def record_check(session: Session, condition: Any, kind: str, message: str, always: bool) -> None:
    """Record that ``kind(message)`` is raised where a condition does not hold.

    ``always`` says that this place is reached in every call, as far as it is no arm of a branch on sizes.
    """
    label = f"{RAISED}{kind}: {message}"
    expr = taken(session, condition)
    if isinstance(expr, Constant):
        if not expr.value:
            raise raised_by_user(label, session.location()).error()
        return
    if always and not any(reads(expr)):
        session.builder.require(expr, label, session.location())
        return
    if not any(reads(expr)):
        held = record_elementwise(session, Value(expr, None, "bool"), (), "holds")
        expr = held.cell(()).expr
    _record_failing(session, apply("not_", expr), label)


def record_raise(session: Session, arm: RoundCount, error: BaseException, always: bool) -> None:
    """Record that the ``arm`` of a branch that is being staged ends by raising ``error``."""
    kind = builtin_kind(error)
    message = str(error) if kind == type(error).__name__ else f"{type(error).__name__}: {error}"
    if arm.where is None or not arm.by_sizes:
        _record_failing(session, arm.count, f"{RAISED}{kind}: {message}")
    else:
        refused = SymbolicNumber(session.builder, apply("not_", arm.where), "bool", frozenset())
        record_check(session, refused, kind, message, always)


def _record_failing(session: Session, fails: Expr, label: str) -> None:
    builder, span = session.builder, session.location()
    made = Tensor(builder.fresh_name("checked"), "bool", (integer(1),), label, span)
    place = cast(cast(fails, "bool"), "int64")
    target = Access(made.name, (place,), span)
    points = Domain.from_set(box((), ()))
    builder.add_statement(Statement(target, "or", Neutral(), constant(True, "bool"), points, span=span), made)
    read = Value(plain_read(made.name, (integer(0),), "bool"), None, "bool")
    session.checked = both_passed(session, record_elementwise(session, read, (), "checked"))


def both_passed(session: Session, checked: SymbolicTensor) -> SymbolicTensor:
    """Whether the checks so far have passed, and those of which ``checked`` says it."""
    if session.checked is None:
        return checked
    element, _ = element_of(combine("and_", session.checked, checked), session)
    return record_elementwise(session, element, (), "checked")


def passed(session: Session, results: Sequence[SymbolicTensor]) -> list[SymbolicTensor]:
    """The results of what has been recorded, where all checks have passed."""
    if session.checked is None:
        return list(results)
    holds = session.checked.cell(()).expr
    made: list[SymbolicTensor] = []
    for tensor in results:
        element, extents = element_of(tensor, session)
        none = constant(0, element.expr.dtype) if element.expr.dtype != "bool" else constant(False, "bool")
        value = Value(apply("where", holds, element.expr, none), None, element.logical)
        found = record_elementwise(session, cast_value(value, tensor.element_type), extents, tensor.label)
        found.rows = tensor.rows
        made.append(found)
    return made
