"""How long the Integer Set Library may think about one question.

Its answers can take exponential time, and Python hears Ctrl-C between questions only. Inside `limited`, a question
that takes too long raises `TooMuchWork`; who asked does without the answer, in a simpler form that is as exact, or says
which statement is too complicated. Steps are counted, not seconds, so the same program always gets the same loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import islpy as isl

from tcdsl.errors import Diagnostic, TcdslError
from tcdsl.span import Span

__all__ = ["TooMuchWork", "limited", "new_question", "refused_beyond_limits"]

# Some seconds. Questions of ordinary programs take fewer than 100,000.
_MOST_OPERATIONS = 10_000_000


class TooMuchWork(Exception):  # noqa: N818  # an answer, like `NotAffine`
    """A question to isl took too long."""


@contextmanager
def limited() -> Iterator[None]:
    """A block in which a question that takes too long raises `TooMuchWork`."""
    context = isl.DEFAULT_CONTEXT
    before = context.get_max_operations()
    context.reset_operations()
    context.set_max_operations(_MOST_OPERATIONS)
    try:
        yield
    except (isl.Error, TypeError, ValueError) as error:
        # What stops may tell it in its own words: a text is "no set", a space "no local space".
        if not _is_spent(context):
            raise
        raise TooMuchWork("maximal number of operations exceeded") from error
    finally:
        context.reset_operations()
        context.set_max_operations(before)


def _is_spent(context: isl.Context) -> bool:
    try:
        isl.Val.int_from_si(context, 0)  # one operation
    except isl.Error:
        return True
    return False


@contextmanager
def refused_beyond_limits(kind: type[TcdslError], subject: str, span: Span | None = None) -> Iterator[None]:
    """A block for which there is no simpler form: an error says that ``subject`` is too complicated."""
    try:
        with limited():
            yield
    except TooMuchWork as error:
        hint = "write it as several statements, with fewer conditions and cases in each"
        raise Diagnostic(kind, f"{subject} is too complicated to find its ranges", span, hint=hint).error() from error


def new_question() -> None:
    """Count the operations of what follows anew."""
    isl.DEFAULT_CONTEXT.reset_operations()
