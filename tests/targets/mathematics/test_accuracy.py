"""Errors of elementary functions against mpmath, on this processor and on one that cannot fuse or blend."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.targets.cpu.mathematics.elementary_functions import ELEMENTARY
from tests.targets.mathematics.loops import HOST, arity, loop
from tests.targets.mathematics.points import samples, special_values
from tests.targets.mathematics.references import errors

# In units in the last place, in float32 and float64: what was found at some millions of arguments (in float32 at all
# from 1/32 to 128), with and without fused operations, rounded up.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "exp": (1.0, 1.0),
    "exp2": (1.0, 1.1),
    "expm1": (1.2, 1.25),
    "log": (0.85, 0.9),
    "log2": (0.85, 0.85),
    "log1p": (0.95, 0.95),
    "sin": (0.95, 0.95),
    "cos": (0.95, 0.95),
    "tan": (1.75, 1.7),
    "asin": (1.2, 1.25),
    "acos": (1.2, 1.25),
    "atan": (1.5, 1.6),
    "atan2": (1.6, 1.6),
    "sinh": (1.8, 1.8),
    "cosh": (1.5, 1.5),
    "tanh": (1.4, 1.4),
    "asinh": (1.8, 1.8),
    "acosh": (1.9, 1.95),
    "atanh": (1.8, 1.8),
    "erf": (1.3, 1.4),
    "gelu": (1.8, 1.95),
    "sigmoid": (2.0, 2.0),
    "silu": (2.0, 2.0),
    "softplus": (1.8, 1.7),
    "power": (0.6, 0.8),
}
DTYPES = ("float32", "float64")
COUNT = 150

PROCESSORS = {"host": HOST}
if HOST[0].startswith("x86_64"):
    PROCESSORS["oldest"] = (HOST[0], "x86-64", "")


def test_every_function_is_tested() -> None:
    assert set(BOUNDS) == set(ELEMENTARY)
    assert max(max(bounds) for bounds in BOUNDS.values()) <= 2


@cache
def arguments(name: str, dtype: str) -> tuple[np.ndarray, ...]:
    return samples(name, dtype, COUNT)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_errors(name: str, dtype: str) -> None:
    given = arguments(name, dtype)
    bound = BOUNDS[name][DTYPES.index(dtype)]
    results = {processor: loop(name, given, PROCESSORS[processor]) for processor in PROCESSORS}
    first, *others = results.values()
    distances = {"host": errors(name, given, first)}
    for other in others:
        # Where processors agree, one comparison is enough.
        same = (first == other) | (np.isnan(first) & np.isnan(other))
        distances["oldest"] = errors(name, tuple(operand[~same] for operand in given), other[~same])
        given_there = tuple(operand[~same] for operand in given)
    for processor, found in distances.items():
        if found.size:
            worst = int(np.argmax(found))
            operands = given if processor == "host" else given_there
            at = [float(operand[worst]).hex() for operand in operands]
            assert found[worst] <= bound, (processor, at, found[worst])


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ELEMENTARY)
def test_special_values(name: str, dtype: str, processor: str) -> None:
    values = special_values(dtype)
    given = tuple(map(np.array, zip(*itertools.product(values, repeat=arity(name)), strict=True)))
    found = loop(name, given, PROCESSORS[processor])
    (row,) = (row for row in PRIMITIVES.values() if row.code.startswith(f"{name}("))
    with np.errstate(all="ignore"):
        wanted = np.array([row.evaluate(*point) for point in zip(*given, strict=True)]).astype(dtype)
        if name == "power":
            # NumPy takes the root of minus infinity, or not, depending on how it is called.
            wanted[np.isneginf(given[0]) & (given[1] == 0.5)] = np.inf
    special = ~np.isfinite(wanted) | ~np.isfinite(found) | (found == 0)
    np.testing.assert_array_equal(found[special], wanted[special])
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[found == 0]))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ELEMENTARY if arity(name) == 1])
def test_all_numbers_in_single_precision(name: str) -> None:
    # Double precision, which the other tests compare with mpmath, is exact beside single precision.
    chunk = 2**22
    for start in range(0, 2**32, chunk):
        given = np.arange(start, start + chunk, dtype=np.uint64).astype(np.uint32).view(np.float32)
        found = loop(name, (given,))
        with np.errstate(all="ignore"):
            exact = loop(name, (given.astype(np.float64),))
            rounded = exact.astype(np.float32)
            unit = np.spacing(np.abs(rounded).astype(np.float32)).astype(np.float64)
            close = np.abs(found.astype(np.float64) - exact) <= BOUNDS[name][0] * unit
        same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
        wrong = ~(same | close)
        assert not wrong.any(), (given[wrong][:3], found[wrong][:3], exact[wrong][:3])
