"""The values of SkriptND expressions.

What is known while a graph is composed is a value of Python's: ``bool``, ``int``, ``float``, ``str``, a `Pack` of them,
None for null. A `ScalarValue` is known at a call: a size of an array, an index of a formula, a cell. `TensorValue`
stands for a tensor, `GuardedIndex` for an index that may be out of range. Of the values of an operator that nothing
calls, only types are known: they are `Unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcdsl.errors import DtypeError
from tcdsl.ir.expressions import Expr, walk
from tcdsl.span import Span

if TYPE_CHECKING:
    # Texts are read without what stages and compiles.
    from tcdsl.frontend.symbols.symbols import SymbolicTensor

__all__ = ["CONCRETE", "MEMBERS", "UNKNOWN", "ZERO", "GuardedIndex", "Pack", "ScalarValue", "TensorValue", "Unknown"]
__all__ += ["agreed", "article", "bound_of", "content_of", "copied", "flat"]
__all__ += ["is_pack", "is_size", "is_tensor", "most_of", "shown", "type_of"]

CONCRETE = ("int", "real", "bool", "str")
#: The types that a parameter of `@dtype` may stand for.
MEMBERS: Mapping[str, tuple[str, ...]] = {"type": CONCRETE, "arith": ("int", "real", "bool"), "num": ("int", "real")}
#: How the names of extents begin that nothing which was assigned has said yet.
UNKNOWN = "."
ZERO: Mapping[str, Any] = {"int": 0, "real": 0.0, "bool": False, "str": ""}


class Pack(tuple[Any, ...]):  # noqa: SLOT001  # a tuple has no slots
    """Values in a row: ``Pack((1, 2))``.

    ``uniform`` is the value that all items of an empty pack would have, where it is known; ``length`` is how many of
    the items there are, where only data says it: the others are 0.
    """

    uniform: Any = None
    length: ScalarValue | None = None

    @classmethod
    def of(cls, items: Iterable[Any], uniform: Any = None, length: ScalarValue | None = None) -> Pack:
        """A pack of ``items``."""
        made = cls(items)
        made.uniform, made.length = uniform, length
        return made

    @property
    def size(self) -> Any:
        """How many items there are."""
        return len(self) if self.length is None else self.length

    def single(self) -> Any:
        """The value of all items, if it is one; else None."""
        if not self:
            return self.uniform
        first = self[0]
        return first if all(type(each) is type(first) and each == first for each in self) else None


@dataclass(frozen=True, slots=True)
class ScalarValue:
    """A number at a call or at a point of a formula, of the ``type`` int, real or bool.

    ``exact`` says of an integer that it is made of index variables and sizes: its ``expr`` is an int64. Other
    expressions are of the types of arrays. ``bound`` is that of an extent that only data says: it is at most that size.
    """

    expr: Expr
    type: str
    exact: bool = False
    bound: Any = None


@dataclass(frozen=True, slots=True)
class GuardedIndex:
    """``|index|``, or with other indices below and above the range."""

    index: Any
    below: Any = None
    above: Any = None


@dataclass(eq=False, slots=True)
class TensorValue:
    """A tensor of a graph. ``shape`` has an ``int`` or a `ScalarValue` for each axis.

    ``tensor`` is missing while a graph is only looked at, ``constant`` is the value of a constant of rank 0. ``used``
    says that something has asked for it by its name.
    """

    name: str
    type: str
    shape: Pack
    tensor: SymbolicTensor | None = None
    constant: Any = None
    used: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value of which the text tells the type at most: ``type`` is empty, ``pack`` None where that is open."""

    type: str = ""
    pack: bool | None = None
    tensor: bool = False


def is_pack(*values: Any) -> bool | None:
    """Whether one of ``values`` is a pack; None where that is open."""
    found = [each.pack if isinstance(each, Unknown) else isinstance(each, Pack) for each in values]
    return True if True in found else None if None in found else False


def is_size(value: Any) -> bool:
    """Whether ``value`` is an integer that a call knows, and no point of a formula."""
    if not isinstance(value, ScalarValue):
        return type(value) is int
    varying = ("IndexValue", "Read", "Local")
    return value.bound is not None or (
        value.exact and all(type(node).__name__ not in varying for node in walk(value.expr))
    )


def bound_of(extent: Any) -> Any:
    """What an extent is at most, if only data says it; else None."""
    return extent.bound if isinstance(extent, ScalarValue) else None


def most_of(extent: Any) -> Any:
    """An extent, or what it is at most, if only data says it."""
    while bound_of(extent) is not None:
        extent = extent.bound
    return extent


def type_of(value: Any) -> str:
    """``int``, ``real``, ``bool``, ``str``; nothing for null and for an empty pack."""
    if isinstance(value, Pack):
        return next((found for found in map(type_of, value) if found), "") or (
            type_of(value.uniform) if value.uniform is not None else ""
        )
    if isinstance(value, ScalarValue | TensorValue | Unknown):
        return value.type
    if isinstance(value, GuardedIndex):
        return type_of(value.index)
    return {bool: "bool", int: "int", float: "real", str: "str"}.get(type(value), "")


def shown(value: Any) -> str:
    """As SkriptND writes it: ``[1,2]``, ``true``; sizes of arrays by their names."""
    if isinstance(value, Pack):
        return f"[{','.join(map(shown, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ScalarValue):
        from tcdsl.ir.text.expression_printer import format_expr

        return format_expr(value.expr).removeprefix(UNKNOWN)
    if isinstance(value, TensorValue):
        return value.name
    return "null" if value is None else str(value)


def flat(values: Iterable[Any]) -> list[Any]:
    """Values, and the items of packs, one after the other."""
    return [each for value in values for each in (value if isinstance(value, Pack) else (value,))]


def article(word: str) -> str:
    """A type, or another word, with its article: ``an int``."""
    return (f"an {word}" if word[:1] in "aeio" else f"a {word}") if word else "null"


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a tensor, or may be a pack of some."""
    return isinstance(value, TensorValue) or (isinstance(value, Unknown) and value.tensor)


def agreed(what: str, left: Any, right: Any, span: Span | None) -> Unknown:
    """What is known of one of two values, whose types agree."""
    kinds = type_of(left), type_of(right)
    if all(kinds) and kinds[0] != kinds[1]:
        hint = "a real has a point: `1.0`" if {*kinds} == {"int", "real"} else "`real(x)` and `int(x)` convert"
        raise DtypeError.at(f"`{what}` of {article(kinds[0])} and {article(kinds[1])}", span, hint)
    return Unknown(kinds[0] or kinds[1], is_pack(left, right), is_tensor(left) or is_tensor(right))


def content_of(value: Any) -> Any:
    """What of a value, or of a pack of them, a call depends on; 1, 1.0 and True are not the same."""
    match value:
        case tuple():
            own = (getattr(value, "uniform", None), getattr(value, "length", None))
            return (type(value), *map(content_of, (*value, *own)))
        case TensorValue():
            return value.type, content_of(value.shape), content_of(value.constant)
        case ScalarValue() | None:
            return value
    return type(value), value


def copied(value: Any) -> Any:
    """An equal value: tensors that are the same are told apart from tensors that are alike."""
    return Pack.of(map(copied, value), value.uniform, value.length) if isinstance(value, Pack) else replace(value)
