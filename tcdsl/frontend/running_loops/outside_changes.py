"""Python around a loop that runs: what a round changes there would change once for each time that it is staged."""

from __future__ import annotations

import dis
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.retired_values import changed_in_place, replace_value, restore_value
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor, View
from tcdsl.span import Span

__all__ = ["ReplacedInRounds", "binds_globals", "refuse_change", "refuse_globals", "refuse_printing"]


class ReplacedInRounds:
    """What rounds replace, by ``x = f(x)`` with ``a *= 2`` in ``f``: loops begin with it, and nobody else may read it.

    The arms of a branch share one.
    """

    def __init__(self, session: Session) -> None:
        self._log = session.replacements
        self._seen = len(self._log)
        self._found: list[tuple[Any, Span]] = []

    def release(self, before: Mapping[str, Any], stand_ins: Mapping[str, Any], held: Mapping[str, Any]) -> None:
        """Behind a round the loop may read what names held ``before``, unless they still hold what was replaced."""
        for name, value in before.items():
            given: tuple[Any, ...] = value, stand_ins.get(name)
            for each in given:
                where = each.replaced if isinstance(each, SymbolicArray) else None
                if where is None:
                    continue
                if held.get(name) is each:
                    raise changed_in_place(where, name)
                if isinstance(value, SymbolicArray):
                    self._found.append((value, where))
                restore_value(each)

    def leave_arm(self) -> None:
        """The other arm of a branch finds what there was before it."""
        for value, _ in self._log[self._seen :]:
            restore_value(value)
        self._found += self._log[self._seen :]
        self._seen = len(self._log)

    def retire(self) -> None:
        """The loop, or the branch, has been staged."""
        for value, where in self._found:
            replace_value(value, where)


_HINT = (
    "the body is staged once: carry values under names that are bound before, "
    "or collect results by a statement, as in `ys[t, ...] = h`"
)


_ENTRIES = "a loop carries the entries of `{0}` itself: store a whole entry, as in `{0}[0] = [{0}[0][0], h]`"


def refuse_change(session: Session, text: str, root: str, frame: FrameType) -> None:
    """A fault if ``text``, which begins with the name ``root``, changes what a round has not made itself."""
    if _is_own(session, root, frame) or _is_memory(frame.f_locals.get(root)):
        return
    nested = isinstance(frame.f_locals.get(root), list | dict) and text.count("[") > 1
    _refuse(session, f"`{text}` lets a value leave", _ENTRIES.format(root) if nested else _HINT)


def _is_memory(value: Any) -> bool:
    # What code stores into, which rounds carry: `a[j], a[k] = a[k], a[j]`.
    return isinstance(value, SymbolicTensor | View) and value.memory


def binds_globals(function: Any) -> bool:
    """Whether a plain ``function`` binds global names."""
    return isinstance(function, FunctionType) and bool(_stored_globals(function.__code__))


def refuse_globals(session: Session, function: Any) -> None:
    """A fault if a plain ``function`` that a round has called has bound a global name to a value of the round."""
    for name in _stored_globals(function.__code__) if binds_globals(function) else ():
        if isinstance(function.__globals__.get(name), SymbolicArray | SymbolicNumber | SymbolicSize):
            _refuse(session, f"`global {name}` in `{function.__name__}` lets a value leave")


@lru_cache(1024)
def _stored_globals(code: CodeType) -> tuple[str, ...]:
    return tuple(each.argval for each in dis.get_instructions(code) if each.opname == "STORE_GLOBAL")


def _refuse(session: Session, fact: str, hint: str = _HINT) -> None:
    _leave_to_python(session)
    where = "an arm of a branch" if session.running[-1].statement.arms else "a round of a loop"
    raise session.fault(DslSyntaxError, f"{fact} {where} that runs", hint)


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
