"""How much the cache on disk may hold: beyond its limit, what was not used for longest goes.

When an entry was used last is its time of access, which is set here, since many disks are told not to. Processes may
evict at once, and read what another one evicts: a missing entry is made again.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from tcdsl.config import settings

__all__ = ["SizeLimit", "note_use"]

_ROUGHLY = 3600.0  # Seconds by which the time of the last use may be wrong.
_SHARE = 1 / 20  # Of the limit: what is written between two counts of the directory.
_KEPT = 9 / 10  # Of the limit: what is left after an eviction.


def note_use(path: Path) -> None:
    """Let the entry at ``path`` be used now."""
    with contextlib.suppress(OSError):
        status = path.stat()
        if time.time() - status.st_atime > _ROUGHLY:
            os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))


class SizeLimit:
    """Keeps ``directory`` below the limit of the settings, ``cache_limit``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._unseen: float | None = None  # The bytes written since the last count.

    def written(self, path: Path) -> None:
        """An entry was written."""
        limit = settings().cache_limit
        with contextlib.suppress(OSError):
            if self._unseen is not None:
                self._unseen += path.stat().st_size
            if self._unseen is None or self._unseen > _SHARE * limit:
                self._unseen = 0.0
                self._evict(limit, path)

    def _evict(self, limit: int, newest: Path) -> None:
        entries = []
        with os.scandir(self._directory) as listed:
            for entry in listed:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    entries.append((max(status.st_atime, status.st_mtime), entry.path, status.st_size))
        total = sum(size for _, _, size in entries)
        if total <= limit:
            return
        for _, path, size in sorted(entries):
            if total <= _KEPT * limit:
                return
            if path != str(newest):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    total -= size
