"""Derivatives of many branches, in or behind each other, are found in a time that grows with their number."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff.statement_derivatives import activity
from tcdsl.ir import stages


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


@op
def following(x, *, rounds):
    for _ in range(rounds):
        x = x * 1.5 if x[0] > 0.0 else x + 1.0
    return x.sum()


def test_statements_of_many_stages_are_looked_at_once_for_each_question() -> None:
    asked = []
    for rounds in (10, 20):
        with patch.object(stages, "tensors_read", wraps=stages.tensors_read) as found:
            tc.grad(following).explain("ir", np.ones(4), rounds=rounds)
        asked.append(found.call_count)
    assert asked[1] < 2.2 * asked[0]
