"""One cache directory for the whole run, so that the drivers are compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcdsl.targets.protocol.target import Build


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("codegen-cache")


@pytest.fixture(scope="session")
def options(cache_dir: Path) -> Build:
    return Build((), cache_dir=cache_dir)
