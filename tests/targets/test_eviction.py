"""The cache on disk has a limit, beyond which the least recently used goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import tcdsl as tc
from tcdsl.targets.cache.store import ProgramStore


def _sizes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _used(path: Path, ago: float) -> None:
    now = time.time()
    os.utime(path, (now - ago, now - 10_000 - ago))


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    with tc.config(cache_limit=100_000):
        place = ProgramStore(tmp_path)
        for k in range(9):
            place.write(f"entry_{k}.code", bytes(10_000))
            _used(tmp_path / f"entry_{k}.code", 20_000 - k)
        assert place.read("entry_0.code") == bytes(10_000)  # used now
        for k in range(9, 14):
            place.write(f"entry_{k}.code", bytes(10_000))
        assert _sizes(tmp_path) <= 100_000
        assert place.read("entry_0.code") == place.read("entry_13.code") == bytes(10_000)
        assert place.read("entry_1.code") is None


def test_an_entry_larger_than_the_limit_is_kept_alone(tmp_path: Path) -> None:
    with tc.config(cache_limit=10_000):
        place = ProgramStore(tmp_path)
        place.write("small.code", bytes(100))
        place.write("large.code", bytes(50_000))
        assert place.read("large.code") == bytes(50_000)
        assert not (tmp_path / "small.code").exists()


def test_a_new_process_counts_what_others_left(tmp_path: Path) -> None:
    for k in range(9):
        ProgramStore(tmp_path).write(f"entry_{k}.code", bytes(10_000))
        _used(tmp_path / f"entry_{k}.code", 20_000 - k)
    with tc.config(cache_limit=50_000):
        ProgramStore(tmp_path).write("last.code", b"")
    assert _sizes(tmp_path) <= 50_000
    assert (tmp_path / "last.code").exists()
    assert (tmp_path / "entry_8.code").exists()


def test_reading_leaves_the_time_of_writing(tmp_path: Path) -> None:
    place = ProgramStore(tmp_path)
    place.write("entry.code", b"content")
    _used(tmp_path / "entry.code", 20_000)
    before = (tmp_path / "entry.code").stat()
    assert place.read("entry.code") == b"content"
    after = (tmp_path / "entry.code").stat()
    assert after.st_mtime_ns == before.st_mtime_ns
    assert after.st_atime > before.st_atime + 10_000


@pytest.mark.parametrize("wrong", [-1, 1.5, "much", True, None])
def test_limits_are_counts_of_bytes(wrong: object) -> None:
    with pytest.raises(tc.ConfigurationError, match=r"cache_limit is .*; write a count of bytes"):
        tc.config(cache_limit=wrong)
