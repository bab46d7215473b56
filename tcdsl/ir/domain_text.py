"""isl's notation for sets, as far as it can be read without isl: names of parameters and of dimensions."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["RESERVED_NAMES", "domain_parameters", "domain_text", "domain_variables"]

# What isl's notation reads as something else than a name of a dimension or parameter, however it came into a set.
RESERVED_NAMES = frozenset(
    {
        *("and", "or", "not", "exists", "implies", "true", "false"),
        *("mod", "floor", "ceil", "floord", "ceild", "min", "max"),
        *("rat", "infty", "infinity", "NaN", "nan"),
    }
)


def domain_parameters(text: str) -> tuple[str, ...]:
    """The sizes that a domain names: ``("N",)`` for ``[N] -> { [i] : 0 <= i < N }``."""
    found = re.match(r"\s*\[([^\[\]]*)\]\s*->", text)
    return tuple(part.strip() for part in found[1].split(",")) if found else ()


def domain_variables(body: str) -> tuple[str, ...] | None:
    """The names in isl's first tuple: ``[i, j = 2i] : ...`` has i and j. None if a dimension has no name."""
    found = re.match(r"\[([^\[\]]*)\]", body)
    if found is None:
        return None
    names = tuple(part.partition("=")[0].strip() for part in found[1].split(",")) if found[1].strip() else ()
    return names if all(name.isidentifier() for name in names) else None


def domain_text(body: str, sizes: Collection[str]) -> str:
    """Isl's notation for a domain printed as ``body``: ``[i]: 0 <= i < N`` is ``[N] -> { [i] : 0 <= i < N }``."""
    used = sorted({name for name in re.findall(r"[^\W\d]\w*", body) if name in sizes})
    parameters = f"[{', '.join(used)}] -> " if used else ""
    return f"{parameters}{{ {body.replace(']:', '] :')} }}"
