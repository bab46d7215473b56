"""The import hook: modules in the literal spelling are compiled from the trees of their plain form.

Nothing of it is stored: Python's caches of compiled modules do not know which spelling a file is in, so a literal
module is compiled whenever it is imported, and a plain import never finds what a literal one has left.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

__all__ = ["MARKER", "LiteralFinder", "LiteralLoader", "found_by_others", "is_marked", "literal_spec"]

MARKER = "# tcdsl: literal"

Finish = Callable[[ast.Module, bytes, str], None]


class LiteralLoader(SourceFileLoader):
    """Compiles one literal file. ``finish`` may change the tree before, as pytest does with assertions."""

    def __init__(self, name: str, path: str, finish: Finish | None = None) -> None:
        super().__init__(name, path)
        self._finish = finish

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file; compiled modules are neither read nor written."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: Any, path: Any, *_: Any, **__: Any) -> CodeType:  # type: ignore[override]
        """Compile literal text. `DslSyntaxError` and ``SyntaxError`` point into the file."""
        from tcdsl.syntax.literal_code import compile_literal

        return compile_literal(data, str(path), self._finish)


class LiteralFinder(MetaPathFinder):
    """Finds what the other finders find, and has literal files loaded by `LiteralLoader`.

    A file is literal if its module's name begins with one of the prefixes, or, once ``add(None)`` was called, if it is
    marked.
    """

    def __init__(self) -> None:
        self._prefixes: set[str | None] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no module could be literal."""
        return not self._prefixes

    def add(self, prefix: str | None) -> None:
        """Take modules of ``prefix``, or marked ones, as literal."""
        self._prefixes.add(prefix)

    def discard(self, prefix: str | None) -> None:
        """Undo ``add``."""
        self._prefixes.discard(prefix)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a literal module; that of another finder for all others."""
        named = self._is_named(fullname)
        if not named and None not in self._prefixes:
            return None
        spec = found_by_others(self, fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return spec
        return literal_spec(spec) if named or is_marked(spec.origin) else spec

    def _is_named(self, fullname: str) -> bool:
        names = fullname.split(".")
        return any(".".join(names[: k + 1]) in self._prefixes for k in range(len(names)))


def found_by_others(
    finder: MetaPathFinder, fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """What the finders after this one say."""
    place = sys.meta_path.index(finder) if finder in sys.meta_path else -1
    for other in sys.meta_path[place + 1 :]:
        find = getattr(other, "find_spec", None)
        spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


def literal_spec(spec: ModuleSpec, finish: Finish | None = None) -> ModuleSpec:
    """The same module, compiled from literal text; ``finish`` may change its tree before."""
    assert spec.origin is not None
    loader: Loader = LiteralLoader(spec.name, spec.origin, finish)
    made = spec_from_file_location(
        spec.name, spec.origin, loader=loader, submodule_search_locations=spec.submodule_search_locations
    )
    assert made is not None
    return made


def is_marked(path: str | Path) -> bool:
    """Whether the comment lines at the head of a file have the marker among them."""
    try:
        with open(path, "rb") as file:
            for line in file:
                text = line.strip().removeprefix(b"\xef\xbb\xbf")
                if text == MARKER.encode():
                    return True
                if text and not text.startswith(b"#"):
                    return False
    except OSError:
        return False
    return False
