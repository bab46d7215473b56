"""The modules that a text imports: from the library, then from the folder of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.skriptnd.checking import check_operator, require_no_recursion
from tcdsl.frontend.skriptnd.text.parsing import MOST_CHARACTERS, parse_module
from tcdsl.frontend.skriptnd.text.syntax import Operator, TextModule
from tcdsl.library.texts import MODULES, library_module
from tcdsl.span import SKRIPTND, Span, named_text

__all__ = ["Sources", "parsed"]


@lru_cache(maxsize=64)
def parsed(text: str, filename: str = "") -> TextModule:
    """What a text holds; without the name of a file it gets one, under which messages find its lines."""
    filename = filename or named_text(text, SKRIPTND)
    if len(text) > MOST_CHARACTERS:
        fact = f"the text has {len(text)} characters, and {MOST_CHARACTERS} are the most"
        raise DslSyntaxError.at(fact, Span(filename, 1, 0, 1, 1), "put operators into modules of their own")
    return parse_module(text, filename)


class Sources:
    """``Sources(main, read).find("main", "nn.conv", span)``: operators by the names that a module has for them.

    ``read(name)`` gives the text of a module of the model, and the name of its file; None if there is none.
    """

    def __init__(self, main: TextModule, read: Callable[[str], tuple[str, str] | None]) -> None:
        self._read = read
        self._modules: dict[str, TextModule] = {"main": main}
        self._operators: dict[str, Mapping[str, Operator]] = {}
        self._check_imports(main)
        pairs = [(name, each) for name, module in self._modules.items() for each in module.operators]
        self._calls = {each: check_operator(each, partial(self.find, name)) for name, each in pairs}
        require_no_recursion(self._calls)

    def _check_imports(self, module: TextModule) -> None:
        # The modules of the library are read when they are used.
        for each in module.imports:
            if each.name in MODULES or each.name in self._modules:
                continue
            found = self._read(each.name)
            if found is None:
                fact = f"there is no module `{each.name}`"
                hint = f"the library has {', '.join(MODULES)}; others stand beside the text, as `{each.name}.sknd`"
                raise DslSyntaxError.at(fact, each.span, hint)
            if len(self._modules) > 1_000:
                raise DslSyntaxError.at("more than 1000 modules are imported", each.span, "join some of them")
            text, filename = found
            inner = self._modules[each.name] = parsed(text, filename)
            graph = next((operator for operator in inner.operators if operator.graph), None)
            if graph is not None:
                fact = f"the module `{each.name}` holds a graph"
                raise DslSyntaxError.at(fact, graph.name_span, "graphs stand in the main module alone")
            self._check_imports(inner)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_read": None}  # all modules are read

    def graphs_of(self, graph: Operator) -> list[Operator]:
        """The graphs that a graph calls, in any depth."""
        found = [graph]
        for each in found:
            found.extend(dict.fromkeys(called for called, _ in self._calls.get(each, ()) if called not in found))
        return [each for each in found[1:] if each.graph]

    def texts(self) -> dict[str, tuple[str, str]]:
        """The modules beside the main one: the text of each, and the name of its file."""
        return {name: (each.text, each.filename) for name, each in self._modules.items() if name != "main"}

    def module(self, name: str) -> Mapping[str, Operator]:
        """The operators of a module, by name."""
        if name not in self._operators:
            text = self._modules.get(name)
            own = None if text is None else {each.name: each for each in text.operators}
            self._operators[name] = library_module(name) if own is None else own
        return self._operators[name]

    def find(self, module: str, name: str, span: Span | None) -> tuple[Operator, str] | None:
        """The operator that ``name`` is in ``module``, and the module where it stands."""
        home, _, last = name.rpartition(".")
        home = home or module
        if home != module:
            text = self._modules.get(module)
            imported = [each.name for each in text.imports] if text is not None else list(MODULES)
            if home not in imported:
                hint = f"write `import {home};`" if home in MODULES or home in self._modules else ""
                raise DslSyntaxError.at(f"the module `{home}` is not imported", span, hint)
            if last.startswith("_"):
                raise DslSyntaxError.at(f"`{name}` is private to its module", span, "names with `_` in front are")
        found = self.module(home).get(last)
        return None if found is None else (found, home)
