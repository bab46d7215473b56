"""The definitions of one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from tcdsl.comprehensions.functions import Comprehension
from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.comprehensions.checking import checked_source
from tcdsl.frontend.comprehensions.outcomes import Outcome
from tcdsl.frontend.comprehensions.text.parsing import parse
from tcdsl.frontend.comprehensions.text.printing import format_source
from tcdsl.frontend.comprehensions.text.syntax import Source
from tcdsl.tracebacks import missing_name

__all__ = ["Definitions", "definitions_of"]


class Definitions:
    """What `define` gives: ``defs.name`` and ``defs["name"]`` are functions, ``print(defs)`` shows the source.

    All its public names are those of definitions.
    """

    __slots__ = ("__functions", "__source", "__weakref__")

    def __init__(self, source: Source, functions: Mapping[str, Comprehension]) -> None:
        self.__source = source
        self.__functions = dict(functions)

    def __getattr__(self, name: str) -> Comprehension:
        if name in ("_Definitions__functions", "_Definitions__source"):
            raise AttributeError(name)  # while it is being made
        try:
            return self.__functions[name]
        except KeyError:
            raise missing_name("the source", name, self, self.__functions) from None

    def __getitem__(self, name: str) -> Comprehension:
        try:
            return self.__functions[name]
        except (KeyError, TypeError):
            raise KeyError(f"there is no definition {name!r}; {self.__known()}") from None

    def __known(self) -> str:
        return f"the source defines {', '.join(self.__functions)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.__functions)

    def __len__(self) -> int:
        return len(self.__functions)

    def __contains__(self, name: object) -> bool:
        return name in self.__functions

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.__functions]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definitions) and self.__source == other.__source

    def __hash__(self) -> int:
        return hash(self.__source)

    def __reduce__(self) -> tuple[Any, ...]:
        return definitions_of, (self.__source.text,)

    def __copy__(self) -> Definitions:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Definitions:
        return self

    def __str__(self) -> str:
        return format_source(self.__source)

    def __repr__(self) -> str:
        return f"<tc definitions: {', '.join(self.__functions)}>"


def definitions_of(text: str) -> Definitions:
    """The definitions of a source, checked. A text that was read lately gives the same object."""
    return _lately(text) if isinstance(text, str) else _read(text)


def _read(text: Any) -> Definitions:
    source = parse(text)
    functions: dict[str, Comprehension] = {}
    outcomes: dict[str, Outcome] = {}
    for name, checked in checked_source(source).items():
        functions[name] = Comprehension(checked, source, definitions_of)
        outcomes[name] = functions[name].template.check(outcomes)
    return Definitions(source, {each.name.name: functions[each.name.name] for each in source.definitions})


_lately = lru_cache(maxsize=64)(_read)


def warnings_of(definitions: Definitions) -> Iterator[str]:
    """What is worth a warning: statements that accumulate onto a result that nothing has written."""
    for name in definitions:
        for statement in definitions[name].warned:
            fact = "a reduction without initialization: it begins at the neutral element, or at what `out=` holds"
            hint = "write `!` behind the operator if that is meant: `+=!`"
            yield Diagnostic(DslSyntaxError, fact, statement.span, hint=hint).render()
