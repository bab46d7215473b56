"""pytest's plugin: test files in the literal spelling, with pytest's assertions.

A test file is literal if it says ``# tcdsl: literal`` in its first comment lines; with ``--tcdsl-literal``, or
``tcdsl_literal = true`` in pytest's settings, every test file and ``conftest.py`` is.
"""

# pytest imports this module in every run where tcdsl is installed: what it needs is imported on first use.

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tcdsl.syntax.pytest_finder import LiteralTestFinder

__all__ = ["pytest_addoption", "pytest_configure", "pytest_load_initial_conftests", "pytest_unconfigure"]

_FINDER: pytest.StashKey[LiteralTestFinder] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--tcdsl-literal`` and the setting ``tcdsl_literal``."""
    text = "test files may be written in tcdsl's literal spelling, marked or not"
    parser.getgroup("tcdsl").addoption("--tcdsl-literal", action="store_true", default=None, help=text)
    parser.addini("tcdsl_literal", text, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before ``conftest.py`` is imported."""
    _install(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """For a plugin that was named by a ``conftest.py``."""
    _install(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the import system as it was."""
    finder = config.stash.get(_FINDER, None)
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)


def _install(config: pytest.Config) -> None:
    if _FINDER in config.stash:
        return
    from tcdsl.syntax.pytest_finder import LiteralTestFinder

    given = getattr(config.known_args_namespace, "tcdsl_literal", None)
    every = bool(config.getini("tcdsl_literal") if given is None else given)
    config.stash[_FINDER] = LiteralTestFinder(config, every)
    sys.meta_path.insert(0, config.stash[_FINDER])
