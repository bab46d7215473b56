"""A module: the graphs of a text, each a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tcdsl.errors import ConfigurationError, DslSyntaxError
from tcdsl.skriptnd.files import ModelFiles
from tcdsl.skriptnd.graphs import ModelGraph
from tcdsl.skriptnd.sources import Sources, parsed
from tcdsl.span import Span

__all__ = ["Graphs", "SkriptModule"]


class Graphs(dict[str, ModelGraph]):
    """The graphs of a module by name, in the order of the text: ``module.graphs["net"](x)``."""

    def __missing__(self, name: str) -> ModelGraph:
        raise ConfigurationError.at(f"there is no graph {name!r}; the text has {', '.join(self)}")


class SkriptModule:
    """What `parse` and `load` give: ``module.graphs`` are functions, ``print(module)`` shows the text.

    ``read`` gives the texts of imported modules, ``files`` the arrays of variables.
    """

    def __init__(
        self,
        text: str,
        filename: str,
        read: Callable[[str], tuple[str, str] | None],
        attributes: Mapping[str, Any] | None,
        files: ModelFiles | None = None,
    ) -> None:
        self._text = parsed(text, filename)
        sources = Sources(self._text, read)
        if attributes is not None and not isinstance(attributes, Mapping):
            fact = f"`attributes` is a {type(attributes).__name__}"
            raise ConfigurationError.at(fact, hint="give names and values: `attributes={'width': 8}`")
        self.graphs = Graphs()
        for each in self._text.operators:
            if each.graph:
                given = {} if self.graphs else dict(attributes or {})
                self.graphs[each.name] = ModelGraph(each, sources, self._text, given, files)
        if not self.graphs:
            span = Span(self._text.filename, 1, 0, 1, 1)
            raise DslSyntaxError.at("the text holds no graph", span, "operators alone make a module that others import")
        next(iter(self.graphs.values())).look()

    def __str__(self) -> str:
        return self._text.text

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.graphs.values())

    def __repr__(self) -> str:
        return f"<sknd module: {', '.join(self.graphs)}>"
