"""One cache directory for the whole run, so that the drivers are compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcdsl.targets.cpu import CodegenOptions


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("codegen-cache")


@pytest.fixture(scope="session")
def options(cache_dir: Path) -> CodegenOptions:
    return CodegenOptions(cache_dir=cache_dir)
