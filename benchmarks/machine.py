"""What a result depends on: the processor, the cores, the versions, the threading environment."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

__all__ = ["describe_machine"]

PACKAGES = ("tcdsl", "numpy", "numba", "llvmlite", "islpy", "torch", "jax")
ENVIRONMENT = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "XLA_FLAGS")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe_machine(threads: int) -> dict[str, object]:
    """A JSON-ready description; ``threads`` is what was asked for, 0 for all cores."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "threads": threads or os.cpu_count(),
        "versions": {package: version for package in PACKAGES if (version := _version(package)) is not None},
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    }
