"""Linters and type checkers find nothing in the module that `docs/checkers.md` shows, with the settings shown there,
and know what calls give. Each runs where it is installed.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import tcdsl.primitives
import tcdsl.sizes
from tests.documents import FENCE, examples

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "checkers.md").read_text(encoding="utf-8")

# mypy reads all of the package for it.
LONG = pytest.mark.long

# A module in the short spelling, as the settings allow it.
SHORT = """from tcdsl import op


@op
def doubled(x):
    half = x[l] / 2
    y[l] = half * 4
    return y
"""

KINDS = """
import numpy as np
from numpy.typing import NDArray
import tcdsl as tc

Array = NDArray[np.float64]

@tc.op
def scaled(x: Array, *, by: float = 1.0) -> Array:
    return x * by

@tc.op(oob="skip")
def pair(x: Array, y: Array) -> tuple[Array, Array]:
    return x, y

@tc.cd
def descend(p: Array, *, rate: float) -> None:
    p -= rate

class Model:
    @tc.op
    def step(self, x: Array) -> Array:
        return x

def held(f: tc.TensorFunction, x: Array) -> None:
    reveal_type(f(x))

x = np.ones(3)
t = tc.tensor(x)
"""

# What is asked, and what a checker says of it: a type, or that it is wrong.
ASKED = {
    "scaled(x)": "NDArray",
    "scaled(x, by=2.0)": "NDArray",
    "scaled(x, out=[x])": "list[NDArray]",
    "scaled(t)": "Any",
    "scaled(by=2.0)": "Layer",
    "scaled(by=2.0)(t)": "Any",
    "pair(x, y=x)": "tuple[NDArray, NDArray]",
    "pair(x, t)": "Any",
    "descend(t, rate=0.5)": "Any",
    "Model().step(x)": "NDArray",
    "tc.grad(scaled)(x, by=2.0)": "Any",
    "tc.value_and_grad(scaled)(x)": "tuple[NDArray, Any]",
    "tc.hessian(lambda a, b: scaled(a).sum())(x, x)": "Any",
    "tc.grad(scaled).cost(x)": "Cost",
    "scaled('x')": "error",
    "scaled(x, bye=2.0)": "error",
    "pair(x)": "error",
    "descend(x)": "error",
    "Model().step(x, x)": "error",
    "tc.grad(scaled)('x')": "error",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the settings of the page, its module, and one in the short spelling."""
    (settings,) = (block[2] for block in FENCE.finditer(PAGE) if block[1] == "toml")
    # The rules that programs in formulas break, of which ruff follows few unless it is told to.
    settings = settings.replace("[tool.ruff.lint]", '[tool.ruff.lint]\nselect = ["E", "F", "N", "B", "W", "I"]')
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "checked.py").write_text(examples(PAGE)[0].code)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "__init__.py").touch()
    (tmp_path / "kernels" / "short.py").write_text(SHORT)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec(arguments[0]) is None:
        pytest.skip(f"{arguments[0]} is not installed")
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ruff", "check", "--isolated", "checked.py"),
        ("ruff", "check", "."),
        pytest.param(("mypy", "--strict", "checked.py", "kernels"), marks=LONG),
        pytest.param(("pyright",), marks=LONG),
        pytest.param(("pylint", "--recursive=y", "."), marks=LONG),
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_checkers_find_nothing(project: Path, arguments: Sequence[str]) -> None:
    done = run(project, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@LONG
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_know_what_calls_give(tmp_path: Path, checker: str) -> None:
    first = KINDS.count("\n") + 1
    asked = "".join(f"reveal_type({text})\n" for text in ASKED)
    (tmp_path / "kinds.py").write_text(KINDS + asked)
    told = run(tmp_path, checker, *(("--strict",) if checker == "mypy" else ()), "kinds.py").stdout
    lines = told.splitlines()
    for number, (text, kind) in enumerate(ASKED.items(), first):
        said = [line for line in lines if f"kinds.py:{number}:" in line]
        wrong = any("error" in line for line in said)
        assert wrong == (kind == "error"), (text, said)
        if not wrong:
            (line,) = (each for each in said if "Revealed type" in each or "Type of" in each)
            short = line.rpartition(' is "')[2].rstrip('"').replace("numpy.", "")
            short = short.replace("ndarray[tuple[Any, ...], dtype[float64]]", "NDArray")
            short = short.replace("ndarray[tuple[int], dtype[float64]]", "NDArray").replace(
                "_Array1D[float64]", "NDArray"
            )
            assert short.removeprefix("builtins.").rpartition("." if "[" not in short else "\0")[2] == kind, (
                text,
                line,
            )


def declared(module: str) -> set[str]:
    """The names that checkers find in a module of the package."""
    tree = ast.parse((ROOT / "tcdsl" / f"{module}.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    nodes = [node for statement in block.body for node in ast.walk(statement)]
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {name for name in stored if not name.startswith("_")}


def test_checkers_find_what_there_is() -> None:
    assert declared("primitives") == set(tcdsl.primitives.names())
    assert declared("sizes") - {"Extents"} == set(tcdsl.sizes.__all__)
    assert all(hasattr(tcdsl.sizes, name) for name in tcdsl.sizes.__all__)
