"""What is said of names that a round, or an arm of a branch, gives what it cannot hand on."""

from __future__ import annotations

from typing import Any

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.running_loops.carried import Kind, kind_of
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.source.assigned_names import binding_of
from tcdsl.frontend.source.rewritten_functions import CHOICE, is_result
from tcdsl.frontend.staging.declarations import OfARound
from tcdsl.frontend.staging.session import Session
from tcdsl.span import Span

__all__ = [
    "changed_kind",
    "changed_value",
    "changed_view",
    "deleted_name",
    "number_after",
    "unbound_after",
]

_SAME = "which one ends it is known at the call only: let all return the same kind"

_ONE_KIND = "let both sides be of one kind: numbers, or arrays of one type and shape"


def changed_kind(name: str, before: Kind, after: Kind, arms: bool, first: bool, span: Span | None) -> TcdslError:
    """The fault of a name whose type or rank changes; ``arms`` says that it does in a branch, whose arms bind it
    ``first``.
    """
    kind = DtypeError if len(before.extents) == len(after.extents) else ShapeError
    old, new = str(before), str(after)
    if old == new:
        kind = ShapeError
        old, new = (f"{old} with {each.rows}" for each in (before, after))
    if is_result(name):
        return kind.at(f"this function returns {old} at one `return`, and {new} at another one", span, _SAME)
    if name.startswith(CHOICE):
        return kind.at(f"a choice of {old} or {new}: only the call knows which one", span, _ONE_KIND)
    if arms and first:
        fact = f"`{name}` is {old} in one arm of a branch that runs, but {new} in another one"
        return kind.at(fact, span, f"let all arms give `{name}` the same kind, or use another name in one of them")
    if arms:
        fact = f"`{name}` is {old} before a branch that runs, but {new} in an arm of it"
        return kind.at(fact, span, f"let all arms give `{name}` the same kind, or use another name in the arm")
    fact = f"`{name}` is {old} before a loop that runs, but {new} after a round"
    return kind.at(fact, span, f"bind `{name}` before the loop to what it is to be, or use another name in the round")


def changed_value(session: Session, name: str, before: Any, after: Any, arms: bool, span: Span | None) -> TcdslError:
    """The fault of a name that holds, before or after, what is no value of the program."""
    if is_result(name):
        return _other_result(session, before, after, span)
    if name.startswith(CHOICE):
        fact = (
            f"a choice of {_described(session, before)} or {_described(session, after)}: only the call knows which one"
        )
        return DslSyntaxError.at(fact, span, _ONE_KIND)
    if isinstance(after, PointValue):
        fact = f"`{name}` is a local definition, which a loop that runs cannot carry from round to round"
        if arms:
            fact = f"`{name}` is a local definition, which an arm of a branch that runs cannot give a new value"
        return DslSyntaxError.at(fact, span, f"store it: `{name}[...] = ...`")
    old, new = _described(session, before), _described(session, after)
    where = "an arm of a branch" if arms else "a loop"
    fact = f"`{name}` holds {old if old == new else f'{old}, then {new}'}, which changes in {where} that runs"
    hint = "the body is staged once: collect results by `ys[t, ...] = h`, or loop over integers"
    if before is None:
        hint = f"bind `{name}` before the loop to a value of the type and shape that rounds give it"
    return DslSyntaxError.at(fact, span, hint)


def _other_result(session: Session, one: Any, other: Any, span: Span | None) -> TcdslError:
    hint = _SAME
    if one is None or other is None:
        hint = "which one ends it is known at the call only: end the function by one too, after the loop or the branch"
    old, new = _described(session, one), _described(session, other)
    return DslSyntaxError.at(f"this function returns {old} at one `return`, and {new} at another one", span, hint)


def changed_view(name: str, arms: bool, span: Span | None) -> TcdslError:
    """The fault of a name that is another part of memory after a round."""
    where = "an arm of a branch" if arms else "a loop"
    fact = f"`{name}` is a part of memory, and becomes something else in {where} that runs"
    return DslSyntaxError.at(fact, span, f"bind `{name}` in the round, or write the part where it is used: `a[t, 1:]`")


def deleted_name(name: str, arms: bool, span: Span | None) -> TcdslError:
    """The fault of a name that has a value before, and that a round or an arm of a branch deletes."""
    around, inside = ("a branch", "an arm") if arms else ("a loop", "a round")
    fact = f"`{name}` is bound before {around} that runs, and {inside} of it deletes the name"
    hint = f"delete it after {around.replace('a ', 'the ')}, or bind another name in the {inside.split()[1]}"
    return DslSyntaxError.at(fact, span, hint)


def number_after(name: str, span: Span | None, numbers: frozenset[str]) -> OfARound:
    """What the number of a round is after its loop."""
    fact = f"`{name}` counts the rounds of a loop that runs, and is used after that loop"
    return OfARound(name, fact, "take another letter, or what the loop runs to", span, numbers)


def unbound_after(name: str, statement: LoopStatement, span: Span | None, numbers: frozenset[str]) -> OfARound:
    """What a name that a round, or one of the arms of a branch, binds first is after it."""
    if statement.arms:
        fact = f"`{name}` is bound in one arm of a branch that runs, and is used after that branch"
        return OfARound(name, fact, f"bind `{name}` before the branch, or in both arms", span, numbers)
    fact = f"`{name}` is first bound in a round of a loop that runs, and is used after that loop"
    # A target that rounds make anew would be one that they add to.
    store = statement.stores.get(name)
    loop = statement if statement.asks and store is not None and name in binding_of(store) else None
    return OfARound(name, fact, f"bind `{name}` before the loop, so that rounds carry it", span, numbers, loop)


def _described(session: Session, value: Any) -> str:
    kind = kind_of(session, value)
    return str(kind) if value is None or kind is not None else f"a {type(value).__name__}"
