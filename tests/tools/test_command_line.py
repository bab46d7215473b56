"""``python -m tcdsl`` as users start it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def tcdsl(*arguments: str, folder: Path, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TCDSL_CACHE_DIR": str(cache or folder / "cache"),
        "COLUMNS": "100",
    }
    command = [sys.executable, "-m", "tcdsl", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def files_with_times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_demo_reports_and_draws_and_the_next_one_starts_from_the_cache(tmp_path: Path) -> None:
    first = tcdsl("demo", "--short", "--epochs", "2", "--output", "pictures", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    for expected in (
        "1438 images",
        "The network and its loss",
        "Its gradient, as generated",
        "NumPy",
        "accuracy on held-out",
    ):
        assert expected in first.stdout
    picture = tmp_path / "pictures" / "digits.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000

    machine_code = files_with_times(tmp_path / "cache")
    assert any(path.endswith(".code") for path in machine_code)
    second = tcdsl("demo", "--short", "--epochs", "2", "--output", "pictures", folder=tmp_path)
    assert second.returncode == 0, second.stderr
    assert files_with_times(tmp_path / "cache") == machine_code


def test_cache_info_and_clear(tmp_path: Path) -> None:
    program = tmp_path / "double.py"
    program.write_text(
        "import numpy as np\n"
        "from tcdsl import op\n"
        "@op\n"
        "def double(A):\n"
        "    B[i] = 2 * A[i]\n"
        "    return B\n"
        "print(double(np.arange(3.0)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TCDSL_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, str(program)], env=environment, check=True, capture_output=True)
    shown = tcdsl("cache", "info", folder=tmp_path).stdout
    assert "│ double " in shown
    assert f"in {tmp_path / 'cache'}" in shown
    cleared = tcdsl("cache", "clear", folder=tmp_path)
    assert cleared.returncode == 0
    assert "0 programs" in tcdsl("cache", "info", folder=tmp_path).stdout
    assert not list((tmp_path / "cache").rglob("*.py"))


def test_clearing_a_folder_leaves_other_files_alone(tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "notes.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    assert tcdsl("cache", "clear", folder=tmp_path).returncode == 0
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("arguments", [(), ("fly",), ("demo", "--epochs", "0"), ("cache",)])
def test_wrong_arguments_are_explained(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = tcdsl(*arguments, folder=tmp_path)
    assert result.returncode == 2
    assert "usage: python -m tcdsl" in result.stderr


def test_an_impossible_setting_is_an_error_without_traceback(tmp_path: Path) -> None:
    result = tcdsl("demo", "--threads", "-1", folder=tmp_path)
    assert result.returncode == 1
    assert "threads" in result.stderr
    assert "Traceback" not in result.stderr
