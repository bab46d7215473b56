"""Where in the user's source a node comes from."""

from __future__ import annotations

import hashlib
import linecache
from dataclasses import dataclass
from types import CodeType, FrameType

from tcdsl.recent import Recent

__all__ = ["COMPREHENSIONS", "SKRIPTND", "Span", "across", "named_text"]

COMPREHENSIONS = "<tc "
"""How the names of sources in the language of Tensor Comprehensions begin."""

SKRIPTND = "<sknd "
"""How the names of texts in SkriptND begin that stand in no file."""

_MOST_CHARACTERS, _MOST_COLUMNS = 1_000_000, 300  # So many are shown of a text, and of a line.
#: Line, last line, column, last column.
_Place = tuple[int | None, int | None, int | None, int | None]

# All places of a function at once: there is no way to one that does not pass those before it. By the id of the code,
# which is kept alive.
_PLACES: Recent[int, tuple[CodeType, list[_Place]]] = Recent(200)


def _places(code: CodeType) -> list[_Place]:
    known = _PLACES.get(id(code))
    if known is None:
        known = _PLACES[id(code)] = code, list(code.co_positions())
    return known[1]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text: ``Span("conv.py", 3, 8, 3, 12)`` is columns 8 to 12 of line 3.

    Lines count from 1 and columns from 0, as in Python's ``ast``; columns are characters, not bytes.
    """

    filename: str
    line: int
    column: int
    end_line: int
    end_column: int

    @staticmethod
    def executed(frame: FrameType, instruction: int) -> Span:
        """The expression that ``instruction`` of the frame's code belongs to."""
        code = frame.f_code
        line, end_line, column, end_column = _places(code)[instruction // 2]
        if line is None:
            return Span(code.co_filename, frame.f_lineno, 0, frame.f_lineno, 0)
        return Span(code.co_filename, line, column or 0, end_line or line, end_column or 0)

    @property
    def position(self) -> str:
        """``3``, the line; ``3:8``, with the column, in texts that are not Python."""
        foreign = self.filename.startswith((COMPREHENSIONS, SKRIPTND)) or self.filename.endswith(".sknd")
        return f"{self.line}:{self.column + 1}" if foreign else str(self.line)

    @property
    def text(self) -> str:
        """What stands there, if that is one line of a file that can be read; else nothing."""
        if self.line != self.end_line:
            return ""
        return linecache.getline(self.filename, self.line)[self.column : self.end_column]


def across(first: Span | None, last: Span | None) -> Span | None:
    """The place from the beginning of one to the end of another."""
    return first and last and Span(first.filename, first.line, first.column, last.end_line, last.end_column)


def named_text(text: str, kind: str) -> str:
    """A name for a text that stands in no file, under which messages and debuggers find its lines.

    It begins with ``kind``, and is the same in all processes.
    """
    name = f"{kind}{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}>"
    lines = [f"{line[:_MOST_COLUMNS]}\n" for line in text[:_MOST_CHARACTERS].split("\n")]
    linecache.cache[name] = (len(text), None, lines, name)
    return name
