"""Random programs where differences of values are derivatives."""

from __future__ import annotations

import numpy as np

from tcdsl.errors import TcdslError
from tests.differential.agreement import attempt
from tests.differential.loading import loaded
from tests.oracle.generation import Case, case_of_seed

__all__ = ["differentiable"]

FLOATS = ("float64",)


def _smooth(case: Case, seed: int) -> Case:
    """The same program where no two values tie and none is at a kink, so that differences of values are gradients."""
    random = np.random.default_rng(seed)
    moved = {
        name: array + random.uniform(0.01, 0.2, array.shape) if array.dtype.kind == "f" else array
        for name, array in case.arrays.items()
    }
    return Case(case.source, moved)


def differentiable(seed: int) -> Case | None:
    """A program with a floating output, that runs on finite numbers; None if the seed gives another."""
    case = _smooth(case_of_seed(seed, 1 + seed % 3, FLOATS), seed)
    outputs = attempt(lambda: loaded(case.source).interpret(*case.arrays.values()))
    if isinstance(outputs, TcdslError) or not any(array.dtype.kind == "f" for array in outputs):
        return None
    if any(np.isnan(array).any() for array in outputs):
        return None
    if case.source.count("] ") > 1 and not all(np.isfinite(array).all() for array in outputs):
        return None  # cells that no point writes are infinite in a maximum; what is computed of them is not smooth
    return case if all(np.abs(array[np.isfinite(array)]).max(initial=0) < 1e4 for array in outputs) else None
