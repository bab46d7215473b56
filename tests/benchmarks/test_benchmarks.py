"""The benchmarks' own parts: contenders that agree, fair timing, comparisons, and the whole on a small case."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases import CASES, Case
from benchmarks.machine import ForeignTime, multiply_add_peak
from benchmarks.measure import Limits, Measurement, WrongResultError, measure, peers_at_hand
from benchmarks.report import draw, losses, mean_ratio, record
from benchmarks.timing import Timing, alternate

ROOT = Path(__file__).parent.parent.parent
MACHINE = Limits({"float32": 1e11, "float64": 5e10}, 2e10)


def small(case: Case) -> Case:
    """Few cells along each axis; windows stay as they are."""
    shapes = tuple(12 if isinstance(s, int) else tuple(n if n < 5 else min(n, 9) for n in s) for s in case.shapes)
    return dataclasses.replace(case, shapes=shapes)


ALL = list({case.computation: case for case in CASES}.values())
FEW = ("matmul", "strided", "column softmax", "embedding")


def compared(case: Case, dtype: str, *, adjoints: bool) -> Measurement:
    peers = peers_at_hand(["numpy", "torch", "jax"])
    found = measure(small(case), dtype, peers, seconds=0.001, machine=MACHINE, adjoints=adjoints)
    assert set(found.timings) >= {"tcdsl", *(name for name in peers if name != "numpy")}
    return found


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.computation, marks=pytest.mark.long if k % 3 else ()) for k, case in enumerate(ALL)],
)
def test_all_contenders_agree(case: Case) -> None:
    assert compared(case, "float64", adjoints=False).reached > 0


@pytest.mark.parametrize("case", [case for case in ALL if case.computation in FEW], ids=lambda case: case.computation)
def test_adjoints_agree(case: Case) -> None:
    assert compared(case, "float32", adjoints=True).name.endswith("adjoints, float32")


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", [case for case in ALL if case.adjoints], ids=lambda case: case.computation)
def test_all_adjoints_agree(case: Case, dtype: str) -> None:
    compared(case, dtype, adjoints=True)


def test_a_wrong_result_is_never_timed() -> None:
    case = small(ALL[0])
    for program in (lambda A, B: A @ B + 1e-3, lambda A, B: (A @ B)[:-1]):
        wrong = dataclasses.replace(case, program=program)
        wrong.program.__name__ = "matmul"
        with pytest.raises(WrongResultError, match="tcdsl differs"):
            measure(wrong, "float64", peers_at_hand(["numpy"]), seconds=0.01, machine=MACHINE)


def test_timing_tells_slow_from_fast_and_alternates() -> None:
    order = []

    def slow() -> None:
        order.append("slow")
        time.sleep(0.004)

    def fast() -> None:
        order.append("fast")
        time.sleep(0.002)

    timings = alternate({"slow": slow, "fast": fast}, seconds=0.04)
    assert timings["slow"].median > 1.5 * timings["fast"].median
    assert all(timing.minimum <= timing.median for timing in timings.values())
    rounds = len(timings["slow"].samples)
    assert order[-2 * rounds :].index("fast") < rounds


def test_the_machine() -> None:
    assert multiply_add_peak("float32") > multiply_add_peak("float64") > 1e9
    others = ForeignTime()
    sum(range(10**6))
    share = others.share()
    assert share is None or share >= 0


def test_names_are_unique_and_limits_known() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.moved > 0 for case in CASES)


def made(case: Case, ours: float, peer: float) -> Measurement:
    timings = {name: Timing((seconds,), 1) for name, seconds in (("tcdsl", ours), ("torch", peer), ("jax", 9.0))}
    return Measurement(case, "float32", False, timings, dict.fromkeys(timings, 0.0), 0.1, 0.5)


def test_comparisons_and_charts(tmp_path: Path) -> None:
    machine = {"processor": "p", "threads": 1}
    before = [made(ALL[0], 1.0, 2.0), made(ALL[1], 1.0, 8.0)]
    assert before[0].best == "torch"
    assert mean_ratio(before) == pytest.approx((2 * 4) ** 0.5)
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(record(machine, before)))
    assert losses(earlier, record(machine, [made(ALL[0], 1.05, 2.0), made(ALL[1], 0.5, 8.0)])) == []
    (line,) = losses(earlier, record(machine, [made(ALL[0], 1.2, 2.0)]))
    assert line == f"{before[0].name}: peer / ours was 2 and is 1.67"
    slower = dataclasses.replace(before[0], first=0.2)
    (line,) = losses(earlier, record(machine, [slower]))
    assert line == f"{before[0].name}: 1 / first call was 10 and is 5"
    assert losses(earlier, record({**machine, "processor": "q"}, [slower])) == []
    pytest.importorskip("matplotlib")
    draw(tmp_path / "chart.svg", record(machine, before))
    assert "<svg" in (tmp_path / "chart.svg").read_text()


def test_the_command_prints_a_table_writes_json_and_compares(tmp_path: Path) -> None:
    earlier, written = tmp_path / "earlier.json", tmp_path / "written.json"
    # A run that was a thousand million times as fast as this one will be.
    cases = {"matmul 16x16 16x16, float32": {"ratio": 1e9, "first": 1e9}}
    earlier.write_text(json.dumps({"machine": {"processor": ""}, "cases": cases}))
    command = [sys.executable, "-m", "benchmarks", "--only", "matmul 16x16", "--what", "values", "--peers", "numpy"]
    command += ["--seconds", "0.05", "--json", str(written), "--compare", str(earlier)]
    environment = {**os.environ, "TCDSL_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "200"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 1, result.stderr
    assert "matmul 16x16 16x16, float32: peer / ours was 1e+09 and is" in result.stdout
    found = json.loads(written.read_text())
    assert found["machine"]["versions"]["numpy"] == np.__version__
    (case,) = found["cases"].values()
    assert set(case["contenders"]) == {"tcdsl", "numpy"}
