"""Constant exponents of halves: roots and products, at all sizes of numbers and at what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl import op
from tcdsl.ir.build import apply, constant
from tcdsl.lowering.loopir.loops import Store
from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.mathematics.elementary_functions import POWERS_OF_HALVES
from tests.targets.kernels import I, N, loop, make, read
from tests.targets.mathematics.points import special_values
from tests.targets.mathematics.references import errors

# In units in the last place: what was found at two million arguments, rounded up.
BOUNDS = {0.5: 0.5, 1.5: 1.3, 2.5: 2.0, -0.5: 1.5, -1.5: 2.1, -2.5: 2.9}


@op
def powers(x):
    y: real[6, x.shape[0]]
    y[0, i] = x[i] ** 0.5
    y[1, i] = x[i] ** 1.5
    y[2, i] = x[i] ** 2.5
    y[3, i] = x[i] ** -0.5
    y[4, i] = x[i] ** -1.5
    y[5, i] = x[i] ** -2.5
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_errors_and_special_values(dtype: str) -> None:
    assert set(BOUNDS) == set(POWERS_OF_HALVES)
    special = special_values(dtype)
    # Results of all sizes, subnormal ones and those that overflow among them.
    end = np.log(float(np.finfo(dtype).max))
    sizes = np.exp(np.random.default_rng(1).uniform(-end, end, 300))
    x = np.concatenate([special, sizes, sizes**0.5, sizes**0.01]).astype(dtype)
    for (exponent, bound), found in zip(BOUNDS.items(), powers(x), strict=True):
        with np.errstate(all="ignore"):
            wanted = (special.astype("float64") ** exponent).astype(dtype)
        # What NumPy makes of minus infinity depends on how it is called; C says it.
        wanted[np.isneginf(special)] = np.inf if exponent > 0 else 0
        ends = ~np.isfinite(wanted) | (wanted == 0)
        np.testing.assert_array_equal(found[: len(special)][ends], wanted[ends])
        assert not np.signbit(found[found == 0]).any()
        positive = (x > 0) & (x < np.inf)
        given = x[positive]
        off = errors("power", (given, np.full_like(given, exponent)), found[positive])
        assert off.max() <= bound, (exponent, given[np.argmax(off)], off.max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [*POWERS_OF_HALVES, 3.5, 0.75])
def test_no_logarithm_is_taken(exponent: float, dtype: str) -> None:
    value = apply("pow", read("X", I, dtype=dtype), constant(exponent, dtype))
    kernel = make({"X": (dtype, (N,))}, {"Y": (dtype, (N,))}, [loop("i", N, Store("Y", (I,), value))])
    ((_, text),) = emitted_nests(kernel, (True,), {0: "nest"}, None)
    assert (f'"tcdsl.power.{dtype}"' in text) == (exponent not in POWERS_OF_HALVES)
    assert ("llvm.sqrt" in text) == (exponent in POWERS_OF_HALVES)
