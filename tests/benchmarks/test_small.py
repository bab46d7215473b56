"""The small cases: ratios of a process, and what the command makes of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from benchmarks.small import __main__ as command
from benchmarks.small import process
from benchmarks.small.cases import CASES
from benchmarks.small.work import work

BEFORE = {"a case": {"call": 1.0, "first call": 0.5}}


@pytest.mark.usefixtures("own_cache")
def test_a_process_measures_calls_and_first_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SECONDS", 0.001)
    case = dataclasses.replace(CASES[2], shapes=((2, 3), (4, 3), (4,)), cotangent=(2, 4), operations=100)
    assert case.name == "layer 2x3 4x3 4, adjoints"
    with tc.config(threads=1):
        found = process.measured(case)
    assert set(found) == {"call", "first call"}
    assert all(np.isfinite(ratio) and ratio > 0 for ratio in found.values())
    work("float64", 0, 64, 3)()
    assert len({each.name for each in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("runs", "status", "told"),
    [
        ([(0.7, 0.5), (0.95, 0.3)], 0, ""),
        ([(0.7, 0.5), (0.7, 0.5), (0.95, 0.1)], 0, ""),
        ([(0.7, 0.5), (0.8, 0.5), (0.6, 0.5)], 1, "a case: work / call was 1 and is 0.8"),
        ([(1.0, 0.3), (1.0, 0.35), (1.0, 0.35)], 1, "a case: work / first call was 0.5 and is 0.35"),
        ([(1.0, 0.3), (1.0, 0.42)], 0, ""),
    ],
)
def test_what_is_lost_in_every_process_fails(
    runs: list[tuple[float, float]],
    status: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    left = iter([{"a case": {"call": call, "first call": first}} for call, first in runs])
    monkeypatch.setattr(command, "_run", lambda: next(left))
    monkeypatch.setattr(command, "_machine", lambda: "here")
    recorded = tmp_path / "ratios.json"
    recorded.write_text(json.dumps({"here": BEFORE}))
    assert command.main(["--compare", str(recorded)]) == status
    assert told in capsys.readouterr().out
    assert next(left, None) is None


def test_records_hold_the_median_for_each_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = iter((5.0, 1.0, 2.0, 4.0, 3.0, 9.0, 9.0))
    monkeypatch.setattr(command, "_run", lambda: {"a case": {"call": next(calls), "first call": 1.0}})
    recorded = tmp_path / "ratios.json"
    recorded.write_text(json.dumps({"elsewhere": BEFORE}))
    assert command.main(["--compare", str(recorded), "--record"]) == 0
    held = json.loads(recorded.read_text())
    assert held.pop("elsewhere") == BEFORE
    assert [*held.values()] == [{"a case": {"call": 3.0, "first call": 1.0}}]
    recorded.write_text("{}")
    assert command.main(["--compare", str(recorded)]) == 0
    assert "ratios.json has no ratios for " in capsys.readouterr().out
