"""`import tcdsl` says where it does not run."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tcdsl.installation import require_platform


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
