"""Bindings of names in decorated functions, rewritten: local definitions, and what is unpacked into several names.

::

    z = x[i] * x[i]             z = RECORDER.local(STATEMENT, lambda: x[i] * x[i])
    a, b = x[i], y              a, b = RECORDER.part(STATEMENT, lambda: x[i]), y; a = RECORDER.bind("a", ...)

A local definition may take letters for index variables where they stand outside of subscripts, if a statement indexes
with them::

    fy = (y + 0.5) / H          y is an index variable, whatever it means outside of the function, because
    O[y, x] = A[y, x] * fy      a later statement indexes with it
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcdsl.frontend.arrays.unpacking import Parts
from tcdsl.frontend.names.name_resolution import is_letter
from tcdsl.frontend.python.recorded_statements import RecordedDefinition
from tcdsl.frontend.source.assigned_names import is_of_names
from tcdsl.frontend.source.rewritten_functions import RECORDER, STATEMENTS, thunk
from tcdsl.frontend.source.syntax_trees import copied
from tcdsl.frontend.symbols.recognition import REDUCTIONS

__all__ = ["RECORDER", "BindingRewriter", "FunctionNames", "may_hold_letters", "parts_of", "recorder_call"]


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


@dataclass(frozen=True, slots=True)
class FunctionNames:
    """The names of a function: its own, those that may hold ``tensors``, and ``targets``, which nothing else than
    tensor statements binds. Strings declare the names in ``declared``; ``projected`` says that it speaks of slots.
    Some may be bound by functions in it; ``outside`` are those that ``global`` and ``nonlocal`` name.
    """

    own: frozenset[str]
    tensors: frozenset[str]
    targets: frozenset[str]
    declared: frozenset[str]
    projected: bool
    of_nested_functions: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()


class BindingRewriter(ast.NodeTransformer):
    """Rewrites what binds names in ``definition``."""

    def __init__(self, definition: ast.FunctionDef, names: FunctionNames, in_place: bool) -> None:
        self.names = names
        self.own = names.own
        self.in_place = in_place
        #: What the recorder is told of the statements.
        self.statements: list[object] = []
        self._uses = LetterUses(definition)
        #: Names that may hold local definitions.
        self._locals: set[str] = set()
        #: How many comprehensions and lambdas are around, whose names are no names of the function.
        self._inner = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit the parts of ``node``."""
        inner = isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp | ast.Lambda)
        self._inner += inner
        super().generic_visit(node)
        self._inner -= inner
        return node

    def _statement_name(self, statement: object) -> ast.expr:
        self.statements.append(statement)
        position = ast.Constant(len(self.statements) - 1)
        return ast.Subscript(ast.Name(STATEMENTS, ast.Load()), position, ast.Load())

    def _store(self, names: tuple[str, ...], value: ast.expr, at: ast.stmt, several: bool = False) -> ast.stmt:
        if not names:
            return ast.copy_location(ast.Expr(value), at)
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        target = targets[0] if len(targets) == 1 and not several else ast.Tuple(targets, ast.Store())
        return ast.copy_location(ast.Assign([target], value), at)

    def _unpacking(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        # `a, b = b, a`: Python unpacks into names of its own, then parameters and names that assignments bind are
        # bound, or stored into, as each would be alone. A name that only unpacking binds is Python's for the object,
        # unless it may be a local definition.
        defines = self._may_define(node.value)
        places: dict[str, str] = {}
        for inner in (part for target in node.targets for part in ast.walk(target)):
            if isinstance(inner, ast.Name) and (defines or inner.id in self.names.tensors):
                place = f"{RECORDER}{len(places)}"
                places[place], inner.id = inner.id, place
        parts = parts_of(node.targets[0]) if len(node.targets) == 1 else None
        if not places:
            self.generic_visit(node)
            node.value = self._apart(self._named(node.value, unpacked=True), parts)
            return node
        node.value = self._apart(self._parts(node.value, node.targets[0], node, places), parts)
        if defines:
            self._locals.update(places.values())
        stores: list[ast.stmt] = [node]
        stored = {place: name for place, name in places.items() if name in self.names.tensors}
        if stored:
            values: list[ast.expr] = [ast.Name(place, ast.Load()) for place in stored]
            names: list[ast.expr] = [ast.Constant(name) for name in stored.values()]
            held = recorder_call("snapshot", ast.Tuple(values, ast.Load()), ast.Tuple(names, ast.Load()), at=node)
            stores.append(self._store(tuple(stored), held, node, several=True))
        for place, name in places.items():
            method = "bind" if place in stored else "unpacked"
            call = recorder_call(method, ast.Constant(name), ast.Name(place, ast.Load()), at=node)
            stores.append(self._store((name,), call, node))
        return stores

    def _apart(self, value: ast.expr, parts: Parts) -> ast.expr:
        # What is unpacked may be a tensor.
        if parts is None or (isinstance(value, ast.Tuple | ast.List) and not any(parts)):
            return value
        return recorder_call("apart", value, ast.Constant(parts), at=value)  # type: ignore[arg-type]  # constants may be tuples

    def _may_define(self, value: ast.expr) -> bool:
        return may_hold_letters(value, self.own) or not self._locals.isdisjoint(names_in(value))

    def _bare_reduction(self, node: ast.Call) -> str:
        # What a call that may be a bare reduction calls; nothing of others.
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if self._inner or name not in REDUCTIONS or len(node.args) != 1 or node.keywords:
            return ""
        return name if self._may_define(node) else ""

    def _parts(self, value: ast.expr, target: ast.expr, node: ast.stmt, places: Mapping[str, str]) -> ast.expr:
        # What is unpacked: of a display each part for itself, so that whole arrays may stand beside scalars at a point.
        if isinstance(value, ast.Tuple | ast.List) and not any(isinstance(each, ast.Starred) for each in value.elts):
            same = isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(value.elts)
            targets = target.elts if same else [target] * len(value.elts)  # type: ignore[attr-defined]
            value.elts = [self._parts(each, own, node, places) for each, own in zip(value.elts, targets, strict=True)]
            return value
        name = next(part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        return self._part(value, places.get(name, name), node)

    def _part(self, value: ast.expr, name: str, node: ast.stmt | ast.expr) -> ast.expr:
        original = copied(value)
        made = self._named(self.visit(value), unpacked=True)
        if not self._may_define(original):
            return made
        return self._local("part", original, made, name, node)

    def _local(self, method: str, original: ast.expr, made: ast.expr, name: str, node: ast.stmt | ast.expr) -> ast.expr:
        named = set(letters_outside_subscripts(original)) - self.own
        indexed = {letter: self._uses.indexed_after(node, letter) for letter in named}
        letters = frozenset(letter for letter in named if not self.names.targets.isdisjoint(indexed[letter]))
        bases = {letter: indexed[letter] for letter in named - letters}
        plain = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], original), node)
        statement = self._statement_name(RecordedDefinition(plain, name, letters, bases))
        return recorder_call(method, statement, ast.copy_location(thunk(made), original), at=node)

    def _binding(self, node: ast.Assign, name: str) -> ast.stmt:
        original = copied(node.value)
        value = self._named(self.visit(node.value))
        if self._may_define(original):
            self._locals.add(name)
            call = self._local("local", original, value, name, node)
        else:
            call = recorder_call("bind", ast.Constant(name), value, at=node)
        return self._store((name,), call, node)

    def _named(self, value: ast.expr, unpacked: bool = False) -> ast.expr:
        # `w = v` in code: what a bare name holds is copied, what an index chooses is viewed.
        match value:
            case ast.Name() if self.in_place:
                return recorder_call("named", value, ast.Constant(unpacked), at=value)
            case ast.IfExp():
                value.body, value.orelse = self._named(value.body, unpacked), self._named(value.orelse, unpacked)
            case ast.Call(func=ast.Attribute(ast.Name(name), "chosen")) if name == RECORDER:
                for side in value.args[2:]:
                    assert isinstance(side, ast.Lambda)
                    side.body = self._named(side.body, unpacked)
            case ast.Tuple() | ast.List() if unpacked:
                value.elts = [self._named(each, unpacked) for each in value.elts]
        return value


