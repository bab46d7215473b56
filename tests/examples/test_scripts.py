"""Every script says what it is and takes as options what its `main` takes."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))


def name_of(path: Path) -> str:
    """``loops.lorenz`` for ``examples/loops/lorenz.py``."""
    return ".".join(path.relative_to(EXAMPLES).with_suffix("").parts)


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_says_how_it_is_run_and_has_a_main(path: Path) -> None:
    module = ast.parse(path.read_text())
    command = f"python {'-m tcdsl run ' if path.stem.endswith('_literal') else ''}{path.relative_to(ROOT)}"
    assert command in (ast.get_docstring(module) or "")
    assert command in (EXAMPLES / "README.md").read_text()
    (main,) = (node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    assert any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(main))


@pytest.mark.parametrize("path", [p for p in SCRIPTS if "argparse" in p.read_text()], ids=name_of)
def test_options_are_arguments_of_main(example, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[argparse.Namespace] = []

    def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
        parsed.append(parser.parse_known_args([])[0])
        raise SystemExit

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(SystemExit):
        runpy.run_path(str(path), run_name="__main__")
    options = vars(parsed[0])
    defaults = inspect.signature(example(name_of(path)).main).parameters
    assert options == {name: defaults[name].default for name in options}


@pytest.mark.parametrize(
    "command", [["examples/micrograd.py", "--height", "2"], ["-m", "tcdsl", "run", "examples/micrograd_literal.py"]]
)
def test_scripts_run_as_they_say(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "g = 24.70408163265306, dg/da = 138.8338192419825" in done.stdout
