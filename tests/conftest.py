"""Fixtures and settings for all tests.

`golden` compares a text with its file; `pytest --update-golden` rewrites the files. Compiled programs go to a folder of
the run, unless ``TCDSL_CACHE_DIR`` is set.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from pathlib import Path

import hypothesis
import pytest

from tests.golden_texts import Golden, GoldenSession

__all__ = ["golden"]

GOLDEN_FOLDER = Path(__file__).parent / "golden"
CACHE_FOLDER = pytest.StashKey[str]()

# Test processes share the cores: threads that spin while they wait would keep each other from working. OpenMP reads
# this when Numba loads it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Compiling takes longer than hypothesis's usual deadline; the blob lets a failure in CI be repeated elsewhere.
hypothesis.settings.register_profile("tcdsl", deadline=None, print_blob=True)
hypothesis.settings.load_profile("tcdsl")


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
    if "TCDSL_CACHE_DIR" not in os.environ:
        # Worker processes inherit the variable, so all share one folder.
        config.stash[CACHE_FOLDER] = os.environ["TCDSL_CACHE_DIR"] = tempfile.mkdtemp(prefix="tcdsl-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if CACHE_FOLDER in config.stash:
        shutil.rmtree(config.stash[CACHE_FOLDER], ignore_errors=True)
        os.environ.pop("TCDSL_CACHE_DIR", None)


def pytest_collection_finish() -> None:
    # Twelve thousand tests and the frameworks they compare with are no garbage, and what tests leave behind can wait:
    # else the collector takes a tenth of the run to look through them.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden("ir/matmul", text)`` fails with a diff unless ``tests/golden/ir/matmul.txt`` holds ``text``."""
    return Golden(request.config.stash[GoldenSession.KEY])
