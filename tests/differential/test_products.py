"""Random batched products: axes in any order, the batch anywhere, sizes around the edges of tiles, passes drawn."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tcdsl as tc
from tests.differential.layouts import laid_out
from tests.differential.loading import loaded
from tests.long_variants import seeds

# Around the edges of tiles and registers; a block of terms, and a batch that fills some registers.
ROWS, COLUMNS, TERMS, BATCH = (1, 4, 6, 7, 13, 49), (1, 2, 5, 16, 17, 33), (0, 1, 5, 64, 65), (1, 2, 7, 8, 15, 16, 33)
SWITCHES = ("-side_by_side", "-panels", "-tiles", "-unpacked")


def drawn(seed: int) -> tuple[str, dict[str, str]]:
    """A program, and the axes of its arguments: often the batch last, in some of them."""
    pick = random.Random(seed)
    more = pick.choice(("", "", "c"))  # a second axis of the batch

    def axes(own: str) -> str:
        order = pick.sample(own + more, len(own + more))
        order.insert(pick.choice((0, len(order), len(order), pick.randint(0, len(order)))), "b")
        return "".join(order)

    found = {"A": axes("ik"), "B": axes("kj")}
    left, right, target = (", ".join(each) for each in (found["A"], found["B"], axes("ij")))
    text = f"""def f(A, B):
    C[{target}] {pick.choice(("+=", "-="))} A[{left}] * {pick.choice(("", "2 * "))}B[{right}]
    return C
"""
    return text, found


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_axes_in_any_order(seed: int) -> None:
    text, axes = drawn(seed)
    function, pick = loaded(text), random.Random(seed)
    dtype = pick.choice(("float32", "float64", "float32", "int32"))
    whole = np.random.default_rng(seed).integers
    for _ in range(4):
        sizes = {"c": 2} | {
            name: pick.choice(of) for name, of in zip("ijkb", (ROWS, COLUMNS, TERMS, BATCH), strict=True)
        }
        arrays = [whole(-9, 9, [sizes[axis] for axis in axes[name]]).astype(dtype) for name in "AB"]
        if dtype != "int32" and arrays[0].size and pick.random() < 0.3:
            arrays[0].flat[0] = pick.choice((np.inf, np.nan))
        given = [laid_out(array, pick.randint) for array in arrays]
        # Sums of whole numbers are exact, in any order.
        with np.errstate(invalid="ignore"):
            expected = function.interpret(*arrays)
            for settings in ({}, {"threads": 2}, {"optimize": pick.choice(SWITCHES)}):
                with tc.config(**settings):
                    np.testing.assert_array_equal(function(*given), expected, err_msg=f"{text}{sizes} {settings}")
