"""isl's notation for sets, as far as it can be read without isl: names of parameters and of dimensions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

__all__ = [
    "RESERVED_NAMES",
    "domain_name",
    "domain_parameters",
    "domain_text",
    "domain_variables",
    "is_domain_name",
]

# What isl's notation reads as something else than a name of a dimension or parameter, however it came into a set. It
# does not tell capital letters from small ones there.
RESERVED_NAMES = frozenset(
    {
        *("and", "or", "not", "exists", "implies", "true", "false"),
        *("mod", "floor", "ceil", "floord", "ceild", "min", "max"),
        *("rat", "infty", "infinity", "nan"),
    }
)


def is_domain_name(name: str) -> bool:
    """Whether a domain can have a dimension or parameter called ``name``."""
    return name.isascii() and name.isidentifier() and name.lower() not in RESERVED_NAMES


def domain_name(name: str) -> str:
    """``name``, an identifier, in letters that a domain can hold: ``größe`` becomes ``groxdfe``, ``floor`` ``floor_``.

    Different names may become the same one.
    """
    if not name.isascii():
        name = "".join(map(_plain, unicodedata.normalize("NFKD", name)))
        name = name if name.isidentifier() else f"x{name}"
    return f"{name}_" if name.lower() in RESERVED_NAMES else name


def _plain(letter: str) -> str:
    if letter.isascii():
        return letter
    return "" if unicodedata.combining(letter) else f"x{ord(letter):x}"


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
