"""The texts of the library: a file for each module."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from tcdsl.frontend.skriptnd.text.parsing import parse_module
from tcdsl.frontend.skriptnd.text.syntax import Operator
from tcdsl.library.elementwise import elementwise_texts
from tcdsl.span import SKRIPTND, Span

__all__ = ["MODULES", "find_in_library", "library_module", "library_text"]

MODULES = ("math", "layout", "linalg", "nn", "layer", "image", "quant", "algo", "rand", "misc")


def library_text(name: str) -> str:
    """The text of a module of the library, without the operators that are rows of tables."""
    return (files(__package__) / f"{name}.sknd").read_text(encoding="utf-8")


class LibraryOperators(Mapping[str, Operator]):
    """The operators in texts, by name; ``texts`` are by the names of their files. Each is read when it is asked for."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._places: dict[str, tuple[str, str, int]] = {}
        self._read: dict[str, Operator] = {}
        for place, text in texts.items():
            line = 1
            for part in re.split(r"(?m)^(?=operator )", text):
                if part.startswith("operator "):
                    self._places[part.split(maxsplit=2)[1]] = part, place, line
                line += part.count("\n")

    def __getitem__(self, name: str) -> Operator:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = parse_module(*self._places[name]).operators[0]
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


@cache
def library_module(name: str) -> LibraryOperators:
    """The operators of a module of the library, by name."""
    texts = {str(files(__package__) / f"{name}.sknd"): library_text(name)}
    if name == "math":
        text, made = "".join(elementwise_texts()), f"{SKRIPTND}math>"
        linecache.cache[made] = (len(text), None, text.splitlines(keepends=True), made)  # which messages show
        texts[made] = text
    return LibraryOperators(texts)


def find_in_library(module: str, name: str, span: Span | None) -> tuple[Operator, str] | None:
    """The operator that ``name`` is in a module of the library, and the module where it stands."""
    home, _, last = name.rpartition(".")
    found = library_module(home or module).get(last)
    return None if found is None else (found, home or module)
