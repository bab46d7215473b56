"""Where this package is installed, and a digest of its sources: what is kept on disk belongs to one state of them."""

from __future__ import annotations

import hashlib
import os
from functools import cache

__all__ = ["FOLDER", "sources_digest"]

# With the separator: what begins with it lies in the package.
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


@cache
def sources_digest(root: str = FOLDER) -> str:
    """A hash of the names and texts of all Python files under ``root``, wherever it lies and however old they are."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    digest.update(f"{os.path.relpath(path, root)}\0".encode() + file.read() + b"\0")
    return digest.hexdigest()
