"""`import tcdsl` says where it does not run, and all places say the same version."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tcdsl
from tcdsl.installation import require_platform

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("implementation", SimpleNamespace(name="pypy"), "tcdsl runs on CPython, .* this is pypy"),
        ("maxsize", 2**31 - 1, "tcdsl needs a Python of 64 bits"),
        ("platform", "emscripten", "which Python cannot run on emscripten"),
    ],
)
def test_what_cannot_run_it_is_told(monkeypatch: pytest.MonkeyPatch, name: str, value: Any, message: str) -> None:
    monkeypatch.setattr(sys, name, value)
    with pytest.raises(ImportError, match=message):
        require_platform()


def test_python_without_its_lock_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.warns(RuntimeWarning, match="start Python with -X gil=1"):
        require_platform()


def test_one_version_stands_everywhere() -> None:
    for name, text in {
        "CITATION.cff": "\nversion: {}\n",
        "CHANGELOG.md": "\n## {}",
        "docs/versions.md": "version = {{{}}}",
    }.items():
        assert text.format(tcdsl.__version__) in (ROOT / name).read_text(encoding="utf-8"), name
