"""Bindings of names in decorated functions, rewritten: local definitions, and what is unpacked into several names.

::

    z = x[i] * x[i]             z = RECORDER.local(0, {...}, lambda: x[i] * x[i])
    a, b = x[i], y              a, b = RECORDER.part(1, {...}, lambda: x[i]), y; a = RECORDER.bind("a", ...)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

from tcdsl.frontend.names.index_letters import LetterUses, letters_outside_subscripts

__all__ = ["RECORDER", "BindingRewriter", "Rewritten", "recorder_call"]

RECORDER = "__tcdsl__"


@dataclass(slots=True)
class Rewritten:
    """The rewritten definition and the statements that its recorder calls refer to by number.

    ``targets`` are the names that nothing else than tensor statements binds. ``letters`` are, by the number of a local
    definition, the index letters of what runs after it and what they index.
    """

    definition: ast.FunctionDef
    statements: list[ast.stmt] = field(default_factory=list)
    own_names: frozenset[str] = frozenset()
    fresh_names: tuple[str, ...] = ()
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    declared_names: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()
    letters: dict[int, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    projected: bool = False
    #: What is stored into that is no name: what it is held by, and its text.
    places: dict[str, str] = field(default_factory=dict)


def recorder_call(method: str, *arguments: ast.expr, at: ast.AST) -> ast.Call:
    """A call of a method of the recorder, at the place of ``at``."""
    function = ast.Attribute(ast.Name(RECORDER, ast.Load()), method, ast.Load())
    call = ast.Call(function, list(arguments), [])
    # Only what is new has no place yet: arguments are calls of the recorder in their turn, which have been placed.
    new: list[ast.AST] = [call]
    while new:
        node = new.pop()
        if "lineno" in node._attributes:
            ast.copy_location(node, at)
        new.extend(part for part in ast.iter_child_nodes(node) if not hasattr(part, "lineno"))
    return call


class BindingRewriter(ast.NodeTransformer):
    """Rewrites what binds names. ``own`` are the names of the function, ``tensors`` those that may hold tensors."""

    def __init__(
        self, own: frozenset[str], tensors: frozenset[str], uses: LetterUses, result: Rewritten, in_place: bool
    ) -> None:
        self.own = own
        self.in_place = in_place
        self._uses = uses
        #: Names that may hold local definitions.
        self._locals: set[str] = set()
        self.tensors = tensors
        self.result = result

    def _thunks(self, node: ast.AST, extra: tuple[str, ...] = ()) -> ast.Dict:
        # Own names only: everything else is looked up by the recorder, in the order that the language says.
        names = names_in(node) | set(extra)
        keys = sorted(names & self.own)
        empty = ast.arguments([], [], None, [], [], None, [])
        values: list[ast.expr] = [ast.Lambda(empty, ast.Name(name, ast.Load())) for name in keys]
        return ast.Dict([ast.Constant(name) for name in keys], values)

    def _number(self, node: ast.stmt) -> ast.Constant:
        self.result.statements.append(node)
        return ast.Constant(len(self.result.statements) - 1)

    def _store(self, names: tuple[str, ...], value: ast.expr, at: ast.stmt, several: bool = False) -> ast.stmt:
        if not names:
            return ast.copy_location(ast.Expr(value), at)
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        target = targets[0] if len(targets) == 1 and not several else ast.Tuple(targets, ast.Store())
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), at))

    def _unpacking(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        # `a, b = b, a`: Python unpacks into names of its own, then parameters and names that assignments bind are
        # bound, or stored into, as each would be alone. A name that only unpacking binds is Python's for the object,
        # unless it may be a local definition.
        defines = self._may_define(node.value)
        places: dict[str, str] = {}
        for inner in (part for target in node.targets for part in ast.walk(target)):
            if isinstance(inner, ast.Name) and (defines or inner.id in self.tensors):
                place = f"{RECORDER}{len(places)}"
                places[place], inner.id = inner.id, place
        if not places:
            return self.generic_visit(node)
        node.value = self._parts(node.value, node.targets[0], node, places)
        if defines:
            self._locals.update(places.values())
        stores: list[ast.stmt] = [node]
        stored = {place: name for place, name in places.items() if name in self.tensors}
        if stored:
            values: list[ast.expr] = [ast.Name(place, ast.Load()) for place in stored]
            names: list[ast.expr] = [ast.Constant(name) for name in stored.values()]
            known = self._thunks(ast.Pass(), tuple(stored.values()))
            held = recorder_call(
                "snapshot", ast.Tuple(values, ast.Load()), ast.Tuple(names, ast.Load()), known, at=node
            )
            stores.append(self._store(tuple(stored), held, node, several=True))
        for place, name in places.items():
            value = ast.Name(place, ast.Load())
            if place in stored:
                call = recorder_call("bind", ast.Constant(name), self._thunks(ast.Pass(), (name,)), value, at=node)
            else:
                call = recorder_call("unpacked", ast.Constant(name), value, at=node)
            stores.append(self._store((name,), call, node))
        return stores

    def _may_define(self, value: ast.expr) -> bool:
        return _may_hold_letters(value, self.own) or not self._locals.isdisjoint(names_in(value))

    def _parts(self, value: ast.expr, target: ast.expr, node: ast.stmt, places: Mapping[str, str]) -> ast.expr:
        # What is unpacked: of a display each part for itself, so that whole arrays may stand beside scalars at a point.
        if isinstance(value, ast.Tuple | ast.List) and not any(isinstance(each, ast.Starred) for each in value.elts):
            same = isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(value.elts)
            targets = target.elts if same else [target] * len(value.elts)  # type: ignore[attr-defined]
            value.elts = [self._parts(each, own, node, places) for each, own in zip(value.elts, targets, strict=True)]
            return value
        name = next(part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        return self._part(value, places.get(name, name), node)

    def _part(self, value: ast.expr, name: str, node: ast.stmt) -> ast.expr:
        original = copy.deepcopy(value)
        made = self._named(self.visit(value), unpacked=True)
        if not self._may_define(original):
            return made
        return self._local("part", original, made, name, node)

    def _local(self, method: str, original: ast.expr, made: ast.expr, name: str, node: ast.stmt) -> ast.expr:
        letters = {letter: bases for letter, bases in self._uses.after(node).items() if letter not in self.own}
        known = self._thunks(original, (name, *(base for bases in letters.values() for base in bases)))
        empty = ast.arguments([], [], None, [], [], None, [])
        ordinary = ast.copy_location(ast.Lambda(empty, made), original)
        number = self._number(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], original), node))
        self.result.letters[len(self.result.statements) - 1] = letters
        return recorder_call(method, number, known, ordinary, at=node)

    def _binding(self, node: ast.Assign, name: str) -> ast.stmt:
        original = copy.deepcopy(node.value)
        value = self._named(self.visit(node.value))
        if self._may_define(original):
            self._locals.add(name)
            call = self._local("local", original, value, name, node)
        else:
            call = recorder_call("bind", ast.Constant(name), self._thunks(ast.Pass(), (name,)), value, at=node)
        return self._store((name,), call, node)

    def _named(self, value: ast.expr, unpacked: bool = False) -> ast.expr:
        # `w = v` in code: what a bare name holds is copied, what an index chooses is viewed.
        match value:
            case ast.Name() if self.in_place:
                return recorder_call("named", value, at=value)
            case ast.IfExp():
                value.body, value.orelse = self._named(value.body, unpacked), self._named(value.orelse, unpacked)
            case ast.Tuple() | ast.List() if unpacked:
                value.elts = [self._named(each, unpacked) for each in value.elts]
        return value


def names_in(node: ast.AST) -> set[str]:
    """The names that occur in ``node``."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _may_hold_letters(value: ast.expr, own: frozenset[str]) -> bool:
    # Whether a subscript's index, or a letter beside subscripts, could be an index variable: only then is it worth
    # asking at staging.
    return not own.issuperset(letters_outside_subscripts(value)) or any(
        isinstance(name, ast.Name) and name.id[:1].islower()
        for node in ast.walk(value)
        if isinstance(node, ast.Subscript)
        for name in ast.walk(node.slice)
    )
