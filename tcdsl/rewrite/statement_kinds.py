"""What statements and other nodes do, whatever the names in them: equal layers have statements and nests of one kind.

::

    kind_of(nodes)      # (1, Loop, 0, Constant, "0", ...), (("scalar", "i"), ("size", "N"), ("buffer", "y"))
    with_names(nodes, {("buffer", "y"): "z"})
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache, wraps
from operator import attrgetter, is_
from types import NoneType
from typing import Any, TypeVar

from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Cast, Constant, IndexValue, Let, Local, Read, SizeValue, walk
from tcdsl.ir.program import (
    Access,
    Fill,
    Keep,
    Neutral,
    Statement,
    StatementFacts,
    Tensor,
    Unset,
    statement_expressions,
)
from tcdsl.ir.text.declined import Declined
from tcdsl.recent import Recent
from tcdsl.span import Span

__all__ = [
    "Kind",
    "KindWriter",
    "Named",
    "content",
    "kind_of",
    "kind_of_statement",
    "nodes_with_names",
    "of_kind",
    "of_renamed_kind",
    "places_of",
    "with_names",
]

Part = TypeVar("Part")
Found = TypeVar("Found")
Kind = tuple[object, ...]
Named = tuple[str, str]
"""What a name is of, a buffer, a size or a scalar, and the name."""


def _reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    # `attrgetter` gives a tuple of two and more alone.
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: tuple([getattr(node, name) for name in names])


# What stands in the fields of each node, the last one first, read in one go, and the name.
_PARTS: dict[type, tuple[tuple[str, Callable[[Any], str]] | None, Callable[[Any], tuple[Any, ...]]]] = {}
# What all fields of each node are, names of something, parts, or places in the user's source, and what they hold.
_ALL_PARTS: dict[type, tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]] = {}


def nodes_with_names(named: Mapping[type, Named], others: Iterable[type] = ()) -> None:
    """From now on nodes of these classes are looked into. Of those ``named`` the field is a name of what is said."""
    for kind in (*named, *others):
        what, name = named.get(kind, ("", ""))
        own = [each.name for each in fields(kind) if each.compare and each.name != name]
        read_name = (what, attrgetter(name)) if name else None
        _PARTS[kind] = read_name, _reader(own[::-1])
        roles = ("part" if each.name in own else what if each.compare else "place" for each in fields(kind))
        _ALL_PARTS[kind] = tuple(roles), _reader([each.name for each in fields(kind)])


nodes_with_names(
    {
        Access: ("buffer", "tensor"),
        IndexValue: ("scalar", "name"),
        Keep: ("buffer", "tensor"),
        Let: ("scalar", "name"),
        Local: ("scalar", "name"),
        Read: ("buffer", "tensor"),
        SizeValue: ("size", "name"),
    },
    (Apply, Cast, Constant, Declined, Fill, Neutral, Statement, Unset),
)
_NUMBERS, _WORDS = frozenset((int, bool, float)), frozenset((str, NoneType))
_PLAIN = _NUMBERS | _WORDS
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def kind_of(parts: Iterable[Any]) -> tuple[Kind, tuple[Named, ...]]:
    """The kind of nodes or statements, or of tuples of such, and the names in them in the order in which they are met.

    Those of one kind are the same but for these names.
    """
    kind: list[object] = []
    names: dict[Named, int] = {}
    _write(tuple(parts), kind, names)
    return tuple(kind), tuple(names)


class KindWriter:
    """Writes the kind of what is no node, such as the plan of a loop, part by part."""

    def __init__(self) -> None:
        self._kind: list[object] = []
        self._names: dict[Named, int] = {}

    def word(self, *words: object) -> None:
        """What is the same whatever the names are."""
        self._kind += words

    def scalars(self, names: Iterable[str]) -> None:
        """Names of scalars."""
        known = self._names
        self._kind.append(tuple([known.setdefault(("scalar", name), len(known)) for name in names]))

    def statement(self, statement: Statement) -> None:
        """A statement but for its comment."""
        kind, inside = kind_of_statement(statement)
        known = self._names
        self._kind += (kind, tuple([known.setdefault(name, len(known)) for name in inside]))

    def parts(self, parts: tuple[Any, ...]) -> None:
        """Nodes, or tuples of such."""
        _write(parts, self._kind, self._names)

    def written(self) -> tuple[Kind, tuple[Named, ...]]:
        """The kind, and the names in it in the order in which they were met."""
        return tuple(self._kind), tuple(self._names)


_KEEP_KIND: Any = StatementFacts.__dict__["_kind"].__set__
_KEEP_PLACES: Any = StatementFacts.__dict__["_places"].__set__
_statement_parts = attrgetter(*[each.name for each in fields(Statement) if each.compare and each.name != "label"])


def kind_of_statement(statement: Statement) -> tuple[Kind, tuple[Named, ...]]:
    """The kind of a statement but for its comment, and its names; found once, because much asks for it."""
    found: tuple[Kind, tuple[Named, ...]]
    try:
        found = statement._kind
    except AttributeError:
        found = kind_of(_statement_parts(statement))
        _KEEP_KIND(statement, found)
    return found


def of_renamed_kind(made: Statement, statement: Statement, names: Mapping[str, str]) -> Statement:
    """``made``, which is ``statement`` with tensors renamed, and so of its kind, if that is known."""
    found: tuple[Kind, tuple[Named, ...]] | None = getattr(statement, "_kind", None)
    if found is not None:
        own = tuple([(what, names.get(name, name) if what == "buffer" else name) for what, name in found[1]])
        if len(set(own)) == len(own):
            _KEEP_KIND(made, (found[0], own))
            _KEEP_PLACES(made, places_of(statement))
    return made


def places_of(statement: Statement) -> tuple[Span | None, ...]:
    """Where a statement and its parts come from."""
    try:
        return statement._places
    except AttributeError:
        inside = [node.span for expr in statement_expressions(statement) for node in walk(expr)]
        found = statement.span, statement.target.span, *inside
        _KEEP_PLACES(statement, found)
        return found


def of_kind(find: Callable[[Statement], Found]) -> Callable[[Statement], Found]:
    """``find`` is asked once for all statements of a kind: its answer has no names in it, and depends on none."""
    known: Recent[Kind, Found] = Recent(4096)

    @wraps(find)
    def found(statement: Statement) -> Found:
        kind, _ = kind_of_statement(statement)
        answer = known.get(kind)
        if answer is None:
            answer = known[kind] = find(statement)
        return answer

    return found


def content(statement: Statement, tensor: Tensor) -> object:
    """What a statement and the tensor that it makes say, whatever these and its variables are called."""
    kind, names = kind_of_statement(statement)
    own = statement.target.tensor
    read = tuple(["" if name == own else name for what, name in names if what != "scalar"])
    return kind, read, tensor.dtype, tensor.shape


def with_names(nodes: tuple[Part, ...], names: Mapping[Named, str]) -> tuple[Part, ...]:
    """``nodes`` with other names; what ``names`` does not have stays."""
    found: tuple[Part, ...] = _renamed(nodes, names)
    return found


def _write(value: Any, parts: list[object], names: dict[Named, int]) -> None:
    # Written out, because nothing is asked more often: what comes next is the last one.
    rest = [value]
    while rest:
        value = rest.pop()
        kind = type(value)
        if kind in _WORDS:
            parts.append(value)
        elif kind is tuple:
            parts.append(len(value))
            rest += value[::-1]
        elif kind is Statement:
            own, inside = kind_of_statement(value)
            parts += (own, value.label, *[names.setdefault(name, len(names)) for name in inside])
        elif kind in _PARTS:
            parts.append(kind)
            named, inner = _PARTS[kind]
            if named is not None:
                parts.append(names.setdefault((named[0], named[1](value)), len(names)))
            rest += inner(value)
        elif kind is Domain:
            parts.append(_text(value, names))
        else:
            # Not the number itself: 1, 1.0 and True are equal, and 0.0 and -0.0.
            parts.append(repr(value) if kind in _NUMBERS else value)


def _text(domain: Domain, names: dict[Named, int]) -> tuple[int | str, ...]:
    # The words of the set, with numbers for its variables.
    numbers = [names.setdefault(("scalar", name), len(names)) for name in domain.variables]
    return (*numbers, *_pieces(domain))


@lru_cache(maxsize=4096)
def _pieces(domain: Domain) -> tuple[int | str, ...]:
    # What stands between the variables, and their places among them.
    pieces: list[int | str] = []
    end = 0
    for word in _IDENTIFIER.finditer(domain.text):
        if word[0] in domain.variables:
            pieces += (domain.text[end : word.start()], domain.variables.index(word[0]))
            end = word.end()
    return (*pieces, domain.text[end:])


def _renamed(value: Any, names: Mapping[Named, str]) -> Any:
    kind = type(value)
    if kind is tuple:
        parts = [each if type(each) in _PLAIN else _renamed(each, names) for each in value]
        return value if all(map(is_, parts, value)) else tuple(parts)
    found = _ALL_PARTS.get(kind)
    if found is None:
        return value
    own, read = found
    before = read(value)
    parts = list(before)
    for k, (what, part) in enumerate(zip(own, before, strict=True)):
        if what == "part":
            if type(part) not in _PLAIN:
                parts[k] = _renamed(part, names)
        elif what != "place":
            parts[k] = names.get((what, part), part)
    return value if all(map(is_, parts, before)) else kind(*parts)
