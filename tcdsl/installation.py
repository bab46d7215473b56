"""Where this package is installed, and a digest of its sources: what is kept on disk belongs to one state of them."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import cache_from_source

__all__ = ["FOLDER", "sources_digest"]

# With the separator: what begins with it lies in the package.
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


# Files that have changed since then may change again without a trace: clocks have steps.
_SETTLED = 2 * 10**9


@cache
def sources_digest(root: str = FOLDER) -> str:
    """A hash of the names and texts of all Python files under ``root``, wherever it lies and however old they are.

    That of this package is noted beside its bytecode, and looked up where Python trusts its bytecode: where the files
    have the sizes and times that they had.
    """
    if root != FOLDER:
        return _digest(_python_files(root), root)
    files = list(_python_files(root))
    seen = hashlib.sha256()
    newest = 0
    for path in files:
        status = os.stat(path)
        newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
        seen.update(f"{path}\0{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}\n".encode())
    note = cache_from_source(os.path.join(root, "sources.py")) + ".digest"
    try:
        with open(note, encoding="ascii") as file:
            known, digest = file.read().split()
        if known == seen.hexdigest():
            return digest
    except (OSError, ValueError):
        pass
    digest = _digest(files, root)
    if not sys.dont_write_bytecode and newest < time.time_ns() - _SETTLED:
        _write(note, f"{seen.hexdigest()} {digest}\n")
    return digest


def _python_files(root: str) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".py"))


def _digest(files: Iterator[str] | list[str], root: str) -> str:
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            digest.update(f"{os.path.relpath(path, root)}\0".encode() + file.read() + b"\0")
    return digest.hexdigest()


def _write(path: str, text: str) -> None:
    # Whole or not at all; not where only others may write.
    part = f"{path}.{os.getpid()}"
    try:
        with open(part, "x", encoding="ascii") as file:
            file.write(text)
        os.replace(part, path)
    except OSError:
        return
