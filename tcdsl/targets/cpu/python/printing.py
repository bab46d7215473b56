"""The one place that turns a Python syntax tree into text."""

from __future__ import annotations

import ast
import sys
import warnings

__all__ = ["module_text"]

_WIDTH = 120


def module_text(module: ast.Module) -> str:
    """The text of ``module``: by astor, which breaks long lines, below Python 3.14, which astor does not support."""
    ast.fix_missing_locations(module)
    if sys.version_info >= (3, 14):
        return ast.unparse(module) + "\n"
    with warnings.catch_warnings():
        # From Python 3.12 on, importing astor warns of the old node classes that it still knows.
        warnings.simplefilter("ignore", DeprecationWarning)
        import astor
        from astor.source_repr import split_lines

    return str(astor.to_source(module, pretty_source=lambda parts: "".join(split_lines(parts, maxline=_WIDTH))))
