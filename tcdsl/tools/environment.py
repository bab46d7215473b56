"""``python -m tcdsl info``: what a report of a fault should say of the machine."""

from __future__ import annotations

import os
import platform
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal

import tcdsl
from tcdsl.config import Settings, settings
from tcdsl.runtime.displays.tables import Table
from tcdsl.targets.cache.store import cache_size, default_cache_dir
from tcdsl.targets.registry import target_named

__all__ = ["show"]

_NEEDED = ("numpy", "numba", "llvmlite", "islpy")
_OTHERS = ("torch", "jax", "xarray", "pandas", "scipy", "ipython")


def show(console: Console) -> None:
    """Print versions, the processor, threads, the cache and the settings that are not as they are at first."""
    current = settings()
    machine = target_named(current.target).machine
    folder = current.cache_dir or default_cache_dir()
    masks = ", masks" if machine.masks else ""
    # A process may be held to some of the cores.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    registers = f", {machine.registers} registers" if machine.registers else ""
    rows = {
        "tcdsl": tcdsl.__version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "needed": _versions(_NEEDED),
        "beside it": _versions(_OTHERS) or "none of " + ", ".join(_OTHERS),
        "system": platform.platform(),
        "processor": f"{platform.machine()}: vectors of {machine.vector_bytes} bytes{registers}{masks}",
        "threads": str(current.threads or cores),
        "target": current.target,
        "cache": f"{folder} ({decimal(cache_size(Path(folder)))})",
        "settings": _changed(current) or "as they are at first",
    }
    Table("", ("", ""), list(rows.items()), left=frozenset((0, 1))).print(console)


def _versions(packages: tuple[str, ...]) -> str:
    found = []
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def _changed(current: Settings) -> str:
    plain = Settings()
    changed = [each.name for each in fields(Settings) if getattr(current, each.name) != getattr(plain, each.name)]
    return ", ".join(f"{name}={_text(getattr(current, name))}" for name in changed)


def _text(value: object) -> str:
    return repr(",".join(sorted(value))) if isinstance(value, frozenset) else repr(value)
