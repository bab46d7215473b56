"""Fixtures and settings for all tests.

`golden` compares a text with its file; `pytest --update-golden` rewrites the files. Compiled programs go to a folder of
the run, unless ``TCDSL_CACHE_DIR`` is set.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from tests.golden_texts import Golden, GoldenSession

__all__ = ["golden", "own_cache"]

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
    # What collection and tests leave behind can wait: else the collector takes a tenth of the run to look through it.
    gc.set_threshold(1_000_000, 20, 20)
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
    pass_over_what_stays()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    outcome = yield
    if nextitem is None or nextitem.path != item.path:
        pass_over_what_stays()
    return outcome


def pass_over_what_stays() -> None:
    # Eighteen thousand tests, the frameworks they compare with and the programs that files of tests compile are no
    # garbage. Notebooks and tests of lifetimes collect often, which would take more than a second each time. To look
    # for garbage before would take a twentieth of the run and give no memory back: it is a twentieth of what is there.
    gc.freeze()


@pytest.fixture
def own_cache(tmp_path: Path) -> Generator[None, None, None]:
    """An empty folder for compiled programs: what an earlier run has kept is staged by nobody, and counts otherwise."""
    import tcdsl as tc

    with tc.config(cache_dir=tmp_path / "own_cache"):
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden("ir/matmul", text)`` fails with a diff unless ``tests/golden/ir/matmul.txt`` holds ``text``."""
    return Golden(request.config.stash[GoldenSession.KEY])
