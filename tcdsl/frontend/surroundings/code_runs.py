"""Which places of the user's code capture an array each time that they run, while a function is staged.

::

    with runs.following():
        runs.begin()               # from here on, frames that begin are followed
        ...
        spot = runs.note(frame)    # an array is captured by what this frame executes
    runs.are_captured(spot)        # whether that happened each time that it ran

A place in a loop, or in a function that is called twice, may multiply an array by a value of the program in one round,
and by an array of NumPy in another, which Python does alone. So Python's instructions are followed, by a tracer. Where
somebody else traces, nothing is, and so nothing counts as captured.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tcdsl.frontend.surroundings.named_values import is_installed

__all__ = ["CodeRuns", "Place", "Spot", "is_traced_by_others"]

Place = tuple[int, int, int, int]
"""Line, column, last line, last column."""
Spot = tuple[str, Place]
"""A place of a file."""


# By these names code calls a debugger.
_STOPPING = frozenset(("breakpoint", "set_trace"))


class _Code:
    """The instructions of one code, which of them have captured an array, and which have run without."""

    def __init__(self, code: CodeType) -> None:
        self.filename = code.co_filename
        self.kinds = code.co_code
        self.captured: set[int] = set()
        self.missed: set[int] = set()
        self.places = [_place(each) for each in code.co_positions()]
        self.at: defaultdict[Place | None, set[int]] = defaultdict(set)
        for number, place in enumerate(self.places):
            self.at[place].add(2 * number)


class _Frame:
    """What Python tells of one frame: what it executes, and what has run and captured nothing so far."""

    __slots__ = ("code", "instruction", "waiting")

    def __init__(self, code: _Code) -> None:
        self.code = code
        self.instruction = 0
        self.waiting: set[int] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> _Frame:
        waiting = self.waiting
        if event == "opcode":
            self.instruction = instruction = frame.f_lasti
            if instruction in waiting:
                self.code.missed.add(instruction)
            waiting.add(instruction)
        elif event == "return":
            self.code.missed |= waiting
            waiting.clear()
        return self


class CodeRuns:
    """Follows what runs; ``given`` is called with each frame of the user's that begins."""

    def __init__(self, given: Callable[[FrameType], None]) -> None:
        #: Files that count as the user's, wherever they are.
        self.filenames: set[str] = set()
        self._given = given
        # By id, and kept alive; None for code that is not the user's.
        self._codes: dict[int, tuple[CodeType, _Code | None]] = {}
        self._users: defaultdict[str, list[_Code]] = defaultdict(list)
        self._can_begin = False
        self._outer: Any = None

    @contextmanager
    def following(self) -> Iterator[None]:
        """A block in which `begin` begins."""
        self._can_begin = True
        try:
            yield
        finally:
            self._can_begin = False
            if sys.gettrace() == self._called:
                sys.settrace(self._outer)
            else:  # a debugger has stopped in between
                self._users.clear()

    def begin(self) -> None:
        """Follow from here on."""
        if self._can_begin:
            self._can_begin = False
            if not is_traced_by_others():
                self._outer = sys.gettrace()
                sys._getframe().f_trace_opcodes = True  # without which Python 3.12 tells of no instruction
                sys.settrace(self._called)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        _, known = self._codes.get(id(code)) or self._added(code, frame.f_globals)
        if known is None:
            frame.f_trace_lines = False
            return None
        if not _STOPPING.isdisjoint(code.co_names):
            self._leave(frame)
            return None
        if type(frame.f_trace) is _Frame:  # a generator that goes on
            return frame.f_trace
        self._given(frame)
        frame.f_trace = tracer = _Frame(known)
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return tracer

    def _leave(self, frame: FrameType | None) -> None:
        # A debugger is going to trace, which finds all frames as they would be without this.
        sys.settrace(self._outer)
        while frame is not None:
            if frame.f_trace is None or type(frame.f_trace) is _Frame:
                frame.f_trace = None
                frame.f_trace_lines, frame.f_trace_opcodes = True, False
            frame = frame.f_back

    def _added(self, code: CodeType, names: dict[str, Any]) -> tuple[CodeType, _Code | None]:
        # What dataclasses generate belongs to their module.
        file = names.get("__file__") or "" if code.co_filename[0] == "<" else code.co_filename
        users = code.co_filename in self.filenames or not is_installed(file)
        known = _Code(code) if users else None
        if known is not None:
            self._users[code.co_filename].append(known)
        self._codes[id(code)] = code, known
        return code, known

    def note(self, frame: FrameType) -> Spot | None:
        """An array is captured by what this frame of the user's executes: where that is."""
        tracer = frame.f_trace
        if type(tracer) is not _Frame or id(frame.f_code) not in self._codes:
            return None
        code = tracer.code
        place = code.places[tracer.instruction // 2]
        if place is None:
            return None
        code.captured.add(tracer.instruction)
        tracer.waiting -= code.at[place]
        return code.filename, place

    def are_captured(self, spot: Spot) -> bool:
        """Whether an array was captured each time that what stands there ran."""
        filename, place = spot
        here = [(code, code.at[place]) for code in self._users.get(filename, ())]
        if not here:
            return False
        # Beside the instruction that captures there are others at a place, such as one that loads what is called.
        captures = {code.kinds[each] for code, numbers in here for each in numbers & code.captured}
        return not any(code.kinds[each] in captures for code, numbers in here for each in numbers & code.missed)


def is_traced_by_others() -> bool:
    """Whether a debugger or a coverage traces this thread."""
    tracer = sys.gettrace()
    return tracer is not None and not isinstance(getattr(tracer, "__self__", None), CodeRuns)


def _place(positions: Any) -> Place | None:
    # None where Python keeps no columns.
    line, last_line, column, last_column = positions or (None,) * 4
    if line is None or last_line is None or column is None or last_column is None:
        return None
    return line, column, last_line, last_column
