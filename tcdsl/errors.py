"""The one exception family, and the one way in which a fault is shown to the user.

A `Diagnostic` is a fact with a place in the user's source. It is rendered once, here, with the source line and a
caret::

    conv.py:3: the reduction binds no index variable: `n` belongs to the statement or to a reduction around it
        O[n] += I[n] / sum(I[n])
                       ^^^^^^^^^
    reduce over an index that occurs in it only, or write `... for k in range(n)`

Exceptions carry their diagnostics, pickle, and combine: `raise_diagnostics` reports all faults of a function together.
"""

from __future__ import annotations

import builtins
import linecache
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # At run time this import would be circular: the package tcdsl.ir raises these errors.
    from tcdsl.span import Span

__all__ = [
    "RAISED",
    "ConfigurationError",
    "DataIndexError",
    "Diagnostic",
    "DifferentiationError",
    "DslSyntaxError",
    "DtypeError",
    "MissingAttributeError",
    "NanError",
    "OutOfMemoryError",
    "RaisedError",
    "ShapeError",
    "TcdslError",
    "raise_diagnostics",
    "raised_by_user",
    "raised_in_a_call",
    "suggestion",
    "without_values",
]


class TcdslError(Exception):
    """The base of every error that tcdsl raises on purpose. ``diagnostics`` holds its faults."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.diagnostics = diagnostics
        self._notes: list[str] | None = None

    @classmethod
    def at(cls, fact: str, span: Span | None = None, hint: str = "", notes: Sequence[str] = ()) -> TcdslError:
        """The error of one fault: the fact, where it is, and what to write instead."""
        return Diagnostic(cls, fact, span, tuple(notes), hint).error()

    @property
    def entry(self) -> str:
        """The name of its entry in the catalogue of errors, if any: ``python -m tcdsl help NAME`` prints it."""
        # Errors are often caught and forgotten: the catalogue is read when one is shown.
        from tcdsl.error_catalogue import entry_of

        if isinstance(self, RaisedError):  # the user's own words
            return ""
        found = entry_of(self.diagnostics[0].fact if self.diagnostics else self.message.partition("\n")[0])
        return found.name if found else ""

    @property
    def __notes__(self) -> list[str]:
        """What Python shows below the message: where to read more."""
        if self._notes is None:
            self._notes = [f"more: python -m tcdsl help {self.entry}"] if self.entry else []
        return self._notes

    @__notes__.setter
    def __notes__(self, notes: list[str]) -> None:
        self._notes = notes

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.diagnostics))

    def __str__(self) -> str:
        return self.message


class DslSyntaxError(TcdslError, SyntaxError):
    """What was written is not a tensor program: an undefined name, a missing reduction, source not available."""


class ShapeError(TcdslError, ValueError):
    """Ranks, extents or ranges do not fit."""


class DtypeError(TcdslError, TypeError):
    """Element types do not fit, or a value is of a type that tcdsl does not handle."""


class ConfigurationError(TcdslError, TypeError):
    """A keyword argument, option or environment variable cannot be used."""


class DifferentiationError(TcdslError, TypeError):
    """A derivative was asked for that does not exist."""


class NanError(TcdslError, FloatingPointError):
    """A result holds NaN, and ``check="nan"`` is set."""


class OutOfMemoryError(TcdslError, MemoryError):
    """What a call computes needs more memory than there is."""


class DataIndexError(TcdslError, IndexError):
    """An index that was read from data is out of range."""


class MissingAttributeError(TcdslError, AttributeError):
    """What an object of tcdsl has not, such as ``forward`` of a layer."""


class RaisedError(TcdslError):
    """What a function raises itself, by `assert` or `raise`: of Python's class of that name too."""

    def __reduce__(self) -> tuple[object, ...]:
        # The class is made where it is needed, and has no place of its own.
        plain = tuple(replace(each, kind=RaisedError) for each in self.diagnostics)
        return (_raised_error, (type(self).__name__, self.message, plain))


_RAISED_AS: dict[type[Exception], type[RaisedError]] = {}


def _raised_kind(name: str) -> type[RaisedError]:
    kind = getattr(builtins, name, None)
    return _raised_as(kind) if isinstance(kind, type) and issubclass(kind, Exception) else RaisedError


def _raised_as(kind: type[Exception]) -> type[RaisedError]:
    if kind not in _RAISED_AS:
        made = type(kind.__name__, (RaisedError, kind), {"__module__": __name__, "__doc__": RaisedError.__doc__})
        try:
            made("")
        except TypeError:  # a class that wants other arguments
            made = _raised_as(ValueError) if kind is not ValueError and issubclass(kind, ValueError) else RaisedError
        _RAISED_AS[kind] = made
    return _RAISED_AS[kind]


