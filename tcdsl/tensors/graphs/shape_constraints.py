"""Expressions that are written for what they say about shapes."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tcdsl.rows.inference import keeping
from tcdsl.tracebacks import user_facing

__all__ = ["constraints_only"]


@user_facing
def constraints_only() -> AbstractContextManager[None]:
    """``with tc.constraints_only(): w @ x + y``: the shapes must fit, and what they say is kept; nothing is computed.

    In the literal spelling: ``_ = w * x + y``. Elsewhere what an expression says of parameters is gone with its result.
    """
    return keeping()
