"""The cache directory: what programs became, their machine code, and whatever else later processes need not make again.

::

    <cache directory>/modules/         private to the user
        matmul_77ab….kernel            what a program became (`tcdsl.targets.loading`)
        nest_5e21….code                the machine code of a nest in it (`tcdsl.targets.cpu.machine.machine_code`)
        matmul_1f0c….py                the text of one, if somebody has asked for the file: nothing reads it
        matmul_c41b….call              what calls need, without staging (`tcdsl.runtime.calls`)
        matmul_90de….gradient          the derivative of a graph (`tcdsl.tensors.graph_linking.kept_gradients`)
        machine_03b2….limits           how fast this machine was measured to be (`tcdsl.runtime.profiles.limits`)

The name of an entry is a hash of all that it depends on, so an entry is never wrong, only missing, old or damaged.

Beyond the limit of the cache, what was not used for longest goes. When an entry was used last is its time of access,
which is set here, since many disks are told not to. Processes may evict at once, and read what another one evicts: a
missing entry is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from tcdsl.config import settings
from tcdsl.installation import sources_digest
from tcdsl.targets.cache.sealed_files import DamagedFileError, read_sealed, write_sealed, write_whole
from tcdsl.tracebacks import warn_user

__all__ = [
    "CacheEntry",
    "ProgramStore",
    "SizeLimit",
    "cache_entries",
    "cache_size",
    "clear_cache",
    "default_cache_dir",
    "entry_name",
    "note_use",
    "store",
    "value_name",
]

_PROGRAM = ".kernel"
_ENDINGS = (".py", ".code", _PROGRAM, ".call", ".gradient", ".limits")


def default_cache_dir() -> Path:
    """The user's cache directory for tcdsl."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("tcdsl", appauthor=False))


@cache
def store(cache_dir: Path | None) -> ProgramStore:
    """The store in ``cache_dir``, or in the user's cache directory."""
    return ProgramStore(((cache_dir or default_cache_dir()) / "modules").absolute())


class ProgramStore:
    """The entries in ``directory``, which is made if need be.

    It holds as much as `tcdsl.targets.cache.store` says. Whatever is wrong with the disk, programs run: an entry
    that cannot be read is none, one that cannot be written is not kept, and the user is warned, once in a process.
    """

    _warned: ClassVar[bool] = False

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._trusted = False
        self._limit = SizeLimit(directory)
        try:
            self._make()
            self._trusted = True
        except (OSError, ValueError) as fault:
            self._warn(fault)

    def _make(self) -> None:
        # Its files are executed, so it must belong to the user or the system, and be writable by nobody else.
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name != "posix":
            return
        status = self.directory.stat()
        if status.st_uid not in (0, os.getuid()):
            raise PermissionError(f"{self.directory} belongs to another user")
        if stat.S_IMODE(status.st_mode) & 0o077:
            with contextlib.suppress(OSError):
                self.directory.chmod(0o700)
        if stat.S_IMODE(self.directory.stat().st_mode) & 0o022:
            raise PermissionError(f"others may write in {self.directory}")

    def _warn(self, fault: BaseException) -> None:
        if not ProgramStore._warned:
            ProgramStore._warned = True
            warn_user(
                f"compiled programs cannot be kept in {self.directory} or taken from there: {fault}. They are made "
                "again where needed; `python -m tcdsl cache clear` removes damaged entries, TCDSL_CACHE_DIR names "
                "another place"
            )

    def read(self, name: str) -> bytes | None:
        """The content of an entry; None if there is none that can be read."""
        if not self._trusted:
            return None
        try:
            payload = read_sealed(self.directory / name)
            note_use(self.directory / name)
            return payload
        except FileNotFoundError:
            return None
        except OSError as fault:
            self._warn(fault)
            return None

    def write(self, name: str, payload: bytes) -> None:
        """Keep ``payload``, if that is possible."""
        self._write(name, lambda path: write_sealed(path, payload))

    def write_text(self, name: str, text: str) -> Path:
        """Write a file that people may read, unless it is there; gives where it is, or would be."""
        path, data = self.directory / name, text.encode()
        with contextlib.suppress(OSError):
            if path.is_file() and path.read_bytes() == data:
                return path
        self._write(name, lambda path: write_whole(path, data))
        return path

    def _write(self, name: str, write: Callable[[Path], None]) -> None:
        if not self._trusted:
            return
        try:
            try:
                write(self.directory / name)
                self._limit.written(self.directory / name)
            except FileNotFoundError:
                # Somebody has removed the directory.
                self._make()
                write(self.directory / name)
        except OSError as fault:
            self._warn(fault)

    def value(self, name: str | None) -> Any:
        """What `keep` kept; None if there is nothing, or something damaged."""
        payload = None if name is None else self.read(name)
        if name is None or payload is None:
            return None
        try:
            return pickle.loads(payload)
        except Exception as fault:
            self.reject(name, fault)
            return None

    def keep(self, name: str | None, value: Any) -> None:
        """Keep ``value`` for later processes, if it can be written."""
        payload = _pickled(value)
        if name is not None and payload is not None:
            self.write(name, payload)

    def reject(self, name: str, fault: BaseException) -> None:
        """An entry is whole, and yet of no use."""
        self._warn(DamagedFileError(f"{self.directory / name} cannot be used ({type(fault).__name__}: {fault})"))


def entry_name(title: str, content: bytes, ending: str) -> str:
    """The name of an entry that depends on ``content``, and on the state of tcdsl's own files."""
    digest = hashlib.sha256(content)
    digest.update(f"{sys.version}\0{sources_digest()}".encode())
    safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in title)[:60]
    return f"{safe}_{digest.hexdigest()[:32]}.{ending}"


def value_name(title: str, content: Any, ending: str) -> str | None:
    """The same for any value; None for what cannot be written, or is nested too deeply."""
    pickled = _pickled(content)
    return None if pickled is None else entry_name(title, pickled, ending)


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value, protocol=5)
    except (RecursionError, pickle.PicklingError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A program in the cache: its ``title``, where it is, and when it was made."""

    title: str
    path: Path
    modified: float


def _files(cache_dir: Path | None) -> list[Path]:
    directory = (cache_dir or default_cache_dir()) / "modules"
    return sorted(directory.iterdir()) if directory.is_dir() else []


def cache_entries(cache_dir: Path | None = None) -> list[CacheEntry]:
    """Every program in the cache directory, by name."""
    entries = []
    for path in _files(cache_dir):
        if path.suffix == _PROGRAM:
            with contextlib.suppress(OSError):
                entries.append(CacheEntry(path.stem.rpartition("_")[0], path, path.stat().st_mtime))
    return entries


def cache_size(cache_dir: Path | None = None) -> int:
    """The bytes of all entries."""
    total = 0
    for path in _files(cache_dir):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


def clear_cache(cache_dir: Path | None = None) -> int:
    """Delete every entry, damaged or not; the number of programs deleted. What runs at the time goes on."""
    count = 0
    for path in _files(cache_dir):
        if path.suffix not in _ENDINGS and not path.name.startswith("."):  # what a process left that was killed
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        count += path.suffix == _PROGRAM
    return count


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
