"""All displays on one page in a real browser, where there is one: what it makes of them, and not only what we write.

``MATHJAX`` may name a folder with MathJax, which typesets the formulas; without it they stay TeX.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MATHJAX = Path(os.environ.get("MATHJAX", "/nowhere"))


@op
def spread(x: Any, kernel: Any, *, below: float) -> Any:
    y[i] += x[i + k] * kernel[k]
    z[i] = exp(-y[i]) if y[i] < below else 0
    return z


@op
def energy(x: Any) -> Any:
    total[()] += x[i] * x[i] * x[i + 1]
    return total


@op
def hidden(x: Any, *, width: int) -> Any:
    return relu("w" @ x + "b"[width])


def displays() -> dict[str, Any]:
    """The displays by name."""
    x, kernel = np.linspace(0, 1, 300), np.ones(5)
    spread(x, kernel, below=2.0)
    gradient = tc.grad(energy)
    energy(x)
    gradient(x)
    layer = hidden(width=4)
    error = (layer(tc.tensor(np.ones((6, 3), np.float32), batch=1)) * tc.param("scale", o=4, init=1.0)).sum()
    step = tc.compile(tc.train.grad_update(error), tc.train.sgd_update(error, learning_rate=0.1))
    step.run()
    return {
        "function": spread,
        "gradient": gradient,
        "listing": spread.explain("loops", x, kernel, below=2.0),
        "cost": spread.cost(x, kernel, below=2.0),
        "cache": spread.cache_info(),
        "profile": spread.profile(x, kernel, below=2.0),
        "layer": layer,
        "tensor": error,
        "routine": step,
    }


# Says of each display what the browser has made of it: its width, and how many cells, formulas and pictures it has.
_MEASURE = """
<script>
function told() {
  for (const part of document.querySelectorAll('section')) {
    const count = (what) => part.querySelectorAll(what).length
    const shown = [...part.querySelectorAll('td')].filter(cell => cell.getBoundingClientRect().height > 8).length
    part.dataset.told = [shown, count('mjx-container'), count('mjx-merror'), count('svg rect, svg circle'),
                         part.scrollWidth].join(' ')
  }
}
if (window.MathJax) MathJax.startup = {pageReady: () => MathJax.startup.defaultPageReady().then(told)}
else window.addEventListener('load', told)
</script>
"""


def page(shown: dict[str, Any], dark: bool = False) -> str:
    """A page with all of them, as a notebook would show them."""
    parts = [f'<section id="{name}">{each._repr_html_()}</section>' for name, each in shown.items()]
    script = next(MATHJAX.rglob("tex-mml-chtml.js"), None) or next(MATHJAX.rglob("tex-chtml.js"), None)
    typeset = f'<script src="{script.as_uri()}"></script>' if script else ""
    configured = "<script>MathJax = {tex: {inlineMath: [['$', '$']]}}</script>" if script else ""
    colours = "color:#ddd;background:#111;color-scheme:dark" if dark else "color:#111;background:#fff"
    head = f"<meta charset=utf-8><style>body{{font:14px sans-serif;width:1100px;{colours}}}</style>"
    return (
        f"<!doctype html><html><head>{head}{configured}{_MEASURE}{typeset}</head><body>{''.join(parts)}</body></html>"
    )


def browsed(path: Path, *options: str) -> str:
    """What the browser prints of a page."""
    assert BROWSER is not None
    command: Sequence[str] = (BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,2600")
    command = (*command, "--virtual-time-budget=20000", *options, path.as_uri())
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_browser_renders_all_displays(tmp_path: Path) -> None:
    shown = displays()
    path = tmp_path / "page.html"
    path.write_text(page(shown), encoding="utf-8")
    made = browsed(path, "--dump-dom")
    told = dict(re.findall(r'<section id="(\w+)" data-told="([-\d ]+)"', made))
    assert told.keys() == shown.keys()
    measured = {name: list(map(int, numbers.split())) for name, numbers in told.items()}
    for name in ("cost", "cache", "profile", "layer", "routine"):
        assert measured[name][0] >= 3, f"the cells of {name} have room"
    for name in ("profile", "tensor"):
        assert measured[name][3] >= 2, f"{name} has a picture"
    for name, (_, formulas, faults, _, width) in measured.items():
        assert not faults, f"all formulas of {name} can be typeset"
        assert 50 < width <= 1100, f"what is wider than the page scrolls in {name}"
        if name in ("function", "gradient") and MATHJAX.is_dir():
            assert formulas, f"the formulas of {name} are typeset"
