"""The benchmark of calls runs, and its calls compute what they say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.calls.__main__ import main
from benchmarks.calls.programs import CALLS


def test_it_shows_microseconds_and_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "two arrays", "--samples", "1"]) == 0
    shown = capsys.readouterr().out
    assert "two arrays and a number, in place" in shown
    assert "1.00" in shown


def test_its_calls() -> None:
    for name in ("two arrays", "a new shape each time", "50 shapes in turn"):
        np.testing.assert_array_equal(CALLS[name][0]()(), 2.0)
