"""Tracebacks that show the user's code only: the one place where the library's own frames are taken out.

::

    try:
        ...
    except Exception as error:
        hide_library_frames(error)
        raise                       # bare: this leaves the frame of the handler itself out, too

An error that tcdsl raises on purpose says what is wrong in the user's terms, so the frames between the user's call and
the place where it was noticed only stand in the way. ``TCDSL_FULL_TRACEBACK=1`` keeps them. A fault of the library
itself, an exception of another class that the library's own code met, always keeps them.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tcdsl.errors import (
    ConfigurationError,
    Diagnostic,
    DslSyntaxError,
    MissingAttributeError,
    TcdslError,
    raised_in_a_call,
    suggestion,
)
from tcdsl.installation import FOLDER
from tcdsl.large_stack import on_large_stack

if TYPE_CHECKING:
    from tcdsl.span import Span

__all__ = [
    "NamesTold",
    "hide_library_frames",
    "missing_name",
    "told_of_a_wrong_call",
    "user_facing",
    "user_globals",
    "user_location",
    "warn_user",
    "warnings_given",
    "with_large_stack",
]

# Frames of context managers and cached properties stand between the library's own.
_BETWEEN = (contextlib.__file__, functools.__file__)
# What the library calls: where such code raises, it was called wrongly, and that is for the library's authors to see.
_CALLED_BY_THE_LIBRARY = frozenset(sys.stdlib_module_names) | {"islpy", "llvmlite", "numba", "numpy", "rich"}
_RAISING = frozenset((dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]))
# What is told as a fault of the user's where Python or NumPy raise it.
_TOLD = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
# A part of a function with many nested blocks, which the function calls (`tcdsl.frontend.source.nested_blocks`).
_INNER = "__tcdsl__inner"
# A user's function that waits so often for itself calls itself without an end: staging it ends sooner.
_MANY_TIMES = 50

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def user_facing(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function of the public face: errors that leave it show no library frames."""

    @functools.wraps(function)
    def boundary(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        try:
            return function(*arguments, **keywords)
        except RecursionError as error:
            return with_large_stack(functools.partial(function, *arguments, **keywords), error)
        except Exception as error:
            if isinstance(error, TypeError) and _calls_wrongly(error):
                raise _wrong_call(function, keywords, str(error), sys._getframe(1)) from None
            if _was_interrupted(error):
                raise KeyboardInterrupt from None
            if (told := told_of_a_wrong_call(error)) is not None:
                raise told from None
            hide_library_frames(error)
            raise

    return boundary


def _calls_wrongly(error: TypeError) -> bool:
    # Python itself raised it, before the function began.
    return error.__traceback__ is not None and error.__traceback__.tb_next is None


def _wrong_call(function: Callable[..., Any], given: Mapping[str, Any], fact: str, caller: FrameType) -> TcdslError:
    from tcdsl.span import Span

    takes = inspect.signature(function).parameters
    # `input_dims=2` where the name is `i` or `input`.
    meant = {each: name for each in given if each not in takes for name in takes if each.startswith(name)}
    hint = ", ".join(f"write `{name}` for `{each}`" for each, name in meant.items())
    names = ", ".join(str(each).partition(":")[0] for each in takes.values() if each.name != "self")
    while _is_library(caller) and caller.f_back is not None:
        caller = caller.f_back
    place = Span.executed(caller, caller.f_lasti)
    return ConfigurationError.at(fact, place, hint or f"`{function.__name__}` takes {names or 'nothing'}")


def _was_interrupted(error: Exception) -> bool:
    # isl drops what its callbacks raise and says that it failed, without a reason. Ours raise nothing but Ctrl-C.
    return type(error).__module__.startswith("islpy") and str(error).endswith("<no message>")


def with_large_stack(action: Callable[[], Result], error: RecursionError) -> Result:
    """``action()`` once more, with a large stack: for functions of the public face in which ``error`` was raised.

    `DslSyntaxError` where that does not suffice. Within another such function ``error`` is raised again: the outermost
    one starts anew.
    """
    caller = sys._getframe(1)
    frame = caller.f_back
    while frame is not None:
        if _is_library(frame):
            raise error
        frame = frame.f_back
    place = _place(error, caller.f_back)
    try:
        return on_large_stack(action)
    except RecursionError as again:
        fact = "the program is nested too deeply"
        hint = "write it as several tensor statements, whose values are stored: `t[i] = ...`"
        endless = _calling_itself(again)
        if endless:
            fact = f"`{endless}` calls itself without an end while it is staged"
            hint = (
                "both arms of a branch on data are staged: write a `while`, or say how deep it goes by a keyword-only"
            )
            hint += " argument, `depth=3`"
        fault = Diagnostic(DslSyntaxError, fact, place, hint=hint).error()
    except Exception as raised:
        hide_library_frames(raised)
        raise
    try:
        raise fault
    finally:
        # Neither shown nor kept: `error` holds the frames of a thousand calls, which packages for workers would pickle.
        fault.__context__ = None


def _place(error: BaseException, caller: FrameType | None) -> Span | None:
    # The user's innermost expression that was being executed.
    from tcdsl.span import Span

    users = [(entry.tb_frame, entry.tb_lasti) for entry in _frames(error.__traceback__) if _is_users(entry.tb_frame)]
    if not users and caller is not None:
        users = [(caller, caller.f_lasti)]
    if not users:
        return None
    frame, instruction = users[-1]
    return Span.executed(frame, instruction)


def _calling_itself(error: BaseException) -> str:
    # The name of the user's function that waits for itself many times.
    waiting = Counter(entry.tb_frame.f_code for entry in _frames(error.__traceback__) if _is_users(entry.tb_frame))
    code, times = max(waiting.items(), key=lambda item: item[1], default=(None, 0))
    return code.co_name if code is not None and times >= _MANY_TIMES else ""


def _is_users(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    # Methods of dataclasses; texts of `python -c` are the user's.
    generated = frame.f_code.co_filename == "<string>" and frame.f_code.co_name.startswith("__")
    return not _is_library(frame) and not generated and package not in _CALLED_BY_THE_LIBRARY


def hide_library_frames(error: BaseException) -> None:
    """Take the library's frames out of the traceback of ``error`` and of the exceptions that led to it.

    To be followed by a bare ``raise``, which, unlike ``raise error``, does not add the handler's frame again.
    """
    if isinstance(error, SyntaxError):
        _let_ipython_show_frames()
    if os.environ.get("TCDSL_FULL_TRACEBACK", "") not in ("", "0") or not _is_for_the_user(error):
        return
    seen: set[int] = set()
    shown: BaseException | None = error
    while shown is not None and id(shown) not in seen:
        seen.add(id(shown))
        # An exception that the library itself caught on the way is its own affair.
        while shown.__context__ is not None and _was_caught_here(shown.__context__):
            shown.__context__ = shown.__context__.__context__
        shown.__traceback__ = _without_library(shown.__traceback__)
        shown = shown.__cause__ or shown.__context__


def told_of_a_wrong_call(error: Exception) -> TcdslError | None:
    """The fault for an error that Python or NumPy raised where a decorated function, or a helper, calls them wrongly.

    ``None`` for what the user's own code raises, and for faults of the library.
    """
    if not isinstance(error, _TOLD) or isinstance(error, TcdslError) or not _is_for_the_user(error):
        return None
    entries = _frames(error.__traceback__)
    users = [k for k, entry in enumerate(entries) if _is_users(entry.tb_frame)]
    if not users or not any(_is_library(entry.tb_frame) for entry in entries[: users[-1]]):
        return None
    called = entries[users[-1] + 1 :]
    place = entries[users[-1]]
    if place.tb_frame.f_code.co_code[place.tb_lasti] in _RAISING or any(_is_library(each.tb_frame) for each in called):
        return None
    from tcdsl.span import Span

    told = raised_in_a_call(error, Span.executed(place.tb_frame, place.tb_lasti))
    told.__suppress_context__ = True
    return told


# IPython takes every SyntaxError for one of the text that was entered: it leaves the frames of the call out, and shows
# its own and a file without a name. What it is told is the class of an error like any other.
_SHOWN = type("DslSyntaxError", (TcdslError,), {"__module__": TcdslError.__module__})


def _let_ipython_show_frames() -> None:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    if shell is not None and not getattr(shell, "custom_exceptions", True):
        shell.set_custom_exc((DslSyntaxError,), _show_in_ipython)


def _show_in_ipython(shell: Any, kind: object, error: BaseException, traceback: Any, tb_offset: Any = None) -> None:
    shell.showtraceback((_SHOWN, error, traceback), tb_offset=tb_offset)


def _frames(traceback: TracebackType | None) -> list[TracebackType]:
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    return entries


def _is_library(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(FOLDER) or name in _BETWEEN


def _is_for_the_user(error: BaseException) -> bool:
    # Errors of tcdsl, and whatever the user's own functions raise while the library runs them.
    if isinstance(error, TcdslError):
        return True
    frames = [entry.tb_frame for entry in _frames(error.__traceback__)]
    last = max((k for k, frame in enumerate(frames) if _is_library(frame)), default=-1)
    if last + 1 >= len(frames):
        return False
    called = str(frames[last + 1].f_globals.get("__name__", ""))
    return called.partition(".")[0] not in _CALLED_BY_THE_LIBRARY


def _was_caught_here(error: BaseException) -> bool:
    return error.__traceback__ is not None and _is_library(error.__traceback__.tb_frame)


def _without_library(traceback: TracebackType | None) -> TracebackType | None:
    kept: TracebackType | None = None
    for entry in reversed(_frames(traceback)):
        inner = kept is not None and kept.tb_frame.f_code.co_qualname == _INNER
        if not inner and not _is_library(entry.tb_frame):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def user_location() -> Span | None:
    """The innermost expression that is being executed and is not the library's own."""
    from tcdsl.span import Span

    frame = _users_frame()
    return None if frame is None else Span.executed(frame, frame.f_lasti)


def user_globals() -> dict[str, Any]:
    """The global names of the code that has called the library."""
    frame = _users_frame()
    return {} if frame is None else frame.f_globals


def _users_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_library(frame):
        frame = frame.f_back
    return frame


def missing_name(
    kind: str, name: str, owner: object, known: Collection[str] | None = None, hint: str = ""
) -> AttributeError:
    """The error where ``owner``, which is ``kind``, has no attribute of that name.

    It suggests one of the names ``known``, which are all that it has, or else says ``hint``, or else which there are.
    """
    if name.startswith("_"):  # protocols ask for these, and expect no more than that
        return AttributeError(f"{kind} has no attribute `{name}`", name=name, obj=owner)
    public = sorted(each for each in (dir(owner) if known is None else known) if not each.startswith("_"))
    hint = suggestion(name, public, hint or f"it has {', '.join(public)}", 0.8 if hint else 0.6)
    made = MissingAttributeError.at(f"{kind} has no attribute `{name}`", user_location(), hint)
    assert isinstance(made, AttributeError)
    made.name, made.obj = name, owner
    return made


class NamesTold:
    """Of such objects a name that they have not is an error that says which they have."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # what is not known yet, too, which is asked all the time
                raise AttributeError(f"{type(self).__name__} has no attribute `{name}`", name=name, obj=self)
            words = re.sub(r"\B(?=[A-Z])", " ", type(self).__name__).lower()
            raise missing_name(f"{'an' if words[0] in 'aeiou' else 'a'} {words}", name, self)


_GIVEN: list[str] = []


def warnings_given() -> int:
    """How often `warn_user` was called."""
    return len(_GIVEN)


def warn_user(text: str, category: type[Warning] = RuntimeWarning) -> None:
    """A warning that shows the user's line that is being executed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None and _is_library(frame):
        frame = frame.f_back
    assert frame is not None
    _GIVEN.append(text)
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"), registry)
