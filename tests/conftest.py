"""Fixtures for all tests. `golden` compares a text with its file; `pytest --update-golden` rewrites the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_texts import Golden, GoldenSession

__all__ = ["golden"]

GOLDEN_FOLDER = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the texts under tests/golden/ with what the tests produce, and remove those that no test uses",
    )


def pytest_configure(config: pytest.Config) -> None:
    session = GoldenSession(config, GOLDEN_FOLDER)
    config.stash[GoldenSession.KEY] = session
    config.pluginmanager.register(session, "golden-texts")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden("ir/matmul", text)`` fails with a diff unless ``tests/golden/ir/matmul.txt`` holds ``text``."""
    return Golden(request.config.stash[GoldenSession.KEY])
