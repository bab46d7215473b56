"""What the oracle says about a program on given inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["DataIndexFaultError", "DtypeFaultError", "FaultError", "Outcome", "ShapeFaultError", "UnspecifiedError"]


class FaultError(Exception):
    """The language calls this program or this call wrong; tcdsl must raise some error of its own."""

    doubtful = ""


class ShapeFaultError(FaultError):
    """tcdsl must raise `ShapeError`."""


class DtypeFaultError(FaultError):
    """tcdsl must raise `DtypeError`."""


class DataIndexFaultError(FaultError):
    """tcdsl must raise `DataIndexError`."""


class UnspecifiedError(Exception):
    """The rules do not say what this program means, or leave a choice."""


@dataclass(frozen=True)
class Outcome:
    """``arrays`` that the function returns, else the ``fault``, else why the rules leave it ``unspecified``.

    ``terms`` bounds how many values met in one cell. A ``doubtful`` program may also be refused at staging, because for
    other sizes it would be wrong.
    """

    arrays: tuple[np.ndarray, ...] = ()
    fault: FaultError | None = None
    unspecified: str = ""
    terms: int = 1
    doubtful: str = ""
