"""The benchmark of first calls runs, cold and from disk, and says which process failed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.first_calls import __main__ as command
from benchmarks.first_calls.process import STAGES


@pytest.mark.long
def test_a_run_writes_every_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.json"
    given = ["--only", "layer", "--libraries", "tcdsl", "--processes", "1", "--json", str(file)]
    assert command.main(given) == 0
    runs = json.loads(file.read_text())["a layer"]["tcdsl"]
    assert set(runs) == {"compiled", "from disk"}
    for (run,) in runs.values():
        assert set(run) == {"elapsed", "processor"}
        assert tuple(run["elapsed"]) == STAGES
        assert run["elapsed"]["again"] < run["elapsed"]["first result"]
    assert "from disk" in capsys.readouterr().out


def test_a_process_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failed = SimpleNamespace(returncode=1, stdout="{}", stderr="broken")
    monkeypatch.setattr(command.subprocess, "run", lambda *a, **k: failed)
    assert command.main(["--processes", "1", "--libraries", "tcdsl"]) == 1
    assert "broken" in capsys.readouterr().out
