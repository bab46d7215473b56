"""The texts of the library: a file for each module."""

from __future__ import annotations

import linecache
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


@cache
def library_module(name: str) -> dict[str, Operator]:
    """The operators of a module of the library, by name."""
    place = str(files(__package__) / f"{name}.sknd")
    found = list(parse_module(library_text(name), place).operators)
    if name == "math":
        text, made = "".join(elementwise_texts()), f"{SKRIPTND}math>"
        linecache.cache[made] = (len(text), None, text.splitlines(keepends=True), made)  # which messages show
        found.extend(parse_module(text, made).operators)
    return {each.name: each for each in found}


def find_in_library(module: str, name: str, span: Span | None) -> tuple[Operator, str] | None:
    """The operator that ``name`` is in a module of the library, and the module where it stands."""
    home, _, last = name.rpartition(".")
    found = library_module(home or module).get(last)
    return None if found is None else (found, home or module)
