"""Parts of a formula that stand in it several times, computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

from tcdsl.ir.expressions import Constant, Expr, IndexValue, Let, Local, Read, SizeValue, children

__all__ = ["shared", "sharing"]

_NUMBERS: ContextVar[Iterator[int]] = ContextVar("_NUMBERS")


@contextmanager
def sharing() -> Iterator[None]:
    """A statement, in which each shared part has a name of its own."""
    token = _NUMBERS.set(count())
    try:
        yield
    finally:
        _NUMBERS.reset(token)


def shared(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """``body`` of ``value``, which is computed once however often it stands there."""
    small = isinstance(value, Constant | SizeValue | IndexValue | Local)
    if small or (isinstance(value, Read) and not children(value)):
        return body(value)
    local = Local(f"part{next(_NUMBERS.get())}", value.dtype)
    return Let(local.name, value, body(local))
