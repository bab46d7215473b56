"""The user's line that is being executed, for errors of operators on tensors outside of decorated functions."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from pathlib import Path

from tcdsl.ir.span import Span

__all__ = ["user_location"]

_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_BETWEEN = (contextlib.__file__, functools.__file__)


def user_location() -> Span | None:
    """The innermost expression that is being executed and is not the library's own."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) and code.co_filename not in _BETWEEN:
            line, end_line, column, end_column = list(code.co_positions())[frame.f_lasti // 2]
            if line is None:
                return Span(code.co_filename, frame.f_lineno, 0, frame.f_lineno, 0)
            return Span(code.co_filename, line, column or 0, end_line or line, end_column or 0)
        frame = frame.f_back  # type: ignore[assignment]
    return None
