"""The import hook of pytest's plugin: literal test files get pytest's assertions, which are made of a file's tree.

pytest offers no way to give it a tree, so this module alone uses what pytest does not promise to keep.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from fnmatch import fnmatch
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import PurePath
from types import ModuleType

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook, rewrite_asserts

from tcdsl.syntax.finder import found_by_others, is_marked, literal_spec

__all__ = ["LiteralTestFinder"]


class LiteralTestFinder(MetaPathFinder):
    """Takes the modules that pytest takes for tests: those that are marked, or all with ``every``."""

    def __init__(self, config: pytest.Config, every: bool) -> None:
        self._config = config
        self._every = every

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a literal test file; that of another finder for all others."""
        # pytest would compile all modules of this package anew: it takes what belongs to a plugin for tests.
        if fullname.startswith("tcdsl.") and (own := PathFinder.find_spec(fullname, path, target)) is not None:
            return own
        spec = found_by_others(self, fullname, path, target)
        if spec is None or spec.origin is None:
            return spec
        rewritten = isinstance(spec.loader, AssertionRewritingHook)
        if not rewritten and not (type(spec.loader) is SourceFileLoader and self._is_test(spec.origin)):
            return spec
        if not (self._every and self._is_test(spec.origin)) and not is_marked(spec.origin):
            return spec
        return literal_spec(spec, self._with_assertions if rewritten else None)

    def _is_test(self, origin: str) -> bool:
        name = PurePath(origin).name
        return name == "conftest.py" or any(fnmatch(name, each) for each in self._config.getini("python_files"))

    def _with_assertions(self, tree: ast.Module, source: bytes, filename: str) -> None:
        rewrite_asserts(tree, source, filename, self._config)
