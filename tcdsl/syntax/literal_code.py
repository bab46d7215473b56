"""Literal files and cells to code objects, whose functions can read their own source."""

from __future__ import annotations

import ast
import io
import linecache
import tokenize
from collections.abc import Callable
from types import CodeType

from tcdsl.errors import TcdslError
from tcdsl.frontend.source.texts import register_parser
from tcdsl.syntax.grammar.parsing import parse
from tcdsl.tracebacks import hide_library_frames

__all__ = ["compile_literal", "decoded"]


def compile_literal(
    data: bytes | str, filename: str, finish: Callable[[ast.Module, bytes, str], None] | None = None
) -> CodeType:
    """Compile literal text as the file ``filename``, which is read as literal from then on."""
    try:
        tree = parse(data if isinstance(data, str) else decoded(data), filename)
    except TcdslError as error:
        hide_library_frames(error)
        raise
    if finish is not None:
        finish(tree, data if isinstance(data, bytes) else data.encode(), filename)
    register_parser(filename, parse)
    # Lines that are kept for tracebacks may be those of an earlier text of the same size and time.
    linecache.cache.pop(filename, None)
    return compile(tree, filename, "exec", dont_inherit=True)


def decoded(data: bytes) -> str:
    """The text of a source file, by its encoding comment or mark, with its line ends as they are."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)
