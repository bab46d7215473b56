"""Derivatives of branches in branches are found in a time that grows with their number."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff.statement_derivatives import activity


@op
def deeper(x, *, depth):
    y = x * 1.5
    if depth > 0 and x[0] > depth:
        y = deeper(y + 1.0, depth=depth - 1)
    return y


@op
def loss(x, *, depth):
    return deeper(x, depth=depth).sum()


def test_what_is_active_inside_is_found_once() -> None:
    asked = []
    for depth in (6, 12):
        with patch.object(activity, "_passes_on", wraps=activity._passes_on) as found:
            tc.grad(loss).explain("ir", np.ones(4), depth=depth)
        asked.append(found.call_count)
    assert asked[1] < 2.2 * asked[0]
