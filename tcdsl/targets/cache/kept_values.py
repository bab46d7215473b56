"""Values kept on disk between processes.

An entry holds a pickled value. Its name is a hash of all that the value depends on, and of the state of tcdsl's own
files.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from typing import Any

from tcdsl.installation import sources_digest
from tcdsl.targets.cache.store import ProgramStore

__all__ = ["keep_value", "kept_value", "value_name"]

_LONGEST_TITLE, _DIGITS = 60, 32


def value_name(title: str, content: Any, ending: str) -> str | None:
    """The entry of a value that is made of ``content``; None for what cannot be written, or is nested too deeply."""
    pickled = _pickled(content)
    if pickled is None:
        return None
    digest = hashlib.sha256(pickled)
    digest.update(f"{sys.version}\0{sources_digest()}".encode())
    safe = "".join(c if c.isascii() and c.isalnum() else "_" for c in title)[:_LONGEST_TITLE]
    return f"{safe}_{digest.hexdigest()[:_DIGITS]}.{ending}"


def _pickled(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value, protocol=5)
    except (RecursionError, pickle.PicklingError, AttributeError):
        return None


def kept_value(store: ProgramStore, name: str | None) -> Any:
    """What `keep_value` kept; None if there is nothing, or something damaged."""
    payload = None if name is None else store.read(name)
    if name is None or payload is None:
        return None
    try:
        return pickle.loads(payload)
    except Exception as fault:
        store.reject(name, fault)
        return None


def keep_value(store: ProgramStore, name: str | None, value: Any) -> None:
    """Keep ``value`` for later processes, if it can be written."""
    payload = _pickled(value)
    if name is not None and payload is not None:
        store.write(name, payload)
