"""The wheel holds all that the package needs: installed alone, outside the repository, it compiles a first program."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tcdsl"

PROGRAM = """
import numpy as np
import tcdsl as tc

@tc.op
def convolve(image, kernel):
    out[x] += image[x + i] * kernel[i]
    return out

image, kernel = np.arange(5.0), np.ones(2)
print(tc.__file__)
print(convolve(image, kernel), tc.grad(lambda k: convolve(image, k).sum())(kernel))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel is unpacked, as an installer does."""
    pytest.importorskip("hatchling", reason="the build backend that pyproject.toml names")
    folder = tmp_path_factory.mktemp("wheel")
    build = f"import os; os.chdir({str(ROOT)!r}); from hatchling.build import build_wheel; build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("tcdsl-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_it_holds_every_file_of_the_package(installed: Path) -> None:
    def files(folder: Path) -> set[str]:
        kept = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path.relative_to(folder)) for path in kept}

    assert files(installed / "tcdsl") == files(PACKAGE)
    assert {path.name.partition("-")[0] for path in installed.iterdir()} == {"tcdsl"}


def test_it_runs_a_first_program(installed: Path, tmp_path: Path) -> None:
    program = tmp_path / "first.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    place, values = done.stdout.splitlines()
    assert place == str(installed / "tcdsl" / "__init__.py")
    assert values == "[1. 3. 5. 7.] [ 6. 10.]"
