"""A module: the graphs of a text, each a function."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tcdsl.errors import ConfigurationError, DslSyntaxError
from tcdsl.frontend.skriptnd.text.syntax import TextModule
from tcdsl.locks import without_collecting
from tcdsl.skriptnd.files import ModelFiles, text_in_folder
from tcdsl.skriptnd.graphs import ModelGraph
from tcdsl.skriptnd.sources import Sources, parsed
from tcdsl.span import Span

__all__ = ["Graphs", "SkriptModule", "module_of_path", "module_of_text"]


class Graphs(dict[str, ModelGraph]):
    """The graphs of a module by name, in the order of the text: ``module.graphs["net"](x)``."""

    def __missing__(self, name: str) -> ModelGraph:
        raise ConfigurationError.at(f"there is no graph {name!r}; the text has {', '.join(self)}")


class SkriptModule:
    """What `parse` and `load` give: ``module.graphs`` are functions, ``print(module)`` shows the text."""

    def __init__(
        self, text: TextModule, sources: Sources, attributes: Mapping[str, Any] | None, files: ModelFiles | None = None
    ) -> None:
        self._text = text
        if attributes is not None and not isinstance(attributes, Mapping):
            fact = f"`attributes` is a {type(attributes).__name__}"
            raise ConfigurationError.at(fact, hint="give names and values: `attributes={'width': 8}`")
        self.graphs = Graphs()
        for each in text.operators:
            if each.graph:
                given = {} if self.graphs else dict(attributes or {})
                self.graphs[each.name] = ModelGraph(each, sources, text, given, files)
        if not self.graphs:
            span = Span(text.filename, 1, 0, 1, 1)
            raise DslSyntaxError.at("the text holds no graph", span, "operators alone make a module that others import")
        next(iter(self.graphs.values())).look()

    def __str__(self) -> str:
        return self._text.text

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.graphs.values())

    def __repr__(self) -> str:
        return f"<sknd module: {', '.join(self.graphs)}>"


@without_collecting()
def module_of_text(
    text: str, folder: str | os.PathLike[str] | None = None, attributes: Mapping[str, Any] | None = None
) -> SkriptModule:
    """The module of a text, whose imports come from the library and from ``folder``."""
    if not isinstance(text, str):
        fact = f"a text in SkriptND is a str, not a {type(text).__name__}"
        raise DslSyntaxError.at(fact, hint="`tc.skriptnd.load(path)` reads files")
    read = parsed(text)
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise ConfigurationError.at(f"`folder` is a path, not a {type(folder).__name__}")
    if folder is None:
        return SkriptModule(read, Sources(read, _nowhere), attributes)
    return SkriptModule(read, Sources(read, partial(text_in_folder, Path(folder))), attributes)


def _nowhere(_: str) -> None:
    return None


@without_collecting()
def module_of_path(path: str | os.PathLike[str], attributes: Mapping[str, Any] | None = None) -> SkriptModule:
    """The module of a file, a folder or an archive, with the values of variables."""
    files = ModelFiles(path)
    text = parsed(files.main, files.filename)
    return SkriptModule(text, Sources(text, files.module), attributes, files)
