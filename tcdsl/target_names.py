"""The names of targets: settings are read before any target is loaded. `tcdsl.targets.registry` holds the targets."""

from __future__ import annotations

from tcdsl.errors import ConfigurationError

__all__ = ["TARGET_NAMES", "known_target"]

TARGET_NAMES: set[str] = {"cpu", "numba"}
"""The names that ``tc.config(target=...)`` takes."""


def known_target(name: object) -> str:
    """``name``; a `ConfigurationError` if no target has it."""
    if not isinstance(name, str) or name not in TARGET_NAMES:
        raise ConfigurationError(f"there is no target {name!r}; the targets are {', '.join(sorted(TARGET_NAMES))}")
    return name
