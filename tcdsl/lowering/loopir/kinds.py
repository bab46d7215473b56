"""Statements and nests of one kind: what is found of the first one holds for the others under their names.

::

    EqualNests.of(nests, memory).firsts      # passes go through these, and `spread` says what becomes of the others
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import islpy as isl

from tcdsl.ir.domain import text_of
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Statement
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    BufferView,
    Check,
    Define,
    EqualNodes,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.recent import Recent
from tcdsl.rewrite.statement_kinds import Kind, Named, kind_of, kind_of_statement, nodes_with_names, with_names

__all__ = [
    "EqualNests",
    "EqualStatements",
    "FirstNodes",
    "RenamedNodes",
    "Renaming",
    "kind_of_nest",
    "names_in",
    "nodes_alike",
]

Found = TypeVar("Found")

nodes_with_names(
    {
        Accumulate: ("scalar", "name"),
        BufferView: ("buffer", "buffer"),
        Define: ("scalar", "name"),
        LocalBuffer: ("buffer", "name"),
        Loop: ("scalar", "variable"),
        Store: ("buffer", "buffer"),
        Update: ("buffer", "buffer"),
    },
    (Branch, Check, ProcedureCall),
)

Renaming = dict[Named, str]
"""The tensors of one statement, and what another one has in their place."""


class EqualStatements(Generic[Found]):
    """What ``find`` gives for statements of programs, in which one stands for all that differ in the names of tensors
    alone; ``rename`` says the same of another one of them.
    """

    def __init__(
        self,
        find: Callable[[Statement, Declarations, isl.Set], Found],
        rename: Callable[[Found, Statement, Declarations, Renaming], Found],
    ) -> None:
        self._find, self._rename = find, rename
        self._known: Recent[object, tuple[tuple[str, ...], Found]] = Recent(512)

    def of(self, statement: Statement, tensors: Declarations, context: isl.Set) -> Found:
        """What ``find`` gives for ``statement``, or has given for one of its kind."""
        kind, names = kind_of_statement(statement)
        used = tuple([name for what, name in names if what == "buffer"])
        others = tuple([named for named in names if named[0] != "buffer"])
        declared = tuple([(tensors[name].dtype, tensors[name].shape) for name in used])
        key = kind, statement.label, others, declared, text_of(context)
        known = self._known.get(key)
        if known is not None:
            before, found = known
            renaming = {("buffer", old): new for old, new in zip(before, used, strict=True)}
            return self._rename(found, statement, tensors, renaming)
        found = self._find(statement, tensors, context)
        self._known[key] = used, found
        return found


class FirstNodes:
    """The ``nodes`` of the first nest of a kind, and what is found in them, once for all nests of the kind."""

    __slots__ = ("_found", "_kind", "nodes")

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self._kind: tuple[Kind, tuple[Named, ...]] | None = None
        self._found: dict[object, tuple[Named, ...]] = {}

    @property
    def kind(self) -> Kind:
        """What the nodes are, but for the names."""
        return self._known()[0]

    @property
    def names(self) -> tuple[Named, ...]:
        """The names in the nodes."""
        return self._known()[1]

    def _known(self) -> tuple[Kind, tuple[Named, ...]]:
        if self._kind is None:
            self._kind = kind_of(self.nodes)
        return self._kind

    def names_found(self, find: Find) -> tuple[Named, ...]:
        """The names that ``find`` gives for the nodes."""
        if find not in self._found:
            self._found[find] = tuple(find(self.nodes))
        return self._found[find]

    def code(self) -> RenamedNodes:
        """The nodes under their own names."""
        return RenamedNodes(self, tuple([name for _, name in self.names]))

    def __reduce__(self) -> tuple[object, ...]:
        return FirstNodes, (self.nodes,)


class RenamedNodes(EqualNodes):
    """``first``, with the ``names`` in the places of its own."""

    __slots__ = ("_nodes", "first", "names")

    def __init__(self, first: FirstNodes, names: tuple[str, ...]) -> None:
        self.first, self.names = first, names
        # Kept, because some ask whether a node is the very one that they have met before.
        self._nodes: tuple[Node, ...] | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes under the names."""
        if self._nodes is None:
            pairs = zip(self.first.names, self.names, strict=True)
            others = {named: name for named, name in pairs if named[1] != name}
            self._nodes = with_names(self.first.nodes, others) if others else self.first.nodes
        return self._nodes

    @property
    def named(self) -> tuple[Named, ...]:
        """The names in the nodes, in the order in which they are met."""
        return tuple([(what, name) for (what, _), name in zip(self.first.names, self.names, strict=True)])

    def under_these_names(self, first: FirstNodes) -> RenamedNodes:
        """``first``, which has been made of the nodes of this one's, under the names of this one."""
        others = dict(zip(self.first.names, self.names, strict=True))
        return RenamedNodes(first, tuple([others.get(named, named[1]) for named in first.names]))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RenamedNodes):
            return (self.first is other.first and self.names == other.names) or self.nodes == other.nodes
        return self.nodes == other

    def __hash__(self) -> int:
        return hash(self.nodes)

    def __repr__(self) -> str:
        return repr(self.nodes)

    def __reduce__(self) -> tuple[object, ...]:
        return RenamedNodes, (self.first, self.names)


