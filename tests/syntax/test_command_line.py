"""``python -m tcdsl run`` and ``desugar``, as users start them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def tcdsl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tcdsl", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


PROGRAM = """\
import sys
import numpy as np
from tcdsl import op
import beside

@op
def gated(x):
    y = x -?/ x
    return y

if __name__ == "__main__":
    print(sys.argv, gated.interpret(np.array([-1.0, 2.0])), beside.double.interpret(2.0))
    import pickle
    assert pickle.loads(pickle.dumps(gated)) is gated
    [1, 2][len(sys.argv)]
"""
BESIDE = "# tcdsl: literal\nfrom tcdsl import op\n@op\ndef double(x):\n    return x *. 2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "program.py").write_text(PROGRAM)
    (tmp_path / "scripts" / "beside.py").write_text(BESIDE)
    return tmp_path


def test_run_a_file(folder: Path) -> None:
    result = tcdsl(folder, "run", "scripts/program.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "['scripts/program.py'] [0. 2.] 4.0\n"


def test_run_with_arguments_and_a_traceback(folder: Path) -> None:
    result = tcdsl(folder, "run", "scripts/program.py", "--check", "-m")
    assert result.stdout == "['scripts/program.py', '--check', '-m'] [0. 2.] 4.0\n"
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        "Traceback (most recent call last):",
        '  File "scripts/program.py", line 15, in <module>',
        "    [1, 2][len(sys.argv)]",
        "    ~~~~~~^^^^^^^^^^^^^^^",
        "IndexError: list index out of range",
    ]


def test_run_a_module(folder: Path) -> None:
    result = tcdsl(folder / "scripts", "run", "-m", "program")
    assert result.stdout == f"['{folder / 'scripts' / 'program.py'}'] [0. 2.] 4.0\n"
    assert result.returncode == 0


def test_the_exit_status_is_the_programs(folder: Path) -> None:
    (folder / "leave.py").write_text("import sys\nsys.exit(7)\n")
    assert tcdsl(folder, "run", "leave.py").returncode == 7


def test_faults_of_a_program(folder: Path) -> None:
    (folder / "bad.py").write_text(PROGRAM.replace("-?/", "-?"))
    result = tcdsl(folder, "run", "bad.py")
    assert result.returncode == 1
    assert "bad.py:8: `-?` is no operator\n    y = x -? x\n          ^^\n" in result.stderr
    assert "command_line" not in result.stderr
    result = tcdsl(folder, "run", "absent.py")
    assert result.returncode == 2
    assert "cannot read absent.py" in result.stderr


@pytest.mark.parametrize(
    "arguments", [("run",), ("run", "-m"), ("desugar",), ("desugar", "--write", "--check", "x.py")]
)
def test_wrong_arguments(folder: Path, arguments: tuple[str, ...]) -> None:
    result = tcdsl(folder, *arguments)
    assert result.returncode == 2
    assert "usage: python -m tcdsl" in result.stderr


PLAIN = PROGRAM.replace("x -?/ x", "relu_gate(x, x)")


def test_desugar_prints(folder: Path) -> None:
    result = tcdsl(folder, "desugar", "scripts/program.py", "scripts/beside.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout == PLAIN + BESIDE.replace("*.", "*")
    assert (folder / "scripts" / "program.py").read_text() == PROGRAM


def test_desugar_writes_what_changes(folder: Path) -> None:
    other = folder / "other.py"
    other.write_bytes("# coding: latin-1\r\n# \u00e9\r\nx =-1\r\n".encode("latin-1"))
    literal = folder / "literal.py"
    text = "\ufeff# \u00e9\r\nfrom tcdsl import op\r\n@op\r\ndef f(x):\r\n    return x *. 2  # \u00e9\r\n"
    literal.write_bytes(text.encode())
    before = other.stat().st_mtime_ns
    result = tcdsl(folder, "desugar", "--check", "other.py", "literal.py")
    assert (result.returncode, result.stdout) == (1, "literal.py\n")
    assert literal.read_bytes() == text.encode()
    result = tcdsl(folder, "desugar", "--write", "other.py", "literal.py")
    assert (result.returncode, result.stdout) == (0, "literal.py\n")
    assert literal.read_bytes() == text.replace("*.", "*").encode()
    assert other.stat().st_mtime_ns == before
    result = tcdsl(folder, "desugar", "--check", "other.py", "literal.py")
    assert (result.returncode, result.stdout) == (0, "")


def test_a_fault_in_one_file_leaves_all(folder: Path) -> None:
    (folder / "bad.py").write_text(PROGRAM.replace("-?/", "-?"))
    (folder / "worse.py").write_text("x = = 1\n")
    result = tcdsl(folder, "desugar", "--write", "scripts/program.py", "bad.py", "worse.py")
    assert result.returncode == 1
    assert "bad.py:8: `-?` is no operator" in result.stderr
    assert 'File "worse.py", line 1' in result.stderr
    assert (folder / "scripts" / "program.py").read_text() == PROGRAM