def _raised_error(name: str, message: str, diagnostics: tuple[Diagnostic, ...]) -> RaisedError:
    kind = _raised_kind(name)
    return kind(message, tuple(replace(each, kind=kind) for each in diagnostics))


RAISED = "raise "
"""How labels and messages of assertions begin that say what to raise: ``raise ValueError: too large``."""


def raised_in_a_call(error: Exception, span: Span) -> TcdslError:
    """The fault where Python or NumPy raised ``error`` in a call at ``span``: it is of that class of Python's too."""
    if isinstance(error, TypeError | AttributeError):
        return (DtypeError if isinstance(error, TypeError) else MissingAttributeError).at(str(error), span)
    fact = f"there is no key {error}" if isinstance(error, KeyError) else str(error)
    return _raised_as(type(error)).at(fact, span)


def raised_by_user(label: str, span: Span | None = None, notes: tuple[str, ...] = ()) -> Diagnostic:
    """The fault of a check of the user's, of which ``label`` says what it raises."""
    name, _, message = label.removeprefix(RAISED).partition(": ")
    own: dict[str, type[TcdslError]] = {each.__name__: each for each in (DataIndexError, ShapeError)}
    kind = own.get(name) or _raised_kind(name)
    return Diagnostic(kind, message or "an assertion does not hold", span, notes)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault: the fact, where it is, and what to write instead.

    ``kind`` is the exception class; ``notes`` are further lines (shapes, ranges); ``hint`` says what to write instead.
    """

    kind: type[TcdslError]
    fact: str
    span: Span | None = None
    notes: tuple[str, ...] = ()
    hint: str = ""

    def render(self) -> str:
        """The message as the user sees it, with the source line and a caret if the place is known."""
        lines = []
        span = self.span
        if span is None:
            lines.append(self.fact)
        else:
            lines.append(f"{_shown(span.filename)}:{span.position}: {self.fact}")
            # Code of exec has the name of the text of `python -c`, which Python keeps from 3.13 on.
            line = "" if span.filename == "<string>" else linecache.getline(span.filename, span.line)
            if line:
                source = line.rstrip("\n")
                indent = len(source) - len(source.lstrip())
                end = span.end_column if span.end_line == span.line else len(source)
                width = max(1, min(end, len(source)) - span.column)
                lines.append("    " + source.lstrip())
                lines.append("    " + " " * max(0, span.column - indent) + "^" * width)
        lines.extend(f"    {note}" for note in self.notes)
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)

    def error(self) -> TcdslError:
        """The exception for this fault alone."""
        return self.kind(self.render(), (self,))


def _shown(filename: str) -> str:
    # IPython compiles each cell as a file with a name of its own making; what the user sees of it is its number.
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    naming = getattr(getattr(shell, "compile", None), "format_code_name", None)
    cell = naming(filename) if naming is not None else None
    return filename if cell is None else str(cell[1])


def raise_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Raise one exception for all ``diagnostics``; do nothing if there are none.

    Its class is that of the first fault, so that ``except ShapeError`` works as expected. Faults at one place that
    differ in numbers alone, as rounds of an unrolled loop have them, are shown once, with their number.
    """
    if not diagnostics:
        return
    # Where the place is not known, nothing says that they are one fault.
    alike: dict[object, list[Diagnostic]] = {}
    for each in dict.fromkeys(diagnostics):
        alike.setdefault((each.kind, each.span or each, re.sub(r"\d+", "#", each.fact)), []).append(each)
    faults = tuple(_with_number(first, len(others)) for first, *others in alike.values())
    if len(faults) == 1:
        raise faults[0].error()
    parts = [f"{len(faults)} faults", *(fault.render() for fault in faults)]
    raise faults[0].kind("\n\n".join(parts), faults)


def _with_number(fault: Diagnostic, others: int) -> Diagnostic:
    if not others:
        return fault
    return replace(fault, notes=(*fault.notes, f"and {others} more of this kind here, from other rounds or calls"))


def without_values(message: str) -> tuple[str, str]:
    """The fact and the hint of what calls would be told, before any: ``{N}``, the value of a size, becomes its name."""
    fact, _, hint = re.sub(r"\{(\w+)\}", r"\1", message).partition("\n")
    return fact, hint


def suggestion(name: str, known: Iterable[str], otherwise: str = "", least: float = 0.6) -> str:
    """The hint that one of ``known`` may be meant by ``name``, else ``otherwise``."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), 1, least)
    return f"did you mean `{close[0]}`?" if close else otherwise