Find = Callable[[tuple[Node, ...]], Iterable[Named]]


def nodes_alike(nest: Nest) -> tuple[Node, ...]:
    """The body of ``nest`` or of the first one of its kind, for questions whose answers have no names in them."""
    return nest.code.first.nodes if isinstance(nest.code, RenamedNodes) else nest.body


def names_in(nest: Nest, find: Find) -> Iterable[Named]:
    """The names that ``find`` gives for the body of ``nest``; of the nests of a kind only the first one is asked."""
    code = nest.code
    if not isinstance(code, RenamedNodes):
        return find(nest.body)
    others = dict(zip(code.first.names, code.names, strict=True))
    return [(named[0], others[named]) for named in code.first.names_found(find)]


def kind_of_nest(nest: Nest) -> tuple[Kind, tuple[Named, ...]]:
    """What `kind_of` says of the body of ``nest``."""
    return (nest.code.first.kind, nest.code.named) if isinstance(nest.code, RenamedNodes) else kind_of(nest.body)


@dataclass(frozen=True, slots=True)
class EqualNests:
    """Nests by their kinds: ``firsts`` are the first ones of each.

    ``members`` has for each nest its number among them, and for those that come later both lists of names.
    """

    nests: tuple[Nest, ...]
    firsts: tuple[Nest, ...]
    members: tuple[tuple[int, tuple[Named, ...], tuple[Named, ...]], ...]
    memory: Mapping[str, object]

    @staticmethod
    def of(nests: Sequence[Nest], memory: Mapping[str, object]) -> EqualNests:
        """``nests``, of which those of a kind have buffers for which ``memory`` says the same."""
        known: dict[object, tuple[int, tuple[Named, ...]]] = {}
        firsts: list[Nest] = []
        members: list[tuple[int, tuple[Named, ...], tuple[Named, ...]]] = []
        for nest in nests:
            kind, names = kind_of_nest(nest)
            alike = tuple(memory.get(name) if what == "buffer" else name for what, name in names if what != "scalar")
            found = known.get((kind, alike))
            # What is told of a check are the user's own names and place; bounds are told by another nest.
            if found is None or Check in kind or nest.bounds is not None:
                found = known[kind, alike] = len(firsts), names
                firsts.append(nest)
                members.append((found[0], (), ()))
            else:
                members.append((*found, names))
        return EqualNests(tuple(nests), tuple(firsts), tuple(members), memory)

    def spread(self, made: Sequence[Nest]) -> list[Nest]:
        """All nests, where ``made`` has been made of the first ones."""
        inside: dict[int, FirstNodes] = {}
        out: list[Nest] = []
        for nest, (number, old, new) in zip(self.nests, self.members, strict=True):
            first = made[number]
            if first is self.firsts[number]:
                out.append(nest)
                continue
            if number not in inside:
                known = first.code
                inside[number] = known.first if isinstance(known, RenamedNodes) else FirstNodes(first.body)
            if not old:
                out.append(replace(first, code=inside[number].code()))
                continue
            others = {known: name for known, (_, name) in zip(old, new, strict=True)}
            fresh = FreshNames((name for _, name in new), short=True, elsewhere=self.memory.__contains__)
            for named in inside[number].names:
                if named not in others:
                    others[named] = named[1] if named[0] == "size" else fresh.fresh(named[1])
            names = tuple([others[named] for named in inside[number].names])
            out.append(replace(nest, code=RenamedNodes(inside[number], names)))
        return out
