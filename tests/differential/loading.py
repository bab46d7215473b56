"""From the text of a random program to the decorated function."""

from __future__ import annotations

import hashlib
import linecache
from functools import lru_cache
from typing import Any

__all__ = ["loaded"]

_HEAD = "import numpy as np\n\nfrom tcdsl import cd, op\n\n\n"


# What is asked of one program one after the other stages it once.
@lru_cache(maxsize=4)
def loaded(source: str, before: str = "", decorator: str = "op") -> Any:
    """The function ``f`` of ``source``, decorated; its lines are known to `inspect` although there is no file.

    ``before`` is what its module has before it.
    """
    text = f"{before}{_HEAD}@{decorator}\n{source}"
    name = f"<random program {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    # Entries without a modification time survive linecache.checkcache.
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]
