"""Kernels kept on disk: what lowering and printing made of a program, so that the next process need not do it again.

A file holds a checksum and a pickled kernel with its module. Its name is a hash of the program, with its positions in
the user's source, of options and versions, and of the state of tcdsl's own files. It is read from a directory that
belongs to the user alone, like the modules beside it.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tcdsl.codegen.frame import frame_layout
from tcdsl.codegen.module import GeneratedModule
from tcdsl.codegen.store import module_stem, write_file
from tcdsl.ir.program import Program
from tcdsl.lowering.loops import Kernel

__all__ = ["keep_kernel", "kept_kernel", "kernel_path"]

_PACKAGES = ("ir", "shapes", "simplification", "lowering", "codegen")


def kernel_path(directory: Path, program: Program, choices: tuple[Any, ...]) -> Path | None:
    """Where the kernel of ``program`` is kept; ``choices`` is everything else that it depends on.

    None for expressions that are nested too deeply to be written.
    """
    # Rules of derivatives do not matter, and the copy has none of what the program has looked up.
    content = _pickled((replace(program, rules=()), choices))
    if content is None:
        return None
    key = hashlib.sha256(content).hexdigest()
    return directory / f"{module_stem(program.name, key, (_sources(),))}.kernel"


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value, protocol=5)
    except RecursionError:
        return None


@cache
def _sources() -> str:
    # Reading a hundred files would take longer than all the rest.
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def kept_kernel(path: Path | None) -> tuple[Kernel, GeneratedModule] | None:
    """What `keep_kernel` wrote; None if there is nothing, or something damaged."""
    try:
        content = b"" if path is None else path.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:32], content[32:]
    if hashlib.sha256(payload).digest() != checksum:
        return None
    kernel, text, functions, places, checks = pickle.loads(payload)
    buffers = [(buffer.name, len(buffer.shape)) for buffer in kernel.buffers]
    layout = frame_layout([size.name for size in kernel.program.sizes], buffers)
    return kernel, GeneratedModule(text, functions, places, layout, checks)


def keep_kernel(path: Path | None, kernel: Kernel, generated: GeneratedModule) -> None:
    """Write ``kernel`` and its module for later processes, if the directory can be written."""
    payload = _pickled((kernel, generated.text, generated.functions, generated.places, generated.checks))
    if path is None or payload is None:
        return
    try:
        write_file(path, hashlib.sha256(payload).digest() + payload)
    except OSError:
        return
