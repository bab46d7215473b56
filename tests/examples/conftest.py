"""`example` imports a script of `examples/`, as running it does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """``example("moons").main(epochs=2)``: the script ``examples/moons.py`` as a module of its own."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(EXAMPLES)):
            del sys.modules[name]
