"""Scalar code of one point: locals that only lazy places use."""

from __future__ import annotations

import sys
from types import FrameType

import numpy as np

import tcdsl as tc
from tcdsl import op
from tcdsl.lowering.loopir import scalars


@op
def chosen(x, *, levels):
    t = x[i]
    for k in range(levels):
        t = where(x[i] > k, k * x[i], t)
    y[i] = t
    return y.sum()


def steps(levels: int) -> int:
    """How many functions of the module run for the gradient of so many choices in each other."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename == scalars.__file__

    sys.setprofile(note)
    try:
        tc.grad(chosen).explain("loops", np.ones(4), levels=levels)
    finally:
        sys.setprofile(None)
    return count


def test_choices_in_choices_become_scalar_code_without_looking_for_each_local_at_each_depth() -> None:
    assert steps(32) < 4.5 * steps(16)  # cubic time would be 8 times as long
