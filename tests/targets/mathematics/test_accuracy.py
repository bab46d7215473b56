"""Errors of elementary functions against mpmath, on this processor and on one that cannot fuse or blend."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from tcdsl.targets.cpu.mathematics.elementary_functions import ELEMENTARY
from tests.targets.mathematics.loops import HOST, arity, loop
from tests.targets.mathematics.points import samples, special_values
from tests.targets.mathematics.references import errors

# In units in the last place: what was found at some millions of arguments, rounded up.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "exp": (1.0, 1.0),
    "log": (0.85, 0.85),
}
DTYPES = ("float32", "float64")
COUNT = 500

PROCESSORS = {"host": HOST}
if HOST[0].startswith("x86_64"):
    PROCESSORS["oldest"] = (HOST[0], "x86-64", "")


def test_every_function_is_tested() -> None:
    assert set(BOUNDS) == set(ELEMENTARY)


@cache
def arguments(name: str, dtype: str) -> tuple[np.ndarray, ...]:
    return tuple(samples(name, dtype, COUNT) for _ in range(arity(name)))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_errors(name: str, dtype: str, processor: str) -> None:
    given = arguments(name, dtype)
    found = loop(name, given, PROCESSORS[processor])
    distances = errors(name, given, found)
    worst = int(np.argmax(distances))
    at = [float(operand[worst]).hex() for operand in given]
    assert distances[worst] <= BOUNDS[name][DTYPES.index(dtype)], (at, distances[worst])


NUMPY = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(set(ELEMENTARY)))
def test_special_values(name: str, dtype: str, processor: str) -> None:
    given = special_values(dtype)
    found = loop(name, (given,), PROCESSORS[processor])
    with np.errstate(all="ignore"):
        wanted = NUMPY.get(name, getattr(np, name, None))(given)
    special = ~np.isfinite(wanted) | (wanted == 0) | (given == 0)
    np.testing.assert_array_equal(found[special], wanted[special])
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
