"""Code on views does what NumPy does, for random programs of statements that take views, slice them and store."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.differential.loading import loaded
from tests.differential.memory_programs import random_code, run_by_numpy


def _check(seed: int, compiled: bool = False) -> None:
    pick = random.Random(seed)
    sizes = [(pick.randint(0, 5), pick.randint(0, 5), pick.randint(1, 6)) for _ in range(3)]
    cases = [(np.arange(1.0, n * m + 1).reshape(n, m), -np.arange(1.0, k + 1)) for n, m, k in sizes]
    source = random_code(pick, 7, *cases[0])
    f = loaded(source, decorator="cd")
    for case in cases:
        try:
            wanted = run_by_numpy(source, *case)
        except (ValueError, IndexError, TypeError):
            continue
        found = list(f.interpret(*case))
        if compiled:
            copies = [array.copy() for array in case]
            f(*copies)
            found += copies
            wanted += wanted
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}, sizes {[a.shape for a in case]}\n{source}")


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_views_are_memory_as_in_numpy(first: int) -> None:
    for seed in range(first, first + 20):
        _check(seed)


def test_compiled_stores_into_views_are_interpreted_ones() -> None:
    for seed in range(1000, 1003):
        _check(seed, compiled=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(2000, 4000, 100))
def test_more_programs(first: int) -> None:
    for seed in range(first, first + 100):
        _check(seed, compiled=seed % 20 == 0)
