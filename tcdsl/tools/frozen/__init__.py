"""Hooks for PyInstaller, which looks for them by the entry point ``pyinstaller40``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["hook_directories"]


def hook_directories() -> list[str]:
    """The folders with hooks."""
    return [str(Path(__file__).parent)]
