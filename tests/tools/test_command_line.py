"""``python -m tcdsl`` as users start it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.tools.command_line import main

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
    assert "\ndouble  " in shown
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


PROGRAM = """
import numpy as np
from tcdsl import op

@op
def scaled(x, indices, *, rate):
    y[i] = rate * x[indices[i]] / x[0]
    return y

class Models:
    plain = 3

def warm_up():
    scaled(np.ones(4, np.float32), np.zeros(2, int), rate=2.0)
"""


def test_compile_ahead_of_time(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    done = tcdsl("compile", "model:scaled", "float32[4]", "int64[2]", "rate=2.0", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("called model:scaled in ")
    machine_code = files_with_times(tmp_path / "cache")
    assert any(path.endswith(".code") for path in machine_code)
    # Other sizes, and a function that makes its own arguments, need nothing more.
    for arguments in (("model:warm_up",), ("model:scaled", "float32[7]", "int64[3]", "rate=0.5")):
        assert tcdsl("compile", *arguments, folder=tmp_path).returncode == 0
        assert files_with_times(tmp_path / "cache") == machine_code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model",), "'model' names no function; write module:function"),
        (("modle:scaled",), "there is no module 'modle' in this folder or among those installed"),
        (("model:scalde",), "model has no 'scalde'"),
        (("model:Models.plain",), "'Models.plain' of model is no function"),
        (
            ("model:scaled", "float33[4]"),
            "'float33[4]' is no argument; write a type and a shape, float32[8, 3], or a number",
        ),
        (("model:scaled", "x y"), "'x y' is no argument; write a type"),
        (("model:scaled", "float32[4]"), "indices"),
    ],
)
def test_compile_says_what_is_missing(
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    # In this process, where all is imported: that a status is that of the process is seen above.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "model", sys)
    monkeypatch.delitem(sys.modules, "model")
    assert main(["compile", *arguments]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_versions_and_settings_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"tcdsl {tc.__version__}\n")
    with tc.config(check="nan,bounds", cache_dir=str(tmp_path)):
        assert main(["info"]) == 0
    told = capsys.readouterr().out
    for words in (f"numpy {np.__version__}", "vectors of", "threads", "check='bounds,nan'", platform.python_version()):
        assert words in told


def test_a_function_of_a_module_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "tests.tools.test_command_line:scaled", "float32[3]", "by=2.0"]) == 0
    assert "y[i] = x[i] * float32(by)" in capsys.readouterr().out
    assert main(["explain", "tests.tools.test_command_line:scaled", "float32[3]", "--stage", "schedule"]) == 0
    assert "y[i] = " in capsys.readouterr().out
    assert main(["explain", "tests.tools.test_command_line:tcdsl", "1"]) == 1
    assert "tests.tools.test_command_line:tcdsl is no decorated function" in capsys.readouterr().err


@op
def scaled(x: Any, *, by: float = 3.0) -> Any:
    y[i] = x[i] * by
    return y
