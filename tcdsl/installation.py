"""Where this package is installed, what cannot run it, and a digest of its sources, to which all that is kept on disk
belongs.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.util import cache_from_source

__all__ = ["FOLDER", "require_platform", "sources_digest"]

# With the separator: what begins with it lies in the package.
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def require_platform() -> None:
    """`ImportError` where programs cannot run, and a warning where it has not been tried."""
    found = sys.implementation.name
    if found != "cpython":
        fact = f"tcdsl runs on CPython, because compiled programs read its objects; this is {found}"
    elif sys.maxsize < 2**32:
        fact = "tcdsl needs a Python of 64 bits, because compiled programs hold addresses in words of 64 bits"
    elif sys.platform in {"emscripten", "wasi"}:
        fact = f"tcdsl compiles to the machine code of a processor, which Python cannot run on {sys.platform}"
    else:
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            told = "tcdsl has not been tested without Python's lock; start Python with -X gil=1 to have the lock"
            warnings.warn(told, RuntimeWarning, stacklevel=3)
        return
    raise ImportError(fact)


# Files that have changed since then may change again without a trace: clocks have steps.
_SETTLED = 2 * 10**9


@cache
def sources_digest(root: str = FOLDER) -> str:
    """A hash of the names and texts of all sources under ``root``, wherever it lies and however old they are.

    That of this package, and of folders in it, is noted beside its bytecode, and looked up where Python trusts its
    bytecode: where the files have the sizes and times that they had.
    """
    files = list(_sources(root))
    if not root.startswith(FOLDER):
        return _digest((entry.path for entry in files), root)
    seen = hashlib.sha256()
    newest = 0
    for entry in files:
        status = os.stat(entry.path)
        newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
        facts = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
        seen.update(f"{entry.path}\0{facts}\n".encode())
    note = cache_from_source(os.path.join(root, "sources.py")) + ".digest"
    try:
        with open(note, encoding="ascii") as file:
            known, digest = file.read().split()
        if known == seen.hexdigest():
            return digest
    except (OSError, ValueError):
        pass
    digest = _digest((entry.path for entry in files), root)
    if not sys.dont_write_bytecode and newest < time.time_ns() - _SETTLED:
        _write(note, f"{seen.hexdigest()} {digest}\n")
    return digest


def _sources(root: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(root) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith((".py", ".sknd")):
            yield entry
        elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
            yield from _sources(entry.path)


def _digest(files: Iterator[str], root: str) -> str:
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
