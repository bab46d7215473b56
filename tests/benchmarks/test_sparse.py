"""The benchmark of sparse programs: its peers compute the same, its exponents are exponents, and it draws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sparse.cases import CASES, Case
from benchmarks.sparse.growth import Growth, WrongGradientError, exponent, measure, peers_at_hand
from benchmarks.sparse.picture import draw

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_all_contenders_agree(case: Case) -> None:
    growth = measure(case, peers_at_hand(["torch", "jax"]), seconds=0.01, largest=case.sizes[0])
    for seconds in growth.seconds.values():
        assert list(seconds) == [case.sizes[0]]
        assert seconds[case.sizes[0]] > 0


def test_a_wrong_gradient_is_never_timed() -> None:
    class Wrong:
        @staticmethod
        def gradient(*_: object) -> object:
            return lambda: np.asarray(7.0)

    with pytest.raises(WrongGradientError, match="wrong and tcdsl differ by 3"):
        measure(CASES[0], {"wrong": Wrong}, seconds=0.01, largest=100)


def test_exponents() -> None:
    sizes = (100, 300, 1_000, 3_000, 10_000)
    assert exponent({size: 1e-9 * size**2 for size in sizes}) == pytest.approx(2)
    # What a call costs whatever its size does not hide how it grows at the end.
    assert exponent({size: 1e-9 * size + 1e-8 for size in sizes}) == pytest.approx(1, abs=0.01)
    assert exponent({100: 1.0, 1_000: 2.0}) is None
    assert exponent({}) is None


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    seconds = {"tcdsl": {size: 1e-8 * size for size in (100, 300, 1_000)}, "jax": {100: 1e-4}}
    draw([Growth(case, seconds) for case in CASES], tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_the_command(tmp_path: Path) -> None:
    arguments = ["--only", "column", "--largest", "1000", "--seconds", "0.01", "--peers"]
    picture = ["--picture", str(tmp_path / "growth.png")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sparse", *arguments, *picture],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "120"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "column times row of a diagonal matrix, milliseconds per gradient" in done.stdout
    assert "1,000" in done.stdout
    assert "grows by size to the" in done.stdout
