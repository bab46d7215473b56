"""Random programs in the shape of attention: axes in any order, weights of any kind, in blocks of rows and without."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.differential.layouts import laid_out
from tests.differential.loading import loaded
from tests.long_variants import seeds

# What scores become, and what each row of them is divided by.
WEIGHTS = (
    ("exp(S[{r}, j] - top[{r}])", True),
    ("where(j <= i + 2, exp(S[{r}, j] - top[{r}]), 0.0)", True),
    ("max(S[{r}, j] - 0.5 * top[{r}], 0.0)", True),
    ("S[{r}, j] * S[{r}, j]", False),
)
# Around the edges of tiles, panels and blocks; below what is worth them.
ROWS, COLUMNS, TERMS = (0, 1, 5, 23, 24, 49, 100), (0, 1, 15, 16, 33, 65), (0, 1, 4, 19)


def drawn(seed: int) -> tuple[str, dict[str, str]]:
    """A program, and the axes of its arguments."""
    pick = random.Random(seed)
    heads = pick.choice(((), ("h",), ("b", "h")))
    shared = heads[: pick.randint(0, len(heads))]  # the heads of keys
    axes = {
        name: pick.sample(every, len(every))
        for name, every in (("Q", (*heads, "i", "d")), ("K", (*shared, "j", "d")), ("V", (*shared, "j", "e")))
    }
    rows = pick.sample((*heads, "i"), len(heads) + 1)
    weight, extreme = pick.choice(WEIGHTS)
    r = ", ".join(rows)
    q, k, v = (", ".join(axes[name]) for name in "QKV")
    target = ", ".join(pick.sample((*rows, "e"), len(rows) + 1))
    text = f"""def f(Q, K, V):
    S[{r}, j] += Q[{q}] * K[{k}]
    {f"top[{r}] >>= S[{r}, j]" if extreme else ""}
    E[{r}, j] = {weight.format(r=r)}
    total[{r}] += E[{r}, j]
    O[{target}] += E[{r}, j] * V[{v}]
    Y[{target}] = O[{target}] / (total[{r}] + 1.0)
    return {pick.choice(("Y", "Y", "Y, E", "Y, total"))}
"""
    return text, {name: "".join(found) for name, found in axes.items()}


def results(function: Any, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        found = function(*arrays)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_blocks_of_rows_change_no_bit(seed: int) -> None:
    text, axes = drawn(seed)
    function, pick = loaded(text), random.Random(seed)
    dtype = pick.choice((np.float32, np.float64))
    normal = np.random.default_rng(seed).normal
    for _ in range(4):
        sizes = {"i": pick.choice(ROWS), "j": pick.choice(COLUMNS), "d": pick.choice(TERMS), "b": 2, "h": 3, "e": 5}
        arrays = [normal(size=[sizes[axis] for axis in axes[name]]).astype(dtype) for name in "QKV"]
        if arrays[0].size and pick.random() < 0.3:
            arrays[0].flat[0] = pick.choice((np.inf, -np.inf, np.nan))
        given = [laid_out(array, pick.randint) for array in arrays]
        found = results(function, given)
        with tc.config(optimize="-row_blocks"):
            for mine, its in zip(found, results(function, given), strict=True):
                np.testing.assert_array_equal(mine, its, err_msg=text)
        for mine, its in zip(found, results(function.interpret, arrays), strict=True):
            scale = 1e-4 if dtype == np.float32 else 1e-11
            np.testing.assert_allclose(mine, its, rtol=scale, atol=10 * scale, equal_nan=True, err_msg=text)
