"""What it means that two executions of a random program agree."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DataIndexError, DtypeError, ShapeError, TcdslError
from tests.oracle.generation import Case
from tests.oracle.outcome import DataIndexFaultError, DtypeFaultError, FaultError, Outcome, ShapeFaultError

__all__ = ["Attempt", "agree", "attempt", "matches_outcome", "shown", "tolerance"]

_ERRORS: dict[type[FaultError], type[TcdslError]] = {
    FaultError: TcdslError,
    ShapeFaultError: ShapeError,
    DtypeFaultError: DtypeError,
    DataIndexFaultError: DataIndexError,
}

Attempt = tuple[np.ndarray, ...] | TcdslError


def attempt(call: Callable[[], Any]) -> Attempt:
    """The arrays that ``call`` returns, or the error of tcdsl's own that it raises."""
    try:
        with np.errstate(all="ignore"):
            result = call()
    except TcdslError as error:
        return error
    return result if isinstance(result, tuple) else (result,)


def tolerance(wanted: np.ndarray, terms: int, eps: float = 0.0) -> dict[str, float]:
    """How far floats may be apart when ``terms`` of them were added in any order; ``eps`` is that of arguments."""
    if wanted.dtype.kind != "f":
        return {"rtol": 0, "atol": 0}
    eps = max(eps, float(np.finfo(wanted.dtype).eps))
    finite = np.abs(wanted[np.isfinite(wanted)]).astype(float)
    scale = max(1.0, float(finite.max(initial=0)))
    return {"rtol": 32 * eps, "atol": 16 * eps * (terms + 8) * scale}


def agree(case: Case, wanted: Sequence[np.ndarray], found: Sequence[np.ndarray], terms: int, what: str) -> None:
    """Fail, showing the program, unless the arrays are equal (floats: nearly so)."""
    with np.errstate(all="ignore"):
        problem = _difference(wanted, found, terms, _coarsest(case))
    if problem:
        raise AssertionError(f"{what}: {problem}\n\n{case}\n\nwanted {_shown(wanted)}\nfound  {_shown(found)}")


def _shown(arrays: Sequence[np.ndarray]) -> str:
    return "\n       ".join(f"{array.dtype}{list(array.shape)} {array.tolist()}" for array in arrays)


def _coarsest(case: Case) -> float:
    # A float64 result of float32 arguments holds what was computed in float32; the interpreter computes in float64.
    return max((float(np.finfo(a.dtype).eps) for a in case.arrays.values() if a.dtype.kind == "f"), default=0.0)


def _difference(wanted: Sequence[np.ndarray], found: Sequence[np.ndarray], terms: int, eps: float) -> str:
    if len(wanted) != len(found):
        return f"{len(wanted)} results against {len(found)}"
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if one.shape != other.shape:
            return f"result {number} has the shape {other.shape} instead of {one.shape}"
        if one.dtype != other.dtype:
            return f"result {number} is {other.dtype} instead of {one.dtype}"
        if not np.allclose(other, one, equal_nan=True, **tolerance(one, terms, eps)):
            return f"result {number} differs"
    return ""


def matches_outcome(case: Case, outcome: Outcome, found: Attempt) -> None:
    """Fail unless ``found`` is what the oracle expects."""
    if outcome.unspecified or (outcome.doubtful and isinstance(found, TcdslError)):
        return
    if outcome.fault is not None:
        wanted = _ERRORS[type(outcome.fault)]
        if not isinstance(found, wanted):
            shown = f"{type(found).__name__}: {found}" if isinstance(found, TcdslError) else _shown(found)
            raise AssertionError(f"wanted {wanted.__name__} ({outcome.fault})\n\n{case}\n\nfound {shown}")
        return
    if isinstance(found, TcdslError):
        raise AssertionError(f"{type(found).__name__}: {found}\n\n{case}\n\nwanted {_shown(outcome.arrays)}")
    agree(case, outcome.arrays, found, outcome.terms, "against the oracle")


@contextlib.contextmanager
def shown(case: Case) -> Iterator[None]:
    """Add the program to whatever error leaves the block."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        error.add_note(f"in the program\n\n{case}")
        raise
