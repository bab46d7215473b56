"""The staging run in progress, and how it tells that arrays alone do not do: what is on the path of every call."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcdsl.errors import TcdslError

__all__ = ["ACTIVE_SESSION", "DeclarationMet"]

#: The `tcdsl.frontend.staging.session.Session` of the staging run in progress; what is on the path of every call asks
#: it without a function between.
ACTIVE_SESSION: ContextVar[Any] = ContextVar("tcdsl_session", default=None)


class DeclarationMet(BaseException):
    """A parameter is declared in an op that was called with arrays: run it on tensors instead.

    Not an `Exception`, so that no ``except`` in user code catches it. ``fault`` is the error where that is impossible.
    """

    def __init__(self, fault: TcdslError) -> None:
        super().__init__()
        self.fault = fault
