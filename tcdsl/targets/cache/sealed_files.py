"""Files that say what they are: written whole, with their name and a checksum inside, which are tested first.

::

    write_sealed(path, data)        # no process ever sees a part of it
    read_sealed(path)               # data, or an `OSError`: a part, another file's content and junk are never read

The name is part of what is tested, so a file in the place of another one is as damaged as half a file. Directories may
move as a whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

__all__ = ["DamagedFileError", "read_sealed", "write_sealed", "write_whole"]

_FORMAT = b"tcdsl 1\n"


class DamagedFileError(OSError):
    """What lies there is not what was written there."""


def _head(path: Path, payload: bytes) -> bytes:
    identity = path.name.encode()
    return _FORMAT + identity + b"\n" + hashlib.sha256(identity + b"\n" + payload).digest()


def write_sealed(path: Path, payload: bytes) -> None:
    """Write ``payload`` to ``path`` with its head. Raises `OSError` and leaves what was there if that is impossible."""
    write_whole(path, _head(path, payload) + payload)


def read_sealed(path: Path) -> bytes:
    """What was written to ``path``. Raises `FileNotFoundError` where nothing is, `DamagedFileError` where junk is."""
    # Opening a pipe would wait for ever, and a directory or a dangling link would be taken for nothing at all. Each is
    # asked for once: another thread may write the file in between.
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        is_file = not path.is_symlink()
    if not is_file:
        raise DamagedFileError(f"{path} is no file")
    content = path.read_bytes()
    payload = content[len(_head(path, b"")) :]
    if content != _head(path, payload) + payload:
        raise DamagedFileError(f"{path} is damaged")
    return payload


def write_whole(path: Path, data: bytes) -> None:
    """Write ``path`` aside and rename it."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
