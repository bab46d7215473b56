"""What nests of rounds divide sizes by is divided once for all rounds."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op


@op
def normed(a: real[N], W: real[N, M], steps):
    total = 0.0
    for _t in range(steps):
        b[j] = sum(a[i] * W[i, j])
        size = sum(b[j] * b[j])
        a[i] = 0.5 * a[i] + b[0] / size
        total = total + size
    return a, total


@pytest.mark.parametrize(("rows", "columns", "steps"), [(0, 3, 2), (1, 1, 3), (2, 700, 0), (130, 1, 2), (1300, 70, 2)])
def test_parts_of_sums_in_rounds(rows: int, columns: int, steps: int) -> None:
    generator = np.random.default_rng(rows)
    a, matrix = generator.normal(size=rows), generator.normal(size=(rows, columns))
    results = []
    for threads in (1, 2):
        with tc.config(threads=threads):
            results.append(normed(a, matrix, steps))
    expected, total = a, 0.0
    for _ in range(steps):
        b = expected @ matrix
        with np.errstate(all="ignore"):
            expected, total = 0.5 * expected + b[0] / (b @ b), total + b @ b
    np.testing.assert_allclose(results[0][0], expected, rtol=1e-9)
    np.testing.assert_allclose(results[0][1], total, rtol=1e-9)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_rounds_have_such_values() -> None:
    text = normed.explain("python", np.ones(3), np.ones((3, 3)), 2)
    # The lengths of the parts of sums are words of the frame, not divided in each round.
    assert "of_sizes = size(frame, " in text
    assert "131072" not in text

    @op
    def once(a: real[N]):
        return sum(a[i] * a[i])

    assert "of_sizes" not in once.explain("python", np.ones(3))
