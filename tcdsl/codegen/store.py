"""The cache directory: generated modules and, beside each, the machine code that Numba made of it.

::

    <cache directory>/modules/                       private to the user
        matmul_1f0c….py                              the text
        matmul_1f0c….sums                            checksums of the machine code
    matmul_77ab….kernel                          what a program became (`tcdsl.codegen.kept`)
        __pycache__/matmul_1f0c….nest_0-9.py311.*    Numba's index and machine code

A module's name holds a hash of its text, of tcdsl's code generation and of everything else that machine code depends
on, so a file is never wrong, only missing, old or damaged. All files are written aside and renamed.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = [
    "CacheEntry",
    "cache_entries",
    "clear_cache",
    "default_cache_dir",
    "discard_damaged",
    "machine_code",
    "module_directory",
    "module_stem",
    "seal",
    "write_file",
    "write_module",
]


def default_cache_dir() -> Path:
    """The user's cache directory for tcdsl."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("tcdsl", appauthor=False))


@cache
def module_directory(cache_dir: Path | None) -> Path:
    """The directory of the modules under ``cache_dir``; a temporary one, with a warning, where it cannot be written.

    It is made if need be. Its files are executed, so it must belong to the user and be writable by nobody else.
    """
    wanted = (cache_dir or default_cache_dir()) / "modules"
    try:
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(wanted)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except OSError as fault:
        return _replacement(wanted, fault)


def _replacement(wanted: Path, fault: OSError) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="tcdsl-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    if wanted.is_dir() and _is_trusted(wanted):
        # A cache that may only be read, as in a container's image: its machine code serves from a copy.
        shutil.copytree(wanted, directory, dirs_exist_ok=True)
    else:
        text = f"compiled kernels cannot be kept in {wanted} ({fault}); this process uses {directory}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return directory


def _is_trusted(directory: Path) -> bool:
    if os.name != "posix":
        return True
    status = directory.stat()
    return status.st_uid in (0, os.getuid()) and not stat.S_IMODE(status.st_mode) & 0o022


def _make_private(directory: Path) -> None:
    if os.name != "posix":
        return
    status = directory.stat()
    if status.st_uid != os.getuid():
        raise PermissionError(f"{directory} belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        directory.chmod(0o700)


@cache
def _generator_digest() -> str:
    # All that machine code depends on beside the module's text and flags.
    import llvmlite
    import llvmlite.binding as llvm
    import numba
    import numpy as np

    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    host = (llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    chosen = (numba.config.CPU_NAME, numba.config.CPU_FEATURES, numba.config.OPT)
    digest.update(repr((versions, host, chosen)).encode())
    return digest.hexdigest()


def module_stem(title: str, text: str, flags: tuple[str, ...] = ()) -> str:
    """The name of the module with this text, without its suffix: ``matmul_`` and a hash."""
    key = "\0".join((_generator_digest(), *flags, text))
    safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in title)[:40] or "kernel"
    return f"{safe}_{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def write_module(directory: Path, stem: str, text: str) -> Path:
    """The path of the module, which has ``text`` afterwards; written only if it does not have it yet."""
    path = directory / f"{stem}.py"
    data = text.encode()
    try:
        if path.read_bytes() == data:
            return path
    except OSError:
        pass
    write_file(path, data)
    return path


def write_file(path: Path, data: bytes) -> None:
    """Write ``path`` as a whole: no other process ever sees a part."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def machine_code(path: Path) -> list[Path]:
    """Numba's files for the module at ``path``."""
    return sorted((path.parent / "__pycache__").glob(f"{path.stem}.*.nb?"))


def _sums(path: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in machine_code(path)}


def seal(path: Path) -> None:
    """Record the checksums of the module's machine code, so that damage is found before it is run."""
    try:
        write_file(path.with_suffix(".sums"), json.dumps(_sums(path), indent=0).encode())
    except OSError:
        return


def discard_damaged(path: Path) -> None:
    """Delete the module's machine code unless it is what was sealed: Numba then compiles it again.

    Loading damaged machine code may end the process. Processes that compile the same module at the same time may undo
    each other's files: that costs a compilation, never a wrong result.
    """
    files = machine_code(path)
    if not files:
        return
    try:
        if json.loads(path.with_suffix(".sums").read_bytes()) == _sums(path):
            return
    except (OSError, ValueError):
        pass
    for file in files:
        file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A module in the cache: its ``title``, where it is, its size with its machine code, and when it was made."""

    title: str
    path: Path
    size: int
    modified: float


def _modules(cache_dir: Path | None) -> Iterator[Path]:
    directory = (cache_dir or default_cache_dir()) / "modules"
    return iter(sorted(directory.glob("*.py"))) if directory.is_dir() else iter(())


def cache_entries(cache_dir: Path | None = None) -> list[CacheEntry]:
    """Every module in the cache directory, by name."""
    entries = []
    for path in _modules(cache_dir):
        try:
            files = [path, *machine_code(path)]
            size = sum(file.stat().st_size for file in files)
            title = (ast.get_docstring(ast.parse(path.read_bytes())) or path.stem).splitlines()[0]
            entries.append(CacheEntry(title, path, size, path.stat().st_mtime))
        except (OSError, SyntaxError, ValueError):
            continue
    return entries


def clear_cache(cache_dir: Path | None = None) -> int:
    """Delete every module and its machine code; the number of modules deleted. What runs at the time goes on."""
    count = 0
    for path in _modules(cache_dir):
        for file in (*machine_code(path), path.with_suffix(".sums"), path):
            file.unlink(missing_ok=True)
        count += 1
    directory = (cache_dir or default_cache_dir()) / "modules"
    for file in (*directory.glob("*.kernel"), *directory.glob("*.gradient")):
        file.unlink(missing_ok=True)
    return count