def parts_of(target: ast.expr) -> Parts:
    """What a target unpacks a value into."""
    return tuple(map(parts_of, target.elts)) if isinstance(target, ast.Tuple | ast.List) else None


def names_in(node: ast.AST) -> set[str]:
    """The names that occur in ``node``."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def may_hold_letters(value: ast.expr, own: frozenset[str]) -> bool:
    """Whether a subscript's index, or a letter beside subscripts, could be an index variable, also in functions that a
    generator over a range calls.

    Only then is it worth asking at staging. ``own`` are the function's names.
    """
    if any(isinstance(node, ast.GeneratorExp) and _calls_over_range(node) for node in ast.walk(value)):
        return True
    return not own.issuperset(letters_outside_subscripts(value)) or any(
        isinstance(name, ast.Name) and name.id[:1].islower()
        for node in ast.walk(value)
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and _is_get(node.func))
        for name in ast.walk(node.slice if isinstance(node, ast.Subscript) else node.func)
    )


def _calls_over_range(node: ast.GeneratorExp) -> bool:
    ranges = (clause.iter.func for clause in node.generators if isinstance(clause.iter, ast.Call))
    if not any(isinstance(each, ast.Name) and each.id == "range" for each in ranges):
        return False
    return any(isinstance(part, ast.Call) for part in ast.walk(node.elt))


def _is_get(function: ast.expr) -> bool:
    # `get(x[0], 0.0)` is read where it stands, as what has index variables is.
    return isinstance(function, ast.Name) and function.id == "get"


_Position = tuple[int, int]
_LAST = (sys.maxsize, 0)


class LetterUses:
    """Where a function's body indexes with one-letter names, and what it indexes."""

    def __init__(self, definition: ast.FunctionDef) -> None:
        #: For each letter, where each name is indexed with it for the last time.
        self._uses: dict[str, dict[str, _Position]] = {}
        self._loops = [
            (_start(node), _end(node)) for node in ast.walk(definition) if isinstance(node, ast.For | ast.While)
        ]
        for statement in definition.body:
            self._collect(statement, frozenset())

    def _collect(self, node: ast.AST, hidden: frozenset[str], defines: bool = False) -> None:
        if isinstance(node, ast.Assign):
            defines = all(map(is_of_names, node.targets))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return
        if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            hidden |= {name.id for clause in node.generators for name in _names(clause.target)}
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            for name in _names(node.slice):
                if is_letter(name.id) and name.id not in hidden:
                    # A local definition indexes where it is used, which is after it and after whatever is before that.
                    last, place = self._uses.setdefault(name.id, {}), _LAST if defines else _start(node)
                    last[node.value.id] = max(place, last.get(node.value.id, place))
        for child in ast.iter_child_nodes(node):
            self._collect(child, hidden, defines)

    def indexed_after(self, statement: ast.stmt | ast.expr, letter: str) -> frozenset[str]:
        """The names of what is indexed with ``letter`` by what runs after ``statement``."""
        since = _end(statement)
        for start, end in self._loops:
            if start <= _start(statement) < end:
                since = min(since, start)
        return frozenset(name for name, place in self._uses.get(letter, {}).items() if place >= since)


def letters_outside_subscripts(node: ast.AST) -> Iterator[str]:
    """The one-letter names of an expression that stand for values in it."""
    match node:
        case ast.Name(id=name):
            if is_letter(name):
                yield name
        case ast.Subscript(value=base) | ast.Attribute(value=base):
            if not isinstance(base, ast.Name):
                yield from letters_outside_subscripts(base)
        case ast.Call(args=arguments):
            for argument in arguments:
                yield from letters_outside_subscripts(argument)
        case ast.GeneratorExp(generators=clauses) | ast.ListComp(generators=clauses) | ast.SetComp(generators=clauses):
            own = {name.id for clause in clauses for name in _names(clause.target)}
            yield from (letter for letter in letters_outside_subscripts(node.elt) if letter not in own)
        case ast.DictComp() | ast.Lambda():
            return  # they have names of their own
        case _:
            for child in ast.iter_child_nodes(node):
                yield from letters_outside_subscripts(child)


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def _start(node: ast.stmt | ast.expr) -> _Position:
    return node.lineno, node.col_offset


def _end(node: ast.stmt | ast.expr) -> _Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
