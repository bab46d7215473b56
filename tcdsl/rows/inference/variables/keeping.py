"""Constraints that outlive the shapes that they were stated for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["is_keeping", "keeping"]

_KEEPING: ContextVar[bool] = ContextVar("tcdsl_keeping_constraints", default=False)


@contextmanager
def keeping() -> Iterator[None]:
    """``with keeping(): pointwise([w, y], origin)``: what is stated of parameters lasts as long as they do.

    Elsewhere a parameter does not keep alive the results that it is used for, so what an expression says of it, and
    has no consequences yet, is gone with its result. That is right for results that were dropped, and wrong
    for an expression that is written for its constraints alone.
    """
    token = _KEEPING.set(True)
    try:
        yield
    finally:
        _KEEPING.reset(token)


def is_keeping() -> bool:
    """Whether constraints that are stated now are kept."""
    return _KEEPING.get()
