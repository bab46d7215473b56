"""The benchmark of training steps runs, and compares before it measures."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.training import __main__ as command
from benchmarks.training import network, worker
from benchmarks.training.problem import WEIGHT_DECAY, Contender, Problem, expected, largest_difference, problem


def loss(parameters: list[np.ndarray], start: Problem) -> float:
    w1, b1, w2, b2, w3, b3 = parameters
    hidden = np.maximum(start.x.astype(np.float64) @ w1 + b1, 0)
    score = np.maximum(hidden @ w2 + b2, 0) @ w3 + b3
    decay = sum(float((p * p).sum()) for p in parameters)
    return float(np.maximum(1 - start.y * score, 0).mean() + 0.5 * WEIGHT_DECAY * decay)


def test_the_formulas_are_the_gradient_of_the_loss():
    start = problem()
    before = [p.astype(np.float64) for p in start.parameters]
    (moved,) = [expected(start, 1, 1.0)]
    for k in range(6):
        direction = np.random.default_rng(k).standard_normal(before[k].shape)
        sides = []
        for step in (1e-6, -1e-6):
            shifted = [p + step * direction if m == k else p for m, p in enumerate(before)]
            sides.append(loss(shifted, start))
        slope = (sides[0] - sides[1]) / 2e-6
        assert slope == pytest.approx(float(((before[k] - moved[k]) * direction).sum()), rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("make", [network.routine, network.resident, network.called])
def test_steps_follow_the_formulas(make):
    start = problem()
    contender = make(start)
    contender.run(30, 0.5)
    assert largest_difference(contender.parameters(), expected(start, 30, 0.5)) < 1e-5
    assert loss(contender.parameters(), start) < 0.8 * loss(list(start.parameters), start)


def test_what_differs_is_not_timed(monkeypatch, capsys):
    start = problem()
    still = Contender(lambda steps, rate: None, lambda: list(start.parameters))
    monkeypatch.setattr(worker, "_makers", lambda peers: {"still": lambda start: still})
    assert worker.main('{"peers": [], "seconds": 0.01}') == 1
    assert json.loads(capsys.readouterr().out)["errors"]["still"] > worker.TOLERANCE


@pytest.mark.long
def test_a_run_writes_every_sample(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("TCDSL_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "out.json"
    given = ["--peers", "--processes", "1", "--seconds", "0.02", "--json", str(file)]
    assert command.main(given) == 0
    result = json.loads(file.read_text())
    (run,) = result["runs"]
    assert set(run["samples"]) == {"tcdsl", "tcdsl, function bound", "tcdsl, function called", "numba, by hand"}
    assert max(run["errors"].values()) < worker.TOLERANCE
    assert "microseconds per step" in capsys.readouterr().out


def test_a_process_that_fails_is_reported(monkeypatch, capsys):
    failed = SimpleNamespace(returncode=1, stdout='{"errors": {}}', stderr="broken")
    monkeypatch.setattr(command.subprocess, "run", lambda *a, **k: failed)
    assert command.main(["--processes", "1"]) == 1
    assert "broken" in capsys.readouterr().out
