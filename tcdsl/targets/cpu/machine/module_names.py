"""Names of generated modules: what machine code depends on, as a hash."""

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
    import numba
    import numpy as np

    sources = sources_digest(os.path.join(FOLDER, "targets", "cpu"))
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    host = (llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    chosen = (numba.config.CPU_NAME, numba.config.CPU_FEATURES, numba.config.OPT)
    return hashlib.sha256(repr((sources, versions, host, chosen)).encode()).hexdigest()


def module_stem(title: str, text: str) -> str:
    """The name of the module with this text, without its suffix: ``matmul_`` and a hash."""
    key = f"{generator_digest()}\0{text}"
    safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in title)[:40] or "kernel"
    return f"{safe}_{hashlib.sha256(key.encode()).hexdigest()[:20]}"
