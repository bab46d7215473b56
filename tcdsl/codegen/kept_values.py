"""Values kept on disk between processes.

A file holds a checksum and a pickled value. Its name is a hash of all that the value depends on, and of the state of
tcdsl's own files. It is read from a directory that belongs to the user alone, like the modules beside it.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tcdsl.codegen.store import write_file

__all__ = ["keep_value", "kept_value", "value_path"]

_LONGEST_TITLE, _DIGITS = 60, 32


def value_path(directory: Path, title: str, content: Any, packages: tuple[str, ...], ending: str) -> Path | None:
    """Where a value is kept that is made of ``content`` by the code of ``packages``.

    None for what is nested too deeply to be written, or cannot be.
    """
    pickled = _pickled(content)
    if pickled is None:
        return None
    digest = hashlib.sha256(pickled)
    digest.update(f"{sys.version}\0{_sources(packages)}".encode())
    safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in title)[:_LONGEST_TITLE]
    return directory / f"{safe}_{digest.hexdigest()[:_DIGITS]}.{ending}"


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value, protocol=5)
    except (RecursionError, pickle.PicklingError, AttributeError):
        return None


@cache
def _sources(packages: tuple[str, ...]) -> str:
    # Reading a hundred files would take longer than all the rest.
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def kept_value(path: Path | None) -> Any:
    """What `keep_value` wrote; None if there is nothing, or something damaged."""
    try:
        content = b"" if path is None else path.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:32], content[32:]
    return pickle.loads(payload) if hashlib.sha256(payload).digest() == checksum else None


def keep_value(path: Path | None, value: Any) -> None:
    """Write ``value`` for later processes, if it and the directory can be written."""
    payload = _pickled(value)
    if path is None or payload is None:
        return
    try:
        write_file(path, hashlib.sha256(payload).digest() + payload)
    except OSError:
        return
