"""From the arguments of a call to the inputs of a program, and many questions by identity: as functions that Python
compiles.

::

    guards = GuardCode()
    guards.ask("{0}.rate is {1}", net, 2.0)
    unchanged = guards.function()

    code = ArgumentCode(2, ["rate"])                  # f(x, n, rate=0.1)
    code.require(f"type({code.at(1)}) is {{0}}", int)
    gathered = code.function([code.at(0)], [code.at("rate")])
    gathered((x, 3), {"rate": 0.1})                   # ((x,), (0.1,)), or None

An attribute that code names is looked up in a tenth of the time that `getattr` takes in a loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

__all__ = ["ArgumentCode", "Gathered", "GuardCode", "NamedValues"]


class NamedValues:
    """Objects, and the names that they have in a text."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def name(self, value: Any) -> str:
        """The name of ``value``."""
        # The values keep each other's ids from being given anew.
        name = self._names.setdefault(id(value), f"v{len(self._names)}")
        self._values[name] = value
        return name

    def compiled(self, text: str) -> Any:
        """The function of this text, a copy of its own, of which Python learns what it looks up where."""
        names = {"__builtins__": {}, "type": type, "len": len, "KeyError": KeyError, "ValueError": ValueError}
        return FunctionType(_compiled(text).replace(), names | self._values)


@functools.lru_cache(maxsize=256)
def _compiled(text: str) -> CodeType:
    module = compile(text, "<guards>", "exec")
    return next(each for each in module.co_consts if isinstance(each, CodeType))


class GuardCode(NamedValues):
    """Questions, and the objects that they are asked of."""

    def __init__(self) -> None:
        super().__init__()
        self._questions: dict[str, None] = {}

    def ask(self, question: str, *values: Any) -> None:
        """A question, an expression in which ``{0}`` is the first value."""
        self._questions[question.format(*map(self.name, values))] = None

    def function(self) -> Callable[[], bool]:
        """Whether all are true; an exception of an object's own code is handed on."""
        questions = " and\n".join(self._questions) or "True"
        function: Callable[[], bool] = self.compiled(f"def unchanged():\n return (\n{questions}\n)")
        return function


Gathered = Callable[[tuple[Any, ...], Any], tuple[tuple[Any, ...], tuple[Any, ...]] | None]


class ArgumentCode(NamedValues):
    """What calls with ``count`` arguments by position and these ``keywords`` are like, and where inputs come from."""

    def __init__(self, count: int, keywords: Sequence[str]) -> None:
        super().__init__()
        self._keywords = {name: f"k{number}" for number, name in enumerate(keywords)}
        self._read = [f"{''.join(f'a{k}, ' for k in range(count)) or '()'} = arguments"]
        self._read += [f"{local} = keywords[{name!r}]" for name, local in self._keywords.items()]
        self._tests = [f"len(keywords) == {len(keywords)}"]
        self._made: list[tuple[str, str]] = []

    def at(self, place: int | str) -> str:
        """The argument at this position, or of this name."""
        return self._keywords[place] if isinstance(place, str) else f"a{place}"

    def require(self, question: str, *values: Any) -> None:
        """What must hold, an expression in which ``{0}`` is the first value."""
        self._tests.append(question.format(*map(self.name, values)))

    def make(self, text: str, test: str, *values: Any) -> str:
        """An object that is made where all holds, of which ``test`` must hold too: ``{0}`` of ``test`` is its name."""
        local = f"i{len(self._made)}"
        self._made.append((f"{local} = {text}", test.format(local, *map(self.name, values))))
        return local

    def function(self, inputs: Sequence[str] | None, numbers: Sequence[str]) -> Gathered:
        """The inputs, or the arguments as they are, and the numbers; None of calls that are otherwise."""
        first = "arguments" if inputs is None else f"({''.join(f'{each}, ' for each in inputs)})"
        lines = ["def gathered(arguments, keywords):", " try:", *(f"  {each}" for each in self._read)]
        lines += [" except (KeyError, ValueError):", "  return None"]
        lines += [f" if not ({' and '.join(self._tests)}):", "  return None"]
        for made, test in self._made:
            lines += [f" {made}", f" if not ({test}):", "  return None"]
        lines.append(f" return {first}, ({''.join(f'{each}, ' for each in numbers)})")
        function: Gathered = self.compiled("\n".join(lines))
        return function
