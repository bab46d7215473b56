"""What code does with a value that it loads by a name: the ways on which the value stays whole.

::

    uses = Uses(captured, others, runs)
    uses.of_name(tree, "weights", (Key(0, 2),))     # the first in a list of two
    # True for `w = weights[k]; return x * w`, where `x * w` was captured; False for `weights[0].max()`

Followed are other names, items, unpacking, rounds, choices, tuples, and views such as ``w.T``. All else, a call in
which the value was not captured included, may read it. So too much is taken for a read, and no read for a capture.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from tcdsl.frontend.surroundings.code_runs import CodeRuns, Place, Spot

__all__ = ["Key", "Keys", "Tree", "Uses"]


@dataclass(frozen=True, slots=True)
class Key:
    """Where a container holds a value, and how many items it has, if they are counted."""

    value: Any
    count: int = 0

    def may_be(self, other: Any) -> bool:
        """Whether ``container[other]`` is what is there."""
        counted = self.count and type(other) is int and other < 0
        return bool((other + self.count if counted else other) == self.value)


Keys = tuple[Key | None, ...]
"""The keys on the way from a container to a value, the outermost first; None for one that is not known."""

# What makes another view, or reads no cells; what copies, such as a reshape of a transpose, is no view in the end.
_VIEWS = frozenset(("T", "mT"))
_OF_LAYOUT = frozenset(("shape", "size", "strides", "nbytes"))
_OF_TYPE = frozenset(("ndim", "dtype", "itemsize"))
_VIEWING = frozenset(("reshape", "transpose", "swapaxes", "ravel", "squeeze", "view"))
# By which functions code reaches what it does not name: the texts are arguments from this number on.
_BY_TEXT = {"getattr": 1, "hasattr": 1, "attrgetter": 0, "itemgetter": 0, "methodcaller": 0}
_BY_ANY = ("vars", "dir", "eval", "exec", "globals", "locals", "asdict", "astuple", "fields", "__dict__")
_OPERATORS = (ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.stmt)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Tree:
    """A function's definition, in which nodes know what is around them; ``kind`` is its class, if it is a method."""

    def __init__(self, root: ast.FunctionDef, code: CodeType) -> None:
        self.root = root
        filename = code.co_filename
        names = code.co_qualname.rpartition(".")
        self.kind = names[0] if names[0] and not names[0].endswith(">") else ""
        self.receiver = code.co_varnames[0] if self.kind and code.co_argcount else ""
        self.filename = filename
        self.around: dict[ast.AST, ast.AST] = {}
        self.loads: defaultdict[str, list[ast.expr]] = defaultdict(list)
        self.imported: defaultdict[str, list[str]] = defaultdict(list)
        self._bound: dict[ast.AST, set[str]] = {}
        self.nodes = [node for statement in root.body for node in ast.walk(statement)]
        for node in self.nodes:
            self.around.update((child, node) for child in ast.iter_child_nodes(node))
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                    self.loads[name].append(node)
                case ast.ImportFrom():
                    for alias in node.names:
                        self.imported[alias.name].append(alias.asname or alias.name)

    def is_named_by_text(self, name: str) -> bool:
        """Whether code may reach an attribute or a variable without loading it by its name."""
        if any(each in self.loads for each in _BY_ANY):
            return True
        texts: list[ast.expr] = []
        for function, first in _BY_TEXT.items():
            for load in self.loads.get(function, ()):
                call = self.around.get(load)
                if not isinstance(call, ast.Call) or call.func is not load:
                    return True
                texts += call.args[first : first + 1] if function != "attrgetter" else call.args
        return any(not isinstance(each, ast.Constant) or name in str(each.value).split(".") for each in texts)

    def loads_behind(self, statement: ast.AST, name: str) -> list[ast.expr]:
        """The loads of a variable that may give what a statement has bound to it."""
        loads: list[ast.expr] = [each for each in self.loads.get(name, ()) if isinstance(each, ast.Name)]
        block = self._block_of(statement)
        if not block or any(isinstance(each, ast.Nonlocal) and name in each.names for each in self.nodes):
            return loads
        behind = block[block.index(statement) + 1 :]
        again = [number for number, each in enumerate(behind) if isinstance(each, ast.Assign) and _binds(each, name)]
        # What is bound again in any case, before a round ends.
        if again and not any(isinstance(node, ast.Break | ast.Continue) for each in behind for node in ast.walk(each)):
            within = behind[: again[0] + 1]
            within += [statement] if isinstance(statement, ast.For) else []
            reached = [each for each in loads if any(self._is_in(each, one) for one in within)]
        else:
            loops = [each for each in self._all_around(statement) if isinstance(each, ast.For | ast.While)]
            first = (_place(loops[-1]) if loops else _place(statement))[:2]
            reached = [each for each in loads if _place(each)[:2] >= first]
            if isinstance(statement, ast.Assign) and not loops:
                reached = [each for each in reached if not self._is_in(each, statement)]
        rounds = [one for each in behind if isinstance(each, ast.For) and _binds(each, name) for one in each.body]
        reached = [each for each in reached if not any(self._is_in(each, one) for one in rounds)]
        return reached + [each for each in loads if each not in reached and self._is_in_inner_function(each)]

    def _block_of(self, statement: ast.AST) -> list[Any]:
        around = self.around.get(statement, self.root)
        blocks = [getattr(around, name, None) for name in ("body", "orelse", "finalbody")]
        return next((each for each in blocks if isinstance(each, list) and statement in each), [])

    def _all_around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.around:
            node = self.around[node]
            yield node

    def _is_in(self, node: ast.AST, outer: ast.AST) -> bool:
        return node is outer or any(each is outer for each in self._all_around(node))

    def _is_in_inner_function(self, node: ast.AST) -> bool:
        return any(isinstance(each, _Function) for each in self._all_around(node))

    def is_bound(self, name: ast.Name) -> bool:
        """Whether a variable is one of the definition's own."""
        scopes = [each for each in self._all_around(name) if isinstance(each, _Function | _Comprehension)]
        return any(name.id in self._bound_in(each) for each in (*scopes, self.root))

    def _bound_in(self, scope: ast.AST) -> set[str]:
        if scope not in self._bound:
            outward = {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}
            self._bound[scope] = {name for node in ast.walk(scope) for name in _bindings(node)} - outward
        return self._bound[scope]


