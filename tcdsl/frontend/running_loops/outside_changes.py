"""Python around a loop that runs: what a round changes there would change once for each time that it is staged."""

from __future__ import annotations

from types import FrameType

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.staging.session import Session

__all__ = ["refuse_change", "refuse_printing"]

_HINT = (
    "the body is staged once: carry values under names that are bound before, "
    "or collect results by a statement, as in `ys[t, ...] = h`"
)


def refuse_change(session: Session, text: str, root: str, frame: FrameType) -> None:
    """A fault if ``text``, which begins with the name ``root``, changes what a round has not made itself."""
    if _is_own(session, root, frame):
        return
    _leave_to_python(session)
    where = "an arm of a branch" if session.running[-1].statement.arms else "a round of a loop"
    raise session.fault(DslSyntaxError, f"`{text}` lets a value leave {where} that runs", _HINT)


def refuse_printing(session: Session) -> None:
    """The fault of ``print`` in a round."""
    _leave_to_python(session)
    where = "an arm of a branch" if session.running[-1].statement.arms else "a loop"
    hint = "the body is staged once, before there are values: return what is to be seen, or `assert` what is to hold"
    raise session.fault(DslSyntaxError, f"`print` in {where} that runs", hint)


def _leave_to_python(session: Session) -> None:
    for running in reversed(session.running):
        running.specialize()


def _is_own(session: Session, root: str, frame: FrameType) -> bool:
    running = session.running[-1]
    if running.frame is frame:
        return bool(running.has_bound(root))
    # In a function that the round calls: what is bound there, but not given to it.
    code = frame.f_code
    given = code.co_argcount + code.co_kwonlyargcount
    return root in (*code.co_varnames[given:], *code.co_cellvars) and root not in code.co_varnames[:given]
