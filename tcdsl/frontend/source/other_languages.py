"""What stands for a decorated function and its source where a text in another language says what it does."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from keyword import iskeyword
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.frontend.source.function_source import FunctionSource
from tcdsl.span import Span

if TYPE_CHECKING:
    # Calls that an earlier process has made know their function without what stages it.
    from tcdsl.frontend.staging.session import Session

__all__ = ["captured", "defined_by_text", "function_of_text"]


def function_of_text(name: str, parameters: Sequence[str]) -> FunctionType:
    """A function of Python's by which decorated ones are known: it has the name and the parameters alone."""

    def function(*_: Any) -> Any:
        raise NotImplementedError(name)

    made: Any = function
    made.__name__ = made.__qualname__ = name
    # Words of Python's can be names here; such parameters have places alone.
    plain = not any(map(iskeyword, parameters))
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if plain else inspect.Parameter.POSITIONAL_ONLY
    made.__signature__ = inspect.Signature([inspect.Parameter(each, kind) for each in parameters])
    found: FunctionType = made
    return found


def defined_by_text(
    name: str, filename: str, span: Span | None, parameters: Sequence[str], text: str
) -> FunctionSource:
    """A definition of that name in its place."""
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in parameters], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    made = ast.FunctionDef(name, arguments, [ast.Pass()], [], None, None)
    if span is not None:
        made.lineno, made.col_offset = span.line, span.column
    return FunctionSource(filename, made, text)


def captured(session: Session, given: Any, label: str) -> Any:
    """An argument as a tensor of the program, if it is an array."""
    from tcdsl.frontend.symbols.graph_tensors import GraphTensor
    from tcdsl.frontend.symbols.symbols import PendingArray

    if isinstance(given, PendingArray):
        return given.materialize(label)
    if isinstance(given, GraphTensor):
        return session.capture(given, label)
    return session.capture(np.asarray(given), label) if isinstance(given, np.ndarray | np.generic) else given
