"""What machine code depends on, as a hash, and names of files of text."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache

from tcdsl.installation import FOLDER, sources_digest

__all__ = ["generator_digest", "module_stem"]


@cache
def generator_digest() -> str:
    """All that machine code depends on beside the module's text: this target's files, versions, the host."""
    import llvmlite
    import llvmlite.binding as llvm
    import numpy as np

    from tcdsl.targets.cpu.machine.processor import processor_of_code

    sources = sources_digest(os.path.join(FOLDER, "targets", "cpu"))
    versions = (sys.version, llvmlite.__version__, np.__version__)
    processor = (llvm.get_default_triple(), *processor_of_code())
    return hashlib.sha256(repr((sources, versions, processor)).encode()).hexdigest()


def module_stem(title: str, text: str) -> str:
    """The name of the module with this text, without its suffix: ``matmul_`` and a hash."""
    key = f"{generator_digest()}\0{text}"
    safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in title)[:40] or "kernel"
    return f"{safe}_{hashlib.sha256(key.encode()).hexdigest()[:20]}"
