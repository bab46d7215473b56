"""From the text of a random program to the decorated function."""

from __future__ import annotations

import hashlib
import linecache
from typing import Any

__all__ = ["loaded"]

_HEAD = "from tcdsl import op\n\n\n@op\n"


def loaded(source: str, before: str = "") -> Any:
    """The function ``f`` of ``source``, decorated; its lines are known to `inspect` although there is no file.

    ``before`` is what its module has before it.
    """
    text = before + _HEAD + source
    name = f"<random program {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    # Entries without a modification time survive linecache.checkcache.
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]
