"""The pages of the gallery run, and their pictures show something."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")

PAGES = sorted((Path(__file__).parent.parent / "docs" / "gallery").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pictures_are_drawn(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    text = page.read_text(encoding="utf-8")
    path = tmp_path / f"{page.stem}.py"
    path.write_text("\n".join(re.findall(r"^```\{code-cell\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)))
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("agg")
    try:
        runpy.run_path(str(path))
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert len(figures) >= len(re.findall(r"^## ", text, re.MULTILINE))
        for figure in figures:
            figure.canvas.draw()
            assert np.asarray(figure.canvas.buffer_rgba()).std() > 10
    finally:
        plt.close("all")


def test_there_are_twelve() -> None:
    assert len(re.findall(r"^## ", "".join(page.read_text(encoding="utf-8") for page in PAGES), re.MULTILINE)) == 12
