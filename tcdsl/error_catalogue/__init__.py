"""The catalogue of errors: pages with an entry for each kind, and the way from a message to its entry.

    >>> entry_of("nothing bounds the index `n` from above").name
    'nothing-bounds-an-index'

An entry has a heading, a small program that fails, its message, what to write instead, and last the messages that
belong to it, in which `…` stands for what differs. The pages are data of the package: the site shows them, and
``python -m tcdsl help NAME`` prints an entry where there is no site.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ErrorEntry", "entries", "entry_of", "is_like", "known_text"]

VARIES = "…"

# Shorter texts, as `… is …`, say too little.
_LEAST = 5

_ENTRY = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_MESSAGES = re.compile(r"^```text messages\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """An entry: the name that messages give it, its page, its heading, its text and the messages that belong to it."""

    name: str
    page: str
    title: str
    text: str
    messages: tuple[str, ...]


@cache
def entries() -> dict[str, ErrorEntry]:
    """All entries by name."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.md")):
        for title, text in _ENTRY.findall(path.read_text(encoding="utf-8")):
            messages = tuple(line for block in _MESSAGES.findall(text) for line in block.splitlines())
            name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            found[name] = ErrorEntry(name, path.stem, title, _MESSAGES.sub("", text).strip(), messages)
    return found


def entry_of(fact: str) -> ErrorEntry | None:
    """The entry to which the text of a fault belongs: of several the one that says most of it."""
    likely = (
        (known_text(message), each)
        for each in entries().values()
        for message in each.messages
        if is_like(fact, message)
    )
    return max(likely, key=lambda pair: pair[0], default=(0, None))[1]


@cache
def known_text(message: str) -> int:
    """How much of a message does not differ, in characters."""
    return len(re.sub(r"\W", "", message))


def is_like(fact: str, message: str) -> bool:
    """Whether ``fact`` is ``message`` with something in the place of each `…`."""
    if known_text(message) < _LEAST:
        return False
    first, *parts = message.split(VARIES)
    if not parts or not fact.startswith(first):
        return fact == message
    at, last = len(first), parts.pop()
    for part in parts:
        at = fact.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return fact.endswith(last) and at <= len(fact) - len(last)