def _bindings(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ExceptHandler(name=str() as name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)


class Uses:
    """The uses of one value, which was captured at the places ``captured``, of files.

    At ``every`` place some value was, in which of their ``runs`` these know; ``kinds`` are the names of the classes
    whose attribute it may be.
    """

    def __init__(
        self, captured: Collection[Spot], every: Collection[Spot], runs: CodeRuns, kinds: Collection[str] = ()
    ) -> None:
        self._captured = captured
        self._every = every
        self._runs = runs
        self._kinds = kinds
        #: Whether its shape, beside its cells, was asked for: of itself, or for a view of it.
        self.of_layout = False
        #: Whether code loads it at all.
        self.is_loaded = False
        self._known: set[tuple[ast.AST, str, Keys]] = set()

    def of_name(self, tree: Tree, name: str, keys: Keys) -> bool:
        """Whether nothing reads what a name outside of the function, or an attribute, leads to, behind these keys."""
        if tree.is_named_by_text(name):
            return False
        loads = [each for each in tree.loads.get(name, ()) if self._may_lead(tree, each)]
        self.is_loaded |= bool(loads)
        return all(self._is_whole(tree, each, keys) for each in loads) and all(
            self.of_local(tree, local, keys) for local in tree.imported.get(name, ())
        )

    def _may_lead(self, tree: Tree, load: ast.expr) -> bool:
        match load:
            case ast.Name():
                return not tree.is_bound(load)
            case ast.Attribute(value=ast.Name(id=owner)) if owner == tree.receiver and self._kinds:
                return tree.kind in self._kinds
            case _:
                return True

    def of_local(self, tree: Tree, name: str, keys: Keys) -> bool:
        """The same for a variable of the function, and of those in it."""
        self.is_loaded = True
        return self._of_loads(tree, name, keys, tree.root)

    def _of_loads(self, tree: Tree, name: str, keys: Keys, statement: ast.AST) -> bool:
        # Of a variable that a statement has bound.
        key = statement, name, keys
        if key in self._known:
            return True
        self._known.add(key)
        return all(self._is_whole(tree, each, keys) for each in tree.loads_behind(statement, name))

    def _is_captured(self, tree: Tree, node: ast.AST) -> bool:
        if not hasattr(node, "lineno"):
            return False
        spot = tree.filename, _place(node)
        return spot in self._every and self._runs.are_captured(spot)

    def _is_whole(self, tree: Tree, node: ast.expr, keys: Keys) -> bool:
        # Whether the value of ``node`` ends where it was captured.
        around = tree.around[node]
        if not isinstance(around, ast.stmt) and self._is_captured(tree, around):
            return True
        if isinstance(around, _OPERATORS) and not keys and self._is_in_tensor_statement(tree, node):
            # `y[i] = x[i] * w[i]`: but what a function in it is given, it may read.
            return True
        match around:
            case ast.Assign(targets=targets):
                return all(self._is_assigned(tree, around, target, keys) for target in targets)
            case ast.AnnAssign(target=target) if around.value is node:
                return self._is_assigned(tree, around, target, keys)
            case ast.For(target=target, iter=each) | ast.comprehension(target=target, iter=each) if each is node:
                return bool(keys) and self._is_assigned(tree, around, target, keys[1:])
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]) | ast.Expr():
                return True
            case ast.keyword():
                return self._is_captured(tree, tree.around[around])
            case ast.Call():
                return self._is_whole_in_call(tree, node, around, keys)
            case ast.Subscript(value=value) if value is node:
                return self._is_whole_in_item(tree, around, keys)
            case ast.Attribute(attr=name):
                return self._is_whole_in_method(tree, around, name, keys)
            case _:
                return self._is_whole_in_expression(tree, node, around, keys)

    def _is_whole_in_expression(self, tree: Tree, node: ast.expr, around: ast.AST, keys: Keys) -> bool:
        # Where what is around has the value, or holds it.
        match around:
            case ast.NamedExpr(target=target):
                return self._is_assigned(tree, tree.root, target, keys) and self._is_whole(tree, around, keys)
            case ast.IfExp(test=test) if test is not node:
                return self._is_whole(tree, around, keys)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = not any(isinstance(each, ast.Starred) for each in parts)
                return self._is_whole(tree, around, (Key(parts.index(node), len(parts)) if known else None, *keys))
            case ast.Starred():
                # `f(*weights)`, which was captured in the call, or `[*weights]`.
                outer = tree.around[around]
                if isinstance(outer, ast.Call):
                    return self._is_captured(tree, outer)
                return isinstance(outer, ast.Tuple | ast.List) and self._is_whole(tree, outer, (None, *keys[1:]))
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value) | ast.DictComp(value=value) if value is node:
                return self._is_whole(tree, around, (None, *keys))
            case _:
                return False

    def _is_whole_in_call(self, tree: Tree, node: ast.expr, call: ast.Call, keys: Keys) -> bool:
        # As the argument of a function in which it was not captured.
        match call.func:
            case ast.Name(id="isinstance" | "type"):
                return True
            case ast.Name(id="len") if keys:
                return True
            case ast.Name(id="zip") if keys:
                return self._is_whole(tree, call, (keys[0], Key(call.args.index(node)), *keys[1:]))
            case ast.Name(id="enumerate") if keys:
                return self._is_whole(tree, call, (keys[0], Key(1), *keys[1:]))
            case ast.Name(id="reversed" | "iter" | "list" | "tuple") if keys:
                return self._is_whole(tree, call, (None, *keys[1:]))
            case _:
                return False

    def _is_whole_in_item(self, tree: Tree, node: ast.Subscript, keys: Keys) -> bool:
        if isinstance(node.slice, ast.Slice) or not keys:
            self.of_layout |= not keys
            return self._is_whole(tree, node, (None, *keys[1:]) if keys else ())
        first, rest = keys[0], keys[1:]
        try:
            other = ast.literal_eval(node.slice)
        except ValueError:
            return self._is_whole(tree, node, rest)
        return not _may_be(first, other) or self._is_whole(tree, node, rest)

    def _is_assigned(self, tree: Tree, statement: ast.AST, target: ast.expr, keys: Keys) -> bool:
        match target:
            case ast.Name(id=name):
                return self._of_loads(tree, name, keys, statement)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if keys:
                starred = [number for number, part in enumerate(parts) if isinstance(part, ast.Starred)]
                before = starred[0] if starred else len(parts)
                rests: list[tuple[ast.expr, Keys]] = []
                for number, part in enumerate(parts):
                    if isinstance(part, ast.Starred):
                        rests.append((part.value, (_behind(keys[0], before), *keys[1:])))
                    elif _may_be(keys[0], number if number < before else number - len(parts)):
                        rests.append((part, keys[1:]))
                return all(self._is_assigned(tree, statement, part, rest) for part, rest in rests)
            case _:
                return False

    def _is_whole_in_method(self, tree: Tree, node: ast.Attribute, name: str, keys: Keys) -> bool:
        around = tree.around[node]
        call = around if isinstance(around, ast.Call) and around.func is node else None
        if not keys:
            self.of_layout |= name not in _OF_TYPE
            if name in _VIEWS:
                return self._is_whole(tree, node, ())
            return name in _OF_LAYOUT | _OF_TYPE or (
                call is not None and name in _VIEWING and self._is_whole(tree, call, ())
            )
        if call is None:
            return False
        match name:
            case "items":
                return self._is_whole(tree, call, (None, Key(1), *keys[1:]))
            case "values":
                return self._is_whole(tree, call, (None, *keys[1:]))
            case "keys":
                return True
            case "copy":
                return self._is_whole(tree, call, keys)
            case "get":
                return self._is_whole(tree, call, keys[1:])
            case _:
                return False

    def _is_in_tensor_statement(self, tree: Tree, node: ast.AST) -> bool:
        # The frame in which the recorder evaluates a statement is at the statement; Python's own is at a part of it.
        while not isinstance(node, ast.stmt):
            if node not in tree.around:
                return False
            node = tree.around[node]
        place = _place(node)
        if (tree.filename, place) not in self._captured or not self._is_captured(tree, node):
            return False
        if isinstance(node, ast.For | ast.While | ast.If | ast.With):
            return False
        inside = [each for name, each in self._captured if name == tree.filename and each != place]
        return not any(place[:2] <= each[:2] and each[2:] <= place[2:] for each in inside)


def _binds(statement: ast.Assign | ast.For, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    nodes = [node for target in targets for node in ast.walk(target)]
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in nodes)


def _behind(key: Key | None, number: int) -> Key | None:
    # The key in the list of what is from a number on.
    return None if key is None or not key.count else Key(key.value - number, key.count - number)


def _may_be(key: Key | None, other: Any) -> bool:
    return key is None or key.may_be(other)


def _place(node: ast.AST) -> Place:
    placed: ast.expr = node  # type: ignore[assignment]
    end_line = placed.end_lineno or placed.lineno
    return placed.lineno, placed.col_offset, end_line, placed.end_col_offset or placed.col_offset
