"""Expressions of sizes as Python source, for what is evaluated at every new set of sizes.

::

    code = SizeCode(["N", "M"])
    blocks = code.value(expr)            # the text of its value: a name, or a number
    function = code.function(f"({blocks}, 2 * {blocks})")
    function(7, 3)                       # as fast as if it had been written by hand
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, MappingProxyType
from typing import Any

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.exact import EXACT
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, SizeValue, walk
from tcdsl.ir.primitives import LAZY, PRIMITIVES
from tcdsl.ir.sizes.size_functions import SizeFunction

__all__ = ["SizeCode"]

_CHOICES: Mapping[str, str] = MappingProxyType(
    {"max": "{0} if {0} >= {1} else {1}", "min": "{0} if {0} <= {1} else {1}"}
)


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    # Many programs say the same of their sizes.
    return compile(text, "<sizes>", "exec")


def _is_safe(part: Expr) -> bool:
    match part:
        case Apply(primitive="floor_div" | "mod", arguments=(_, Constant(value=divisor))):
            return divisor != 0
        case Apply(primitive=primitive):
            return primitive in LAZY or (primitive in EXACT and primitive not in ("floor_div", "mod"))
    return isinstance(part, Constant)


class SizeCode:
    """Writes a function of the sizes ``names``, one line for every part of every expression, each part once.

    Integers are Python's. It divides by zero only where the value is needed: what stands behind
    ``where``, ``and`` and ``or`` is written into one line.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._texts: dict[Expr, str] = {SizeValue(name): f"s{k}" for k, name in enumerate(names)}
        self._parameters = tuple(self._texts.values())
        self._lines: list[str] = []
        self._constants: list[tuple[str, str, Any]] = []

    def define(self, name: str, text: str) -> None:
        """From here on the size ``name`` has the value ``text``."""
        self._texts[SizeValue(name)] = self.line(text)

    def value(self, expr: Expr) -> str:
        """The text of the value of ``expr``. ``TypeError`` if it is none of sizes and constants."""
        return self._value(expr, lazy=False)

    def has_value(self, expr: Expr) -> bool:
        """Whether ``expr`` is one of the sizes and of constants, and has a value whatever the sizes are."""
        return all(part in self._texts or _is_safe(part) for part in walk(expr))

    def size(self, name: str) -> str:
        """The text of the value of a size."""
        return self._texts[SizeValue(name)]

    def line(self, text: str) -> str:
        """A new name for the value of ``text``."""
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {text}")
        return name

    def written(self, result: str, *more: str) -> SizeFunction:
        """The function of the sizes, and of the parameters ``more`` after them, that gives ``result``."""
        lines = [f"def function({', '.join((*self._parameters, *more))}):", *self._lines, f"return {result}"]
        return SizeFunction(_compiled("\n    ".join(lines)), tuple(self._constants))

    def function(self, result: str, *more: str) -> Callable[..., Any]:
        """What is `written`, ready to be called."""
        return self.written(result, *more).bound()

    def _constant(self, kind: str, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append((name, kind, value))
        return name

    def _value(self, expr: Expr, lazy: bool) -> str:
        known = self._texts.get(expr)
        if known is not None:
            return known
        match expr:
            case Constant(value=value):
                plain = isinstance(value, bool | int)
                return f"({value!r})" if plain else self._constant("value", value)
            case Cast(operand=operand, dtype=dtype):
                convert = "bool" if dtype == "bool" else "float" if is_floating(dtype) else "int"
                text = f"{convert}({self._value(operand, lazy)})"
            case Apply(primitive=primitive, arguments=arguments):
                text = self._applied(primitive, arguments, lazy)
            case _:
                raise TypeError(f"not an expression of sizes: {expr}")
        if lazy:
            return f"({text})"
        self._texts[expr] = self.line(text)
        return self._texts[expr]

    def _applied(self, primitive: str, arguments: tuple[Expr, ...], lazy: bool) -> str:
        if primitive in LAZY:
            first = self._value(arguments[0], lazy)
            rest = [self._value(argument, lazy=True) for argument in arguments[1:]]
            if primitive == "where":
                return f"{rest[0]} if {first} else {rest[1]}"
            return f"bool({first} {'and' if primitive == 'and_' else 'or'} {rest[0]})"
        parts = [self._value(argument, lazy) for argument in arguments]
        if primitive in EXACT and not any(is_floating(argument.dtype) for argument in arguments):
            sign = PRIMITIVES[primitive].operator
            if sign:
                return f" {sign} ".join(parts) if len(parts) == 2 else f"{sign} {parts[0]}"
            if primitive in _CHOICES and not lazy:
                # Without a call; where parts are names, they may stand twice.
                return _CHOICES[primitive].format(*parts)
            return f"{self._constant('exact', primitive)}({', '.join(parts)})"
        types = [self._constant("type", argument.dtype) for argument in arguments]
        given = ", ".join(f"{kind}({part})" for kind, part in zip(types, parts, strict=True))
        return f"{self._constant('primitive', primitive)}({given}).item()"
