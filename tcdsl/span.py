"""Where in the user's source a node comes from."""

from __future__ import annotations

import linecache
from dataclasses import dataclass

__all__ = ["Span"]


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

    @property
    def text(self) -> str:
        """What stands there, if that is one line of a file that can be read; else nothing."""
        if self.line != self.end_line:
            return ""
        return linecache.getline(self.filename, self.line)[self.column : self.end_column]
