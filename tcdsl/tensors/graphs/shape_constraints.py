"""Expressions that are written for what they say about shapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tcdsl.rows.inference import keeping

__all__ = ["constraints_only"]


@contextmanager
def constraints_only() -> Iterator[None]:
    """``with tc.constraints_only(): w @ x + y``: the shapes must fit, and what they say is kept; nothing is computed.

    In the literal spelling: ``_ = w * x + y``. Elsewhere what an expression says of parameters is gone with its result.
    """
    with keeping():
        yield
